"""Where two streams part, and which runs have the same one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hetero_test.judge.streams import SHOWN, clusters, first_difference, letter, lettering
from hetero_test.values.run import stream_md5
from hetero_test.values.verdict import Difference
from tests.judge.factories import run

IDS = st.lists(st.integers(0, 3), max_size=12).map(tuple)


def test_equal_streams_have_no_difference() -> None:
    """Not even empty ones."""
    assert first_difference((1, 2), (1, 2)) is None
    assert first_difference((), ()) is None


def test_the_first_difference_shows_both_continuations() -> None:
    """A few ids of each, from the place on where they part."""
    found = first_difference((*range(30),), (*range(5), 99, *range(6, 30)))

    assert found == Difference(
        index=5, this=tuple(range(5, 5 + SHOWN)), reference=(99, *range(6, 5 + SHOWN))
    )


def test_a_strict_prefix_is_said_so() -> None:
    """Which side ended first, and what the other one went on with."""
    assert first_difference((1, 2), (1, 2, 3)) == Difference(
        index=2, this=(), reference=(3,), prefix="this"
    )
    assert first_difference((1, 2, 3), (1, 2)) == Difference(
        index=2, this=(3,), reference=(), prefix="reference"
    )


def test_one_that_differs_and_is_shorter_is_no_prefix() -> None:
    """Only a stream that agrees to its end is a prefix."""
    found = first_difference((1, 9), (1, 2, 3))

    assert found is not None
    assert found.prefix is None


@given(one=IDS, other=IDS)
def test_the_index_is_the_first_place_at_which_they_part(
    one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    """Equal before it, unequal at it (or one has ended); symmetric in its two sides."""
    found, back = first_difference(one, other), first_difference(other, one)
    if one == other:
        assert found is back is None
        return
    assert found is not None
    assert back is not None
    assert one[: found.index] == other[: found.index]
    assert one[found.index : found.index + 1] != other[found.index : found.index + 1]
    assert (back.index, back.this, back.reference) == (found.index, found.reference, found.this)
    assert (found.prefix is not None) == (found.index == min(len(one), len(other)))


def test_letters_go_on_behind_z() -> None:
    """A to Z, then AA, AB and so on."""
    assert [letter(n) for n in (0, 1, 25, 26, 27, 51, 52, 701, 702)] == [
        *("A", "B", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"),
    ]


def test_a_cluster_is_all_runs_with_one_stream() -> None:
    """Named by a letter in order of appearance and the md5 of the ids, 32 digits."""
    runs = [run("0"), run("1", word="B@5011"), run("2", word="A@5011"), run("3", word="!CRASHED")]

    found = clusters(runs)

    assert [(c.letter, c.runs, c.residencies) for c in found] == [
        (
            "A",
            (("0", "default", 1), ("2", "default", 1)),
            ("4400 slots on GTX 1080 Ti", "5011 slots on GTX 1080 Ti"),
        ),
        ("B", (("1", "default", 1),), ("5011 slots on GTX 1080 Ti",)),
    ]
    assert [c.md5 for c in found] == [runs[0].md5, runs[1].md5]


def test_streams_of_two_prompts_are_two_clusters() -> None:
    """Equal ids after another prompt are no sign of anything."""
    assert len(clusters([run("0"), run("0", probe="long")])) == 2


def test_the_hash_is_the_one_that_earlier_reports_used() -> None:
    """md5 of the decimal ids joined by commas, so pasted hashes stay comparable."""
    assert stream_md5((311, 12, 9)) == "14c7e20e05b26c2054543818106334a5"


def test_lettering_is_by_order_of_repeats() -> None:
    """A B B: which repeats agree; those without a stream are left out."""
    runs = [run("1", 1), run("1", 2, "A9"), run("1", 3, "!CRASHED"), run("1", 4, "A9")]

    assert lettering(runs) == "A B B"
