"""Log bytes become lines of text, in constant memory, whatever the bytes are."""

from __future__ import annotations

import re
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.engines.lines import BLOCK_BYTES, KEEP_BYTES, End, blocks, lines, number, tail


def log(folder: Path, data: bytes) -> Path:
    """A file with this content."""
    path = folder / "log"
    path.write_bytes(data)
    return path


def all_lines(folder: Path, data: bytes, *, keep_bytes: int = KEEP_BYTES) -> list[str]:
    """The lines of a file with this content."""
    return list(lines(log(folder, data), keep_bytes=keep_bytes))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\r\nb\r\r\nc", ["a", "b", "c"]),
        (b"10%\r20%\rdone\n", ["10%", "20%", "done"]),
        (b"\x1b[1;32mgreen\x1b[0m text\x1b[m\n", ["green text"]),
        (b"\x1b[2K\x1b[1Gline\x1b[K\n", ["line"]),
        (b"\x1b]0;title\x07line\n\x1b]0;other\x1b\\next\n", ["line", "next"]),
        (b"\0\0a\0b\0\n", ["ab"]),
        (b"caf\xc3\xa9 \xff\xfe\n", ["café \ufffd\ufffd"]),
        (b"a\x0bb\x0cc\xc2\x85d\xe2\x80\xa8e\n", ["a\x0bb\x0cc\x85d\u2028e"]),
    ],
)
def test_lines_are_what_a_reader_would_see(
    tmp_path: Path, data: bytes, expected: list[str]
) -> None:
    """CRLF, lone carriage returns, colors, NULs and broken UTF-8 survive."""
    assert all_lines(tmp_path, data) == expected


@pytest.mark.parametrize(
    "between",
    [
        b"\0",
        b"\0\0",
        b"\x1b[31m",
        b"\x1b[0m\x1b[31m",
        b"\x1b[K",
        b"\x1b]0;t\x07",
        b"\0\x1b[0m\0",
        b"\x1b[0m\0\x1b[0m",
        b"\x1b[0m\x1b[K",
        b"\x1b[\x1b[0m0m",
    ],
)
def test_no_number_is_made_of_two(tmp_path: Path, between: bytes) -> None:
    """What vanishes between two digits leaves a mark, so that 1 and 2 are never 12."""
    (line,) = all_lines(tmp_path, b"x 1" + between + b"2 y\n")

    assert "12" not in line


def test_lines_may_be_longer_than_a_block(tmp_path: Path) -> None:
    """A line is kept whole up to the length that is asked for."""
    long = b"x" * (3 * BLOCK_BYTES)
    data = b"a\n" + long + b"\nb\n"

    assert [len(line) for line in all_lines(tmp_path, data, keep_bytes=len(long))] == [
        1,
        len(long),
        1,
    ]


def test_of_an_endless_line_the_beginning_is_kept(tmp_path: Path) -> None:
    """What follows it is found again."""
    found = all_lines(tmp_path, b"a\n" + b"x" * (5 * BLOCK_BYTES) + b"\nb\n\nc")

    assert [found[0], *found[2:]] == ["a", "b", "", "c"]
    assert KEEP_BYTES <= len(found[1]) <= 2 * BLOCK_BYTES


def test_carriage_returns_alone_break_an_endless_line(tmp_path: Path) -> None:
    """A progress display that never breaks its line is many short lines."""
    found = all_lines(tmp_path, b"".join(b"\rstep %d" % n for n in range(200_000)) + b"\nend\n")

    assert found[1:] == [*(f"step {n}" for n in range(200_000)), "end"]


@pytest.mark.parametrize("size", [BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r\r\n"])
def test_a_line_end_may_fall_on_the_end_of_a_block(tmp_path: Path, size: int, end: bytes) -> None:
    """Where the file is cut for reading changes no line."""
    data = b"x" * (size - len(end)) + end + b"next" + end

    assert all_lines(tmp_path, data, keep_bytes=2 * BLOCK_BYTES)[1:] == ["next"]


@given(
    pieces=st.lists(st.binary(max_size=9).map(lambda data: re.sub(rb"[\r\n\0\x1b]", b"", data))),
    size=st.integers(0, 3),
)
def test_plain_lines_come_out_as_they_went_in(pieces: list[bytes], size: int) -> None:
    """Bytes without controls are only decoded."""
    filler = [b"y" * 1000] * (size * 200)
    data = b"".join(piece + b"\n" for piece in (*filler, *pieces))
    with tempfile.TemporaryDirectory() as folder:
        found = all_lines(Path(folder), data)

    assert found[len(filler) :] == [piece.decode("utf-8", "replace") for piece in pieces]


def test_memory_is_constant(tmp_path: Path) -> None:
    """A line of any length takes no more memory than a block or two."""
    path = log(tmp_path, b"x" * (40 * 2**20))
    tracemalloc.start()
    try:
        for _ in lines(path):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 * 2**20


def test_blocks_tell_how_their_last_line_ended(tmp_path: Path) -> None:
    """By its line break, by its length, or with the file."""
    endless = log(tmp_path, b"x" * (2 * BLOCK_BYTES) + b"\nrest")

    assert [(block.fresh, block.end) for block in blocks(endless, KEEP_BYTES)] == [
        (True, End.LENGTH),
        (False, End.LENGTH),
        (False, End.NEWLINE),
        (True, End.FILE),
    ]


def test_the_tail_is_the_last_lines(tmp_path: Path) -> None:
    """Blank lines are passed over, long ones are cut, controls are gone."""
    path = log(tmp_path, b"one\ntwo\r\n\x1b[1m" + b"x" * 500 + b"\x1b[0m\n \n\nlast")

    assert tail(path, count=3, width=10) == ("two", "x" * 10, "last")
    assert tail(path)[1:] == ("two", "x" * 300, "last")


def test_the_tail_of_a_large_file_is_read_from_its_end(tmp_path: Path) -> None:
    """It takes no longer than that of a small one."""
    path = log(tmp_path, b"first\n" + b"y" * (2 * KEEP_BYTES) + b"\nlast\n")

    assert tail(path) == ("y" * 300, "last")
    assert tail(log(tmp_path, b"")) == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7.23", 7.23),
        ("60", 60.0),
        ("-1.5", -1.5),
        ("0", 0.0),
        ("1e3", 1000.0),
        ("2.5E-3", 0.0025),
        ("7,23", 7.23),
        ("-7,23", -7.23),
        ("0,058", 0.058),
        ("15,00", 15.0),
        ("8303,777", 8303.777),
        ("1,234", None),
        ("-12,345", None),
        ("1,234,567", None),
        ("1,234.5", None),
        ("1.234,5", None),
        ("nan", None),
        ("-nan", None),
        ("-nan(ind)", None),
        ("inf", None),
        ("-inf", None),
        ("1.#IND", None),
        ("1e999", None),
        ("infinity", None),
        ("", None),
        ("1_000", None),
        ("0x10", None),
        ("٣", None),
        (" 1", None),
        ("9" * 400, None),
        (None, None),
    ],
)
def test_a_number_is_finite_and_unambiguous(text: str | None, value: float | None) -> None:
    """What is no finite number, or may be another one, is unknown."""
    assert number(text) == value


@given(st.text(max_size=12))
def test_any_text_has_a_number_or_none(text: str) -> None:
    """Reading a number never raises."""
    assert number(text) is None or isinstance(number(text), float)
