"""A search over a log finds the lines that matter, and says how they end."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.engines.lines import BLOCK_BYTES, End
from hetero_test.engines.scan import Hit, Scan

SCAN = Scan(
    last=["gpu ", "gpu: "],
    distinct=["role "],
    every=["out:"],
    shapes=[rb"[0-9]+(?=\n|\Z)"],
)


def hits(folder: Path, data: bytes, scan: Scan = SCAN, **options: int) -> list[Hit]:
    """What is found in a file with this content."""
    path = folder / "log"
    path.write_bytes(data)
    return list(scan.lines(path, **options))


def texts(folder: Path, data: bytes, scan: Scan = SCAN) -> list[tuple[str | None, str]]:
    """Start and text of what is found."""
    return [(hit.start, hit.text) for hit in hits(folder, data, scan)]


def test_lines_are_found_by_their_start(tmp_path: Path) -> None:
    """In the order of the log; a start in the middle of a line is none."""
    data = b"role 1\nsome gpu 3\nout: 1\ngpu 2\nother\n"

    assert texts(tmp_path, data) == [("role ", "role 1"), ("out:", "out: 1"), ("gpu ", "gpu 2")]


def test_the_first_line_has_a_start_too(tmp_path: Path) -> None:
    """No line break stands before it."""
    assert texts(tmp_path, b"out: 1") == [("out:", "out: 1")]


def test_the_longest_start_counts(tmp_path: Path) -> None:
    """One start may be the beginning of another."""
    scan = Scan(last=["a", "ab", "abc", "abd", "x"])

    assert texts(tmp_path, b"abdomen\nabacus\nax\nx\n", scan) == [
        ("abd", "abdomen"),
        ("ab", "abacus"),
        ("a", "ax"),
        ("x", "x"),
    ]


def test_of_repeated_lines_only_what_counts_is_given(tmp_path: Path) -> None:
    """The last one, each distinct one, or every one."""
    data = b"gpu 1\nrole 1\nout: 1\ngpu 2\nrole 1\nrole 2\nout: 1\n"

    assert texts(tmp_path, data) == [
        ("out:", "out: 1"),
        ("gpu ", "gpu 2"),
        ("role ", "role 1"),
        ("role ", "role 2"),
        ("out:", "out: 1"),
    ]


def test_shapes_are_whole_lines(tmp_path: Path) -> None:
    """A pattern of its own, without a start."""
    assert texts(tmp_path, b"12\n12 a\n345\n") == [(None, "12"), (None, "345")]


def test_a_scan_without_starts_finds_shapes(tmp_path: Path) -> None:
    """Every part of a search is optional."""
    assert texts(tmp_path, b"a\n12\n", Scan(last=[], shapes=[rb"[0-9]"])) == [(None, "12")]
    assert texts(tmp_path, b"a\n12\n", Scan(last=[])) == []


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"out: 1\n", End.NEWLINE),
        (b"out: 1\r\n", End.NEWLINE),
        (b"out: 1\rrest\n", End.RETURN),
        (b"out: 1", End.FILE),
        (b"out: 1" + b" " * (3 * BLOCK_BYTES) + b"\n", End.LENGTH),
    ],
)
def test_a_line_tells_its_end(tmp_path: Path, data: bytes, end: End) -> None:
    """A line that is cut is not taken for a whole one."""
    (hit,) = hits(tmp_path, data)

    assert hit.end is end


def test_places_grow_with_the_log(tmp_path: Path) -> None:
    """Of two lines the later one has the larger place, also across blocks."""
    filler = b"x\n" * BLOCK_BYTES
    found = hits(tmp_path, b"out: 1\nout: 2\n" + filler + b"out: 3\n" + filler + b"12\n")
    places = [hit.place for hit in found]

    assert [hit.text for hit in found] == ["out: 1", "out: 2", "out: 3", "12"]
    assert places == sorted(set(places))


def test_of_an_endless_shaped_line_the_beginning_is_given(tmp_path: Path) -> None:
    """Never the whole of it: nobody reads a value there."""
    scan = Scan(last=[], shapes=[rb"[0-9]"])
    found = hits(tmp_path, b"12" + b"." * (3 * BLOCK_BYTES) + b"\n", scan)

    assert found[0].text.startswith("12..")
    assert all(len(hit.text) <= 400 for hit in found)


def test_a_line_up_to_the_kept_length_is_whole(tmp_path: Path) -> None:
    """The caller says how long a line may be."""
    line = b"out: " + b"x" * (3 * BLOCK_BYTES)
    (hit,) = hits(tmp_path, line + b"\n", keep_bytes=len(line))

    assert (len(hit.text), hit.end) == (len(line), End.NEWLINE)


noises = st.binary().map(lambda data: bytes(byte if byte == 10 else byte | 0x80 for byte in data))


@given(st.lists(st.sampled_from([b"out: 1", b"role 1", b"x", b"12"])), noises)
def test_every_counted_line_is_found_in_any_company(pieces: list[bytes], noise: bytes) -> None:
    """Noise before the lines neither hides nor adds one."""
    data = noise + b"\n" + b"".join(piece + b"\n" for piece in pieces)
    with tempfile.TemporaryDirectory() as folder:
        found = hits(Path(folder), data)

    assert sum(hit.start == "out:" for hit in found) == pieces.count(b"out: 1")
    assert sum(hit.text == "12" for hit in found) == pieces.count(b"12")
