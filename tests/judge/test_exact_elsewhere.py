"""Rule 2 where a placement changes the kind of device, or where the main model is."""

from __future__ import annotations

import pytest

from hetero_test.judge.judge import judge
from hetero_test.values.verdict import Conclusion, Kind
from tests.judge.factories import (
    context,
    first_exact,
    judged,
    of,
    planned,
    record,
    results,
)

EXACT = Kind.EXACT
MOVED = ("0: A A", "2: C@5011~RTX C@5011~RTX")


# ---- kinds that differ --------------------------------------------------------------------


def test_kinds_that_differ_are_not_claimed_with_what_was_seen() -> None:
    """What crosses kinds is compared and shown, never PASS and never FAIL."""
    other = judged("0: A A", "2: A9~RTX A~RTX", on_device=())

    assert results(other, EXACT, "2") == ["NOT_CLAIMED"] * 2
    assert [v.reason for v in of(other, EXACT, "2")] == [
        "not claimed to be equal: differs from token 9 on",
        "not claimed to be equal: equal over 60 tokens",
    ]
    assert first_exact(other, "2").against == ("0", 1)
    assert first_exact(other, "2").difference is not None


def test_a_strict_prefix_that_is_not_claimed_is_said_so() -> None:
    """One stream a strict prefix of the other, wherever two are compared."""
    made = judged("0: A A", "2: A<40~RTX A~RTX", on_device=())

    assert first_exact(made, "2").reason == (
        "not claimed to be equal: it is a strict prefix: parts at token 40"
    )


def test_variants_that_share_the_other_kind_are_claimed_among_themselves() -> None:
    """Like devices give like streams: the second on that kind is compared with the first."""
    made = judged("0: A A", "2: C~RTX C~RTX", "3: C~RTX C9~RTX", on_device=())

    assert results(made, EXACT, "2") == ["NOT_CLAIMED"] * 2
    assert [v.against for v in of(made, EXACT, "3")] == [("2", 1)] * 2
    assert results(made, EXACT, "3") == ["PASS", "FAIL"]


def test_a_variant_that_claims_nothing_is_not_claimed_at_any_residency() -> None:
    """With claims = false: compared with the baseline and shown, even at equal residency."""
    variants = (planned("0"), planned("1", claims=False))
    made = judged("0: A A", "1: A9 C@5011", variants=variants)

    assert results(made, EXACT, "1") == ["NOT_CLAIMED"] * 2
    assert {v.against for v in of(made, EXACT, "1")} == {("0", 1)}


@pytest.mark.parametrize("state", ["TRUNCATED", "DEGENERATE"])
@pytest.mark.parametrize("word", ["A<9", "A"])
def test_wrong_output_that_is_not_claimed_is_inconclusive(state: str, word: str) -> None:
    """It cannot fail a claim that nobody made, but it never supports a PASS either."""
    variants = (planned("0"), planned("1", claims=False), planned("2"))
    made = judged("0: A", f"1: {word}!{state}", "2: A", variants=variants)

    assert results(made, EXACT, "1") == ["INCONCLUSIVE"]
    assert first_exact(made, "1").reason == (
        f"not claimed to be equal, and not compared: {state}: it was {state.lower()}"
    )
    assert made.conclusion is Conclusion.INCONCLUSIVE


@pytest.mark.parametrize("state", ["TRUNCATED", "DEGENERATE"])
def test_wrong_output_on_another_kind_is_inconclusive_likewise(state: str) -> None:
    """The first variant of an unclaimed group has nothing to be held against."""
    made = judged("0: A A", f"2: C~RTX C<9~RTX!{state}", on_device=())

    assert results(made, EXACT, "2") == ["NOT_CLAIMED", "INCONCLUSIVE"]


def test_what_is_not_claimed_and_has_no_baseline_is_inconclusive() -> None:
    """NOT_CLAIMED says what was seen; where nothing could be, it is not said."""
    variants = (planned("0"), planned("1", claims=False))
    dead = judged("0: !CRASHED !CRASHED", "1: A A", variants=variants)

    assert results(dead, EXACT, "1") == ["INCONCLUSIVE"] * 2
    assert first_exact(dead, "1").reason == (
        "not claimed to be equal, and not compared: the baseline has no usable run of known "
        "residency"
    )


# ---- home baselines -----------------------------------------------------------------------


def test_a_moved_main_model_is_compared_with_the_baseline_at_its_new_home() -> None:
    """Its reference is variant 0 on that device alone, with the variant's residency."""
    made = judged(*MOVED, "3: C@5011~RTX C7@5011~RTX", "0-home-2: C@5011~RTX C@5011~RTX")

    assert [v.against for v in of(made, EXACT, "2")] == [("0-home-2", 1)] * 2
    assert results(made, EXACT, "2") == ["PASS"] * 2
    assert results(made, EXACT, "3") == ["PASS", "FAIL"]


def test_a_wrong_stream_at_the_new_home_is_a_fail() -> None:
    """It cannot be excused by its kind of device: the baseline was there too."""
    made = judged(*MOVED, "0-home-2: C9@5011~RTX C9@5011~RTX")

    assert results(made, EXACT, "2") == ["FAIL"] * 2


@pytest.mark.parametrize(
    ("home", "gave"),
    [
        ((), "no run"),
        (("0-home-2: C@4900~RTX C@4901~RTX",), "4900 slots on RTX, 4901 slots on RTX"),
        (("0-home-2: !CRASHED !CRASHED",), "CRASHED"),
        (("0-home-2: C@5011 C@5011",), "5011 slots on GTX 1080 Ti"),
    ],
)
def test_a_home_that_was_not_reached_is_inconclusive_with_what_it_gave(
    home: tuple[str, ...], gave: str
) -> None:
    """Without a baseline of that residency the move was not tested."""
    made = judged(*MOVED, "3: C@5011~RTX C@5011~RTX", *home)

    assert results(made, EXACT, "2") == ["INCONCLUSIVE"] * 2
    assert first_exact(made, "2").reason == (
        f"the baseline on that device alone did not give 5011 slots on RTX (it gave {gave})"
    )
    assert [v.against for v in of(made, EXACT, "3")] == [("2", 1)] * 2


def test_the_first_home_run_of_the_right_residency_is_the_reference() -> None:
    """A repeat that crashed, or opened another size, is passed over."""
    made = judged(
        "0: A A A",
        "2: C@5011~RTX C@5011~RTX C@5011~RTX",
        "0-home-2: C9@5011~RTX!CRASHED D@4900~RTX C@5011~RTX",
    )

    assert {v.against for v in of(made, EXACT, "2")} == {("0-home-2", 3)}


def test_a_home_baseline_that_does_not_repeat_is_no_reference() -> None:
    """The baseline on that device is noisy: nothing was tested there."""
    made = judged(*MOVED, "0-home-2: C@5011~RTX C9@5011~RTX")

    assert results(made, EXACT, "2") == ["INCONCLUSIVE"] * 2
    assert results(made, Kind.REPEAT, "0-home-2") == ["FAIL"]


def test_a_pair_at_home_does_not_cover_a_move() -> None:
    """Pairs stand in for anchors; a moved main model has a home baseline or nothing."""
    made = judged(
        *("0: A A", "2: B@5011 C@5011~RTX", "2f: A@4100 -"),
        *("0s: D@4000 D@4000", "2s: D@4000 D@4000"),
    )

    assert results(made, EXACT, "2") == ["SKIPPED", "INCONCLUSIVE"]


# ---- forced differences -------------------------------------------------------------------


def test_adaptive_swaps_that_did_not_move_excuse_nothing() -> None:
    """A difference with the same swaps and share on both sides is a FAIL as it stands."""
    alike = context(record("0: A A", "1: A9 A9"), "1", swaps=312, pcie_share=0.26)
    made = judge(context(alike, "0", swaps=312, pcie_share=0.26))

    assert results(made, EXACT, "1") == ["FAIL"] * 2
    assert first_exact(made, "1").recheck is None
