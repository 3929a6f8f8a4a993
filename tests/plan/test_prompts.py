"""Prompts: the same ids as ever, and never one outside the vocabulary."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.errors import UsageError
from hetero_test.plan.prompts import from_file, generated
from hetero_test.values.run import stream_md5


def test_the_default_probe_is_the_bash_harness_probe() -> None:
    """Seed 7, 95 ids, vocabulary 151936 give the ids whose md5s were pasted before."""
    random.seed(7)
    before = tuple(random.randrange(1000, max(2500, 151936 - 2000)) for _ in range(95))
    probe = generated(count=95, seed=7, vocab=151936, max_new=60)
    assert probe.ids == before
    assert probe.ids[:3] == (85890, 40544, 104500)


@given(st.integers(1, 300), st.integers(0, 2**40), st.integers(1, 400_000))
def test_ids_lie_inside_the_vocabulary_or_none_are_made(count: int, seed: int, vocab: int) -> None:
    """A vocabulary that is too small for the generator is an error, not ids beyond it."""
    try:
        probe = generated(count=count, seed=seed, vocab=vocab, max_new=1)
    except UsageError:
        assert vocab < 2500
    else:
        assert len(probe.ids) == count
        assert all(1000 <= token < vocab for token in probe.ids)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=50))
def test_a_probe_file_is_read_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, ids: list[int]
) -> None:
    """Ids separated by blanks, commas or newlines arrive in order."""
    path = tmp_path_factory.mktemp("probe") / "p.txt"
    path.write_text(",\n".join(map(str, ids)) + "\n")
    probe = from_file(path, max_new=3)
    assert probe.ids == tuple(ids)
    path.write_text(probe.text)
    assert from_file(path, max_new=3).ids == probe.ids


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "no token id"),
        (b"1 2\n3 x4\n", r":2: 'x4'"),
        (b"1 -2", "'-2'"),
        (b"2147483648", "no token id"),
        (b"9" * 5000, "no token id"),
        ("٣".encode(), "no token id"),
        (b"\xff", "UTF-8"),
    ],
)
def test_a_bad_probe_file_is_told_with_its_line(tmp_path: Path, content: bytes, told: str) -> None:
    """Whatever is no list of ids is refused, with file and line."""
    path = tmp_path / "p.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=told):
        from_file(path, max_new=1)


def test_a_missing_probe_file_is_told(tmp_path: Path) -> None:
    """A file that is not there is a mistake of the command line."""
    with pytest.raises(UsageError, match="No such file"):
        from_file(tmp_path / "none", max_new=1)


def test_the_hash_of_a_stream_is_the_one_pasted_before() -> None:
    """md5 of the decimal ids joined by commas; 12 digits of it were shown before."""
    assert stream_md5((311, 12, 9))[:12] == "14c7e20e05b2"
