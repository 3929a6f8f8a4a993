"""The different lines of a log, each kept once, and what keeps a long log cheap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hetero_test.engines.remarks import MOST_SHAPES, WIDTH, Lines, signs_of, template
from hetero_test.values.reading import Symptom
from hetero_test.values.remark import Weight


def found(*lines: str, known: str = "") -> list[tuple[str, Weight]]:
    """Lines and weights of a log."""
    taken = Lines(lambda text: Weight.KNOWN if known and known in text else None)
    taken.take([line.encode() for line in lines])
    return [(remark.line, remark.weight) for remark in taken.found()]


def test_lines_that_differ_in_numbers_paths_and_addresses_are_one() -> None:
    """Two runs of one command print other times, addresses and folders."""
    assert template("at 0x7f12 after 3.5 s in /a/b.txt") == template(
        "at 0x9ab after 12.25 s in /c/d/e.bin"
    )
    assert template("layer 3 is here") != template("layer 3 is there")


def test_the_first_of_several_lines_is_kept() -> None:
    """A line that comes back with other numbers is told once, as it was first."""
    assert found("step 1 of 9", "step 2 of 9", "other") == [
        ("step 1 of 9", Weight.NOTHING),
        ("other", Weight.NOTHING),
    ]


def test_what_the_reader_knows_is_no_remark() -> None:
    """A line that the engine's reader knows never weighs."""
    assert found("peer access failed", known="peer access") == []


def test_lines_that_say_something_have_places_of_their_own() -> None:
    """However many lines say nothing, one that tells of a failure is kept."""
    noise = [f"{chr(97 + n % 26)}{chr(97 + n // 26)} is here" for n in range(600)]
    kept = found(*noise, "the card was lost")
    assert kept[-1] == ("the card was lost", Weight.DOUBTFUL)
    assert len(kept) < len(noise)


def test_a_failure_is_seen_behind_more_shapes_than_are_told_apart() -> None:
    """A log of endless variety costs bounded memory, and hides no failure."""
    words = [f"{'ab'[n & 1]}{'cd'[n >> 1 & 1]}{n:x}" for n in range(16)]
    taken = Lines(lambda _: None)
    lines = [b"x" * n for n in range(1, 40)] + [word.encode() for word in words]
    for n in range(MOST_SHAPES // 50):
        taken.take([line + bytes([97 + n % 26, 97 + n // 26 % 26]) for line in lines])
    taken.take([b"an illegal memory access was encountered"])
    assert taken.found()[-1].weight is Weight.FATAL


def test_a_failure_within_an_endless_line_is_seen() -> None:
    """Of a very long line the part around its first telling word is looked at."""
    (one,) = found("." * 5000 + " CUDA error: here " + "." * 5000)
    assert one[1] is Weight.FATAL
    assert "CUDA error: here" in one[0]
    assert len(one[0]) <= WIDTH


def test_signs_stand_in_the_order_of_the_log() -> None:
    """The first of a chain of failures is its cause."""
    taken = Lines(lambda _: None)
    taken.take([b"ErrorDeviceLost", b"a.cpp:1: GGML_ASSERT(x) failed", b"out of memory"])
    assert [sign.symptom for sign in signs_of(taken.found())] == [
        Symptom.ERROR,
        Symptom.ERROR,
        Symptom.NO_MEMORY,
    ]


@given(st.lists(st.binary(max_size=80).map(lambda line: line.replace(b"\n", b"")), max_size=30))
def test_any_bytes_are_taken_and_in_any_portions(lines: list[bytes]) -> None:
    """What is found does not depend on where a log was cut into blocks, but for indentation."""
    plain = [line.lstrip() for line in lines]
    whole, single = Lines(lambda _: None), Lines(lambda _: None)
    whole.take(plain)
    for line in plain:
        single.take([line])
    assert whole.found() == single.found()
