"""What is written a run at a time, and what equal streams take."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.judge.judge import judge
from hetero_test.store.run_dir import Store, write
from hetero_test.store.run_json import document, dumps, pieces
from hetero_test.store.streams import Streams
from hetero_test.values.record import Record
from tests.judge.factories import changed, record
from tests.judge.strategies import RECORDS
from tests.runs import made


@given(RECORDS)
def test_the_pieces_are_the_text_of_the_document(drawn: Record) -> None:
    """Whoever reads ``run.json`` cannot tell that it was written a run at a time."""
    judgment = judge(drawn)

    assert "".join(pieces(drawn, judgment, {})) == dumps(document(drawn, judgment, {}))


def test_an_argument_that_is_no_utf_8_is_escaped() -> None:
    """In its own piece; the others stay readable."""
    odd = changed(record("0: A A", "1: A A"), "1", reason="lost \udcff", quote="größer")
    text = "".join(pieces(odd, judge(odd), {}))

    text.encode()
    assert "\\udcff" in text
    assert json.loads(text)["runs"][-1]["reason"] == "lost \udcff"


def test_what_breaks_while_it_is_written_leaves_the_old_file(tmp_path: Path) -> None:
    """A text that ends early is no text, and nothing of it is left."""

    def broken() -> Iterator[str]:
        yield "half"
        raise ValueError("no more")

    path = tmp_path / "run.json"
    write(path, "whole")
    with pytest.raises(ValueError, match="no more"):
        write(path, broken())

    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


@given(st.lists(st.lists(st.integers(0, 9)).map(tuple), max_size=6))
def test_equal_streams_are_one_object_and_nothing_else_changes(
    drawn: list[tuple[int, ...]],
) -> None:
    """Ids too: a stream that is another one has its ids in common with those before."""
    streams = Streams()
    runs = [made(variant=str(n), stream=(*ids, 10**6)) for n, ids in enumerate(drawn)]
    shared = [streams.shared(run) for run in runs]

    assert shared == runs
    for one in shared:
        for other in shared:
            assert (one.stream is other.stream) == (one.stream == other.stream)
            assert one.stream is not None
            assert other.stream is not None
            assert one.stream[-1] is other.stream[-1]


def test_a_run_without_a_stream_stays_without() -> None:
    """No dump is not an empty dump."""
    streams = Streams()
    silent, empty = made(stream=None), made(stream=())

    assert streams.shared(silent) == silent
    assert streams.shared(empty) == empty


def test_a_store_keeps_equal_streams_once(tmp_path: Path) -> None:
    """Of what it saves and of what it reads again."""
    drawn = record("0: A A", "1: A B")
    store = Store(tmp_path)
    store.begin(drawn.manifest)
    saved = [store.save(run) for run in drawn.runs]

    for runs in (saved, Store(tmp_path).load().runs):
        assert len({id(run.stream) for run in runs}) == 2
