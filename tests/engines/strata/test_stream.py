"""The stream is the one well-formed dump on standard output, or there is none."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from hetero_test.engines.lines import BLOCK_BYTES
from tests.engines.strata.samples import DECODE, IDS, PROMPT, STDERR, STDOUT, dump, read, reread

TEXT = " ".join(map(str, IDS))


def test_the_dump_is_the_stream(tmp_path: Path) -> None:
    """An ordinary log gives its stream, its echo, and no trouble."""
    reading = read(tmp_path)

    assert reading.stream == IDS
    assert reading.stream_trouble is None
    assert reading.echo == PROMPT
    assert reading.echo_expected


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((), "no line"),
        (("output: 60",), "no line"),
        (("output : 1 2 3",), "no line"),
        (("text before output  : 1 2 3",), "no line"),
        ((f"output  : {TEXT}", f"output  : {TEXT}"), "2 output dumps"),
        ((f"output  : {TEXT}", "output  : 1"), "2 output dumps"),
        ((f"output  : {TEXT}", "output  : cut"), "2 output dumps"),
        (("output  : 1 2 3strata mtp: draft layer",), "foreign text"),
        (("output  : 1 2 strata 3",), "foreign text"),
        (("output  :1 2 3",), "foreign text"),
        (("output  : 1  2",), "foreign text"),
        (("output  : 1 2.5",), "foreign text"),
        (("output  : 1 ٣",), "foreign text"),
        (("output  : 1 -2 3",), "a negative id"),
        (("output  : 1 2147483648",), "no 32-bit number"),
        (("output  : 1 99999999999999999999",), "no 32-bit number"),
        (("output  : 1 2 3", " 4 5 6"), "goes on in another line"),
        (("output  : 1 2 3", "4 5 6"), "goes on in another line"),
        (("output  : 1 2 3", "foreign line", " 4 5 6"), "goes on in another line"),
        (("output  : 1 2 3", " 4 5strata mtp: late"), "goes on in another line"),
        (("output  : 1 2 3\r 4 5 6",), "a carriage return"),
        (("output  : 1 2 3\rx",), "a carriage return"),
        (("output  : 1 2\x1b[31m3 4",), "foreign text"),
        (("output  : 1 2\x1b[2K 3 4",), "foreign text"),
        (("output  : 1 2\x003 4",), "foreign text"),
    ],
)
def test_anything_else_is_no_stream(tmp_path: Path, lines: tuple[str, ...], said: str) -> None:
    """A count line, a second, cut, wrapped or foreign dump is none, and says why."""
    reading = read(tmp_path, dump(*lines))

    assert reading.stream is None
    assert said in (reading.stream_trouble or "")


@pytest.mark.parametrize("rest", [" 4 5 6", ": 4 5 6", " of 2 MiB", ""])
def test_a_short_dump_before_a_line_of_another_library_is_cut(tmp_path: Path, rest: str) -> None:
    """The rest of the ids may stand behind the foreign text: no stream, and not a short one."""
    cut = dump("output  : 1 2 3", f"[ggml] note: pinned buffer reused{rest}")

    reading = read(tmp_path, cut, max_new=6)
    assert reading.stream is None
    assert "cut by foreign text after 3 ids" in (reading.stream_trouble or "")

    assert read(tmp_path, cut, max_new=3).stream == (1, 2, 3)
    ended = ("--stop-eos", "--eos-ids", "3")
    assert read(tmp_path, cut, max_new=6, flags=ended).stream == (1, 2, 3)
    assert read(tmp_path, dump("output  : 1 2 3"), max_new=6).stream == (1, 2, 3)


@pytest.mark.parametrize("before", range(0, 40, 3))
def test_foreign_text_may_lie_in_the_next_block(tmp_path: Path, before: int) -> None:
    """Where the file is cut for reading hides no line behind the dump."""
    filler = ("x" * 99 + "\n") * (BLOCK_BYTES // 100 + 1)
    stdout = filler[-(BLOCK_BYTES - before) :] + "output  : 1 22 333\n\n[ggml] note 4\ndecode\n"

    assert "foreign text" in (read(tmp_path, stdout, max_new=5).stream_trouble or "")


@pytest.mark.parametrize(
    "line",
    [
        "output  : 1 2 3",
        "output  : 1 2 3 \t ",
        "output  : 1 2 3\r",
        "output  : 1 2 3\r\r",
        "\x1b[32moutput  : 1 2 3\x1b[0m",
        "output  :\x1b[1m 1 2\x1b[0m 3",
        "\x1b[2K\x1b[Goutput  : 1 2 3",
        "\x1b]0;title\x07output  : 1 2 3",
        "loading 99%\routput  : 1 2 3",
        "\0\0output  : 1 2 3\0",
    ],
)
def test_what_a_terminal_hides_does_no_harm(tmp_path: Path, line: str) -> None:
    """Colors, carriage returns and NULs around the ids change nothing."""
    assert read(tmp_path, dump(line), max_new=3).stream == (1, 2, 3)


def test_a_dump_that_the_file_ends_in_is_cut(tmp_path: Path) -> None:
    """Without its line break the last id may be only the beginning of one."""
    reading = read(tmp_path, "output  : 311 12 9")

    assert reading.stream is None
    assert "the end of the file" in (reading.stream_trouble or "")


@pytest.mark.parametrize("before", range(0, 40, 3))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_dump_may_lie_across_two_blocks(tmp_path: Path, before: int, end: str) -> None:
    """Where the file is cut for reading changes no stream."""
    line = "output  : 1 22 333 4444 55555" + end
    filler = ("x" * 99 + end) * (BLOCK_BYTES // 100 + 1)
    stdout = filler[-(BLOCK_BYTES - before) :] + line + "decode" + end

    assert read(tmp_path, stdout, max_new=5).stream == (1, 22, 333, 4444, 55555)


def test_an_empty_dump_is_an_empty_stream(tmp_path: Path) -> None:
    """The bare label is a dump of no ids."""
    assert read(tmp_path, dump("output  :")).stream == ()


def test_standard_error_holds_no_stream(tmp_path: Path) -> None:
    """A dump counts on standard output only, and one on standard error does no harm."""
    only_there = read(tmp_path, "", STDERR + "output  : 1 2 3\n")
    on_both = read(tmp_path, STDOUT, STDERR + "output  : 1 2 3\nprompt  : 1\n")

    assert only_there.stream is None
    assert on_both.stream == IDS
    assert on_both.echo == PROMPT


def test_ids_after_the_result_block_are_not_of_the_dump(tmp_path: Path) -> None:
    """What begins with numbers behind the decode line is another table."""
    assert read(tmp_path, STDOUT + " 60 rounds\n12\n").stream == IDS


def test_more_ids_than_asked_are_given_as_they_are(tmp_path: Path) -> None:
    """A dump that is somewhat too long is not shortened."""
    assert read(tmp_path, dump("output  : 1 2 3 4"), max_new=3).stream == (1, 2, 3, 4)


@pytest.mark.parametrize("count", [5000, 2_000_000])
def test_far_more_ids_than_asked_are_not_kept(tmp_path: Path, count: int) -> None:
    """An endless dump is no stream, however long its line is."""
    reading = read(tmp_path, dump("output  :" + " 123456" * count))

    assert reading.stream is None
    assert "ids" in (reading.stream_trouble or "")
    assert reading.timings.decode_tok_s == 7.23


def test_many_long_dumps_take_no_more_memory_than_one(tmp_path: Path) -> None:
    """A second dump is counted, not kept."""
    dumps = "output  : 1" + " 1234567" * 100_000
    read(tmp_path, dump(*[dumps] * 40), max_new=100_000)
    tracemalloc.start()
    try:
        reading = reread(tmp_path, max_new=100_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert "40 output dumps" in (reading.stream_trouble or "")
    assert peak < 24 * 2**20


def test_a_long_stream_is_whole(tmp_path: Path) -> None:
    """As many ids as were asked for are kept, whatever their number."""
    ids = tuple(range(100_000_000, 100_100_000))

    assert (
        read(tmp_path, dump("output  : " + " ".join(map(str, ids))), max_new=100_000).stream == ids
    )


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("prompt  : 220 5 17", "prompt  : 220 5 17"),
        ("prompt  : 220 5 17x",),
        ("prompt: 220 5 17",),
    ],
)
def test_an_echo_is_one_whole_line(tmp_path: Path, lines: tuple[str, ...]) -> None:
    """Without exactly one well-formed prompt line there is no echo; the stream stays."""
    stdout = STDOUT.replace("prompt  : 220 5 17\n", "".join(f"{line}\n" for line in lines))
    reading = read(tmp_path, stdout)

    assert reading.echo is None
    assert reading.stream == IDS


def test_a_second_prompt_line_is_told(tmp_path: Path) -> None:
    """Two echoes are worth a word, even if they are equal."""
    reading = read(tmp_path, "prompt  : 220 5 17\n" + STDOUT)

    assert "the prompt is repeated 2 times" in reading.warnings


def test_files_that_cannot_be_read_are_no_stream(tmp_path: Path) -> None:
    """Reading never raises; a missing file is said to be missing."""
    read(tmp_path)
    (tmp_path / "stdout").unlink()
    (tmp_path / "stdout").mkdir()
    reading = reread(tmp_path)

    assert reading.stream is None
    assert "could not be read" in (reading.stream_trouble or "")
    assert any("not read to its end" in warning for warning in reading.warnings)


@pytest.mark.parametrize(
    ("flags", "last", "ended"),
    [
        (("--stop-eos", "--eos-ids", "7,9"), 9, True),
        (("--stop-eos", "--eos-ids", "7 9"), 7, True),
        (("--stop-eos", "--eos-ids", "7,9"), 8, False),
        (("--eos-ids", "7,9"), 9, False),
        (("--stop-eos",), 9, False),
        (("--stop-eos", "--eos-ids"), 9, False),
    ],
)
def test_an_early_end_is_told_by_its_last_id(
    tmp_path: Path, flags: tuple[str, ...], last: int, ended: bool
) -> None:
    """Only where the user named the ids that end a sequence can an end be told."""
    assert read(tmp_path, dump(f"output  : 1 2 {last}"), flags=flags).end_of_sequence is ended


def test_an_end_that_cannot_be_told_is_a_warning(tmp_path: Path) -> None:
    """``--stop-eos`` alone leaves open whether a short stream was cut."""
    warnings = read(tmp_path, flags=("--stop-eos",)).warnings

    assert any("--eos-ids" in warning for warning in warnings)
    assert not any("--eos-ids" in warning for warning in read(tmp_path).warnings)


def test_the_tail_holds_the_end_of_both_files(tmp_path: Path) -> None:
    """The last lines of standard output come first, those of standard error last."""
    reading = read(tmp_path, STDOUT, "x" * 1000 + "\nlast words\n\n")

    assert reading.tail[-2:] == ("x" * 300, "last words")
    assert DECODE in reading.tail
