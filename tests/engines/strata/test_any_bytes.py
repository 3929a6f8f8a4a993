"""Whatever bytes a log holds, reading them gives facts and never raises."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.strata.samples import (
    AFTER_BINDING,
    FLAGS,
    ROLES,
    STDERR,
    STDOUT,
    TWO_CARDS,
    read,
)

LINES = [line.encode() for line in (STDOUT + STDERR).splitlines()]
DUMP = re.compile(rb"^output  :((?: [0-9]+)*)[ \t\r]*\n", re.MULTILINE)

SPLIT = """\
strata generate: layer split: CUDA1 runs layers 24-47, expert cache 12288 slots (24.69 GiB), 1
strata generate: CUDA2: 3600 additional experts, 4.60 GiB; results return through pinned rows
strata generate: expert cache: 3300 slots (6.20 GiB) after 2 smaller tries - the rest
strata generate: per-window logits -> FILE (vocab 248320)
"""
LONG = f"{TWO_CARDS}{ROLES}\n{STDERR}{SPLIT}{AFTER_BINDING}"
NUMBER = re.compile("(?<![0-9])(?<!TX )[0-9]+")  # but for those in the names of cards

scraps = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(LINES),
    st.sampled_from(LINES).flatmap(
        lambda line: st.integers(0, len(line)).map(lambda at: line[:at])
    ),
    st.sampled_from([b"output  :", b"prompt  :", b"output  : 1 2 3", b" 4 5", b"7", b" "]),
    st.sampled_from([b"\x1b[0m", b"\x1b[31m", b"\x1b[2K", b"\r", b"\0", b"\xff", b"\xc3"]),
    st.lists(st.integers(-5, 2**33), max_size=6).map(
        lambda ids: b"output  :" + "".join(f" {number}" for number in ids).encode()
    ),
)
logs = st.lists(
    st.tuples(scraps, st.sampled_from([b"\n", b"\n", b"\r\n", b"", b"\r"])), max_size=30
).map(lambda parts: b"".join(scrap + end for scrap, end in parts))


@given(stdout=logs, stderr=logs, max_new=st.integers(1, 8))
def test_reading_never_raises(stdout: bytes, stderr: bytes, max_new: int) -> None:
    """A log of any bytes has a reading, and a reason where it has no stream."""
    with tempfile.TemporaryDirectory() as folder:
        reading = read(Path(folder), stdout, stderr, max_new=max_new)

    assert (reading.stream is None) == (reading.stream_trouble is not None)
    assert reading.residency.known == (reading.residency.unknown is None)
    assert all(len(line) <= 300 for line in (*reading.lines, *reading.tail))


@pytest.mark.parametrize("line", dict.fromkeys((LONG + STDOUT).splitlines()))
def test_endless_numbers_are_no_facts(tmp_path: Path, line: str) -> None:
    """A number of thousands of digits is unknown wherever it stands, and never raises."""
    for place in NUMBER.finditer(line):
        endless = line[: place.start()] + "7" * 5000 + line[place.end() :]
        stdout, stderr = STDOUT.replace(line, endless), LONG.replace(line, endless)
        reading = read(tmp_path, stdout, stderr, flags=(*FLAGS, "--auto-roles"))

        facts = (reading.residency, reading.recorded, reading.speculation, reading.timings)
        told = (reading.devices, reading.picked, [seen.value for seen in reading.sightings])
        assert not re.search("[0-9]{18}", repr((facts, told, reading.stream, reading.vocabulary)))


@given(before=logs, after=logs, ids=st.lists(st.integers(0, 2**31 - 1), max_size=12))
def test_a_stream_is_that_of_the_only_dump(before: bytes, after: bytes, ids: list[int]) -> None:
    """Never longer, shorter or other than in the log's only well-formed dump."""
    dump = b"output  :" + "".join(f" {number}" for number in ids).encode() + b"\n"
    stdout = before + b"\n" + dump + after
    with tempfile.TemporaryDirectory() as folder:
        reading = read(Path(folder), stdout, b"", max_new=len(ids))

    if reading.stream is not None:
        assert reading.stream == tuple(ids)


words = st.lists(st.text("abc :=\xe9", max_size=20), max_size=9).map("\n".join)


@given(before=words, after=words, ids=st.lists(st.integers(0, 2**31 - 1), max_size=12))
def test_words_around_the_dump_do_not_hide_it(before: str, after: str, ids: list[int]) -> None:
    """Lines that are no dump leave the stream as it is."""
    dump = "output  :" + "".join(f" {number}" for number in ids)
    with tempfile.TemporaryDirectory() as folder:
        reading = read(Path(folder), f"{before}\n{dump}\n{after}", b"", max_new=len(ids))

    assert reading.stream == tuple(ids)


@given(stdout=logs)
def test_no_stream_is_made_up(stdout: bytes) -> None:
    """Where controls play no part, the only streams are those that stand there."""
    plain = re.sub(rb"[\0\r\x1b]", b"", stdout)
    with tempfile.TemporaryDirectory() as folder:
        reading = read(Path(folder), plain, b"", max_new=12)

    if reading.stream is not None:
        assert [reading.stream] == [tuple(map(int, found.split())) for found in DUMP.findall(plain)]


@given(noise=st.lists(st.binary(max_size=60).filter(lambda data: b"\n" not in data), max_size=20))
def test_noise_between_the_lines_of_standard_error_changes_no_stream(noise: list[bytes]) -> None:
    """Foreign lines on one file say nothing of the other."""
    with tempfile.TemporaryDirectory() as folder:
        reading = read(Path(folder), STDOUT, b"\n".join(noise) + b"\n" + STDERR.encode())

    assert reading.stream == tuple(range(3000, 3060))
    assert reading.residency.fact("slots") == 4400
