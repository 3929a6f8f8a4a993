"""Differences that may have another cause than the placement, looked at once more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hetero_test.judge.judge import judge
from hetero_test.judge.recheck import differing_factors, doubt
from hetero_test.values.reading import Speculation
from hetero_test.values.record import Pinned, Record
from hetero_test.values.run import Purpose
from hetero_test.values.run_ids import Question
from hetero_test.values.verdict import Conclusion, Judgment, Kind, Verdict
from tests.judge.factories import DRAFTS, RECIPE, changed, context, of, record, run
from tests.runs import altered, beside

OTHER_DRAFTS = Speculation(rounds=25, window=6, accepted=35, offered=70, tokens_per_round=2.4)
APART = ("0: A A", "1: A9 A9")
EQUAL = ("0p: D@4100 D@4100", "1p: D@4100 D@4100")


def swapped(*lines: str, **asked: Any) -> Record:
    """A record in which variant 1 swapped experts otherwise than the baseline."""
    made = context(record(*lines, **asked), "0", swaps=90)
    return context(made, "1", swaps=100)


def exact(made: Record) -> Verdict:
    """The first exact verdict on variant 1."""
    return of(judge(made), Kind.EXACT, "1")[0]


def verdicts(made: Judgment) -> list[str]:
    return [v.result.value for v in of(made, Kind.EXACT, "1")]


# ---- what moved ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ({"swaps": 90}, {"swaps": 90}, None),
        ({}, {}, None),
        ({"swaps": 90}, {"swaps": 100}, "the adaptive expert swaps moved (90 against 100)"),
        ({"swaps": 90}, {}, "the adaptive expert swaps moved (90 against unknown)"),
        (
            {"pcie_share": 0.25},
            {"pcie_share": 0.5},
            "the share of experts read over the link moved (0.25 against 0.5)",
        ),
        (
            {"pcie_share": 0.25, "swaps": 1},
            {"pcie_share": 0.5, "swaps": 2},
            "the share of experts read over the link moved (0.25 against 0.5) and "
            "the adaptive expert swaps moved (1 against 2)",
        ),
        ({"lent_slots": 1, "main_device": "0"}, {"lent_slots": 2, "main_device": "1"}, None),
    ],
    ids=str,
)
def test_what_is_known_to_change_rounding(
    one: dict[str, Any], other: dict[str, Any], words: str | None
) -> None:
    """PCIe share and swaps; what only one log tells was not the same in both."""
    assert differing_factors(beside(run("1"), **one), beside(run("0"), **other)) == words


@pytest.mark.parametrize(
    ("kinds", "drafts", "counts"),
    [
        (("a", "b"), OTHER_DRAFTS, True),
        ((None, "b"), OTHER_DRAFTS, True),
        (("a", "a"), OTHER_DRAFTS, False),
        ((None, None), OTHER_DRAFTS, False),
        (("a", "b"), DRAFTS, False),
        (("a", "b"), None, False),
    ],
)
def test_drafters_of_different_kinds_that_drafted_differently(
    kinds: tuple[str | None, str | None], drafts: Speculation | None, *, counts: bool
) -> None:
    """On unequal cards another draft may come of another kind; of one kind it may not."""
    one = beside(run("1", speculation=drafts), draft_kind=kinds[0])
    other = beside(run("0", speculation=DRAFTS), draft_kind=kinds[1])

    assert (differing_factors(one, other) is not None) is counts


def test_the_kinds_of_the_drafters_are_named() -> None:
    """The cause is told in words for the report."""
    one = beside(run("1", speculation=OTHER_DRAFTS), draft_kind="RTX")

    assert differing_factors(one, run("0", speculation=DRAFTS)) == (
        "drafters of different kinds drafted differently (RTX, unknown)"
    )


def test_equal_streams_need_no_recheck() -> None:
    """What moved beside the residency matters only to a difference."""
    made = swapped("0: A A", "1: A A")

    assert exact(made).result.value == "PASS"
    assert exact(made).recheck is None


# ---- the pinned recipe --------------------------------------------------------------------


def test_a_difference_with_another_cause_asks_for_the_pinned_recipe() -> None:
    """Swaps moved: both sides are to run once more, and until then it is open."""
    verdict = exact(swapped(*APART))

    assert (verdict.result.value, verdict.recheck) == ("INCONCLUSIVE", "p")
    assert verdict.cause == "the adaptive expert swaps moved (100 against 90)"
    assert verdict.reason == (
        "differs from token 9 on, but the adaptive expert swaps moved (100 against 90); "
        "no run with the pinned recipe is usable as a reference"
    )
    assert verdict.difference is not None


def test_equal_under_the_recipe_is_inconclusive_with_the_cause() -> None:
    """The cause is named, and --pinned with it."""
    verdict = exact(swapped(*APART, *EQUAL))

    assert (verdict.result.value, verdict.recheck) == ("INCONCLUSIVE", "p")
    assert verdict.cause == "the adaptive expert swaps moved (100 against 90)"
    assert verdict.reason.endswith("with the pinned recipe the streams are equal: see --pinned")


@pytest.mark.parametrize("words", ["D9@4100 D9@4100", "D@4100 D9@4100", "D@4100 D@4100!TRUNCATED"])
def test_still_different_under_the_recipe_is_a_fail(words: str) -> None:
    """One repeat that differs is enough."""
    verdict = exact(swapped(*APART, "0p: D@4100 D@4100", f"1p: {words}"))

    assert (verdict.result.value, verdict.recheck) == ("FAIL", "p")
    assert verdict.reason == "differs from token 9 on; also with the pinned recipe"
    assert verdict.cause is None


def test_without_a_recipe_it_is_inconclusive() -> None:
    """Nothing could tell the causes apart, so nothing more is run."""
    verdict = exact(swapped(*APART, pinned=Pinned()))

    assert (verdict.result.value, verdict.recheck) == ("INCONCLUSIVE", None)
    assert verdict.reason.endswith("; the matrix has no pinned recipe to tell them apart")


@pytest.mark.parametrize("recipe", [Pinned(flags=("--x",)), Pinned(env=(("X", "1"),))])
def test_a_recipe_may_be_flags_or_environment_alone(recipe: Pinned) -> None:
    """Either is something to run once more with."""
    assert exact(swapped(*APART, pinned=recipe)).recheck == "p"


@pytest.mark.parametrize(
    ("base", "again", "why"),
    [
        ("!CRASHED !CRASHED", "D9 D9", "no run with the pinned recipe is usable as a reference"),
        ("D@? D@?", "D9 D9", "no run with the pinned recipe is usable as a reference"),
        ("D D", "!CRASHED !TIMED_OUT", "no run with the pinned recipe is usable"),
        ("D D", "D9@? D9@?", "no run with the pinned recipe is usable"),
        ("D D9", "E E", "with the pinned recipe the reference does not repeat itself"),
        (
            "D D",
            "E@5011 E@5011",
            "with the pinned recipe the residencies differ "
            "(5011 slots on GTX 1080 Ti against 4400 slots on GTX 1080 Ti)",
        ),
        ("D D", "E@?!TRUNCATED -", "with the pinned recipe the residencies differ"),
    ],
    ids=str,
)
def test_a_recheck_that_tells_nothing_leaves_it_open(base: str, again: str, why: str) -> None:
    """Crashed, noisy, or at two residencies: neither a FAIL nor the end of the doubt."""
    verdict = exact(swapped(*APART, f"0p: {base}", f"1p: {again}"))

    assert verdict.result.value == "INCONCLUSIVE"
    assert why in verdict.reason
    assert verdict.recheck == "p"


def test_a_recheck_that_crashed_in_one_repeat_still_tells() -> None:
    """What the usable repeats show counts."""
    assert exact(swapped(*APART, "0p: !CRASHED D", "1p: D9 !CRASHED")).result.value == "FAIL"
    assert exact(swapped(*APART, "0p: !CRASHED D", "1p: D !CRASHED")).result.value == (
        "INCONCLUSIVE"
    )


def test_what_a_crashed_recheck_printed_does_not_count() -> None:
    """Neither as noise of the reference nor as a difference."""
    noise = exact(swapped(*APART, "0p: D D9!CRASHED", "1p: D9 D9"))
    other = exact(swapped(*APART, "0p: D D", "1p: D D9!CRASHED"))

    assert noise.result.value == "FAIL"
    assert other.reason.endswith("the streams are equal: see --pinned")


def test_runs_of_the_recheck_at_another_residency_are_not_compared() -> None:
    """Only the repeats that have the reference's residency tell."""
    verdict = exact(swapped(*APART, "0p: D D", "1p: E@5011 D"))

    assert verdict.result.value == "INCONCLUSIVE"
    assert exact(swapped(*APART, "0p: D C@5011", "1p: D9 D")).result.value == "FAIL"


def test_rechecks_are_no_repeats_and_no_reference() -> None:
    """They are kept apart: noise among them is no verdict of its own."""
    made = judge(swapped(*APART, "0p: D D9", "1p: D D9"))

    assert [v.variant for v in made.verdicts if v.kind is Kind.REPEAT] == ["0", "1"]


def test_a_recheck_of_another_prompt_is_not_taken() -> None:
    """Each prompt's difference is looked at with its own runs."""
    made = swapped(*APART, "0p: D D", "1p: D9 D9")
    made = changed(changed(made, "0p", probe="long"), "1p", probe="long")

    assert exact(made).result.value == "INCONCLUSIVE"


def test_the_first_repeat_of_the_pinned_reference_counts_not_the_first_stored() -> None:
    """In what order runs were stored decides nothing."""
    made = swapped(*APART, "0p: D E@5011", "1p: D9 D9")
    backwards = made.__class__(
        manifest=made.manifest, runs=made.runs, rechecks=made.rechecks[::-1], ending=made.ending
    )

    assert exact(backwards) == exact(made)


def test_a_difference_between_repeats_is_looked_at_in_the_same_way() -> None:
    """Repeats that differ while their swaps moved run again under the recipe."""

    def repeat(*lines: str) -> tuple[str, str]:
        made = context(record("0: A A", "1: A A9", *lines), "1", swaps=90)
        verdict = of(judge(context(made, "1", 2, swaps=100)), Kind.REPEAT, "1")[0]
        assert verdict.recheck == "p"
        return verdict.result.value, verdict.reason.rpartition("; ")[2]

    unusable = "no run with the pinned recipe is usable"
    assert repeat() == ("INCONCLUSIVE", f"{unusable} as a reference")
    assert repeat("1p: D D") == (
        "INCONCLUSIVE",
        "with the pinned recipe the streams are equal: see --pinned",
    )
    assert repeat("1p: D D9") == ("FAIL", "also with the pinned recipe")
    assert repeat("1p: D !CRASHED") == ("INCONCLUSIVE", unusable)
    assert repeat("1p: D D9@5011")[0] == "INCONCLUSIVE"


def test_a_stream_that_just_stops_is_not_explained_by_what_moved() -> None:
    """TRUNCATED is no matter of rounding; DEGENERATE may be: a loop can come of one token."""
    truncated = swapped("0: A A", "1: A<9!TRUNCATED A<9!TRUNCATED")
    stuck = swapped("0: A A", "1: B!DEGENERATE B!DEGENERATE")

    part = asked(left_out=("--adapt-every",))
    pinned = swapped("0: A A", "1: A<9!TRUNCATED A<9!TRUNCATED", pinned=part)

    assert (exact(truncated).result.value, exact(truncated).recheck) == ("FAIL", None)
    assert exact(pinned).result.value == "FAIL"
    assert (exact(stuck).result.value, exact(stuck).recheck) == ("INCONCLUSIVE", "p")


# ---- --pinned from the start --------------------------------------------------------------


def asked(**changes: Any) -> Pinned:
    return Pinned(flags=RECIPE.flags, env=RECIPE.env, asked=True, **changes)


def test_under_pinned_a_difference_is_a_fail_at_once() -> None:
    """The recipe is in force already: what moves all the same is no excuse."""
    verdict = exact(swapped(*APART, pinned=asked()))

    assert (verdict.result.value, verdict.recheck) == ("FAIL", None)


def test_a_recipe_that_the_engine_does_not_know_in_full_pins_nothing() -> None:
    """A flag was left out and what it would pin moved: open, whether asked for or re-checked."""
    part = Pinned(flags=RECIPE.flags, left_out=("--pcie-frac",))
    again = swapped(*APART, "0p: D D", "1p: D9 D9", pinned=part)
    moving = context(context(again, "0p", swaps=1), "1p", swaps=2)
    first = exact(swapped(*APART, pinned=asked(left_out=("--adapt-every",))))

    assert exact(again).result.value == "FAIL"
    assert exact(moving).result.value == "INCONCLUSIVE"
    assert exact(moving).reason.endswith("; the pinned recipe is not complete here")
    assert first.result.value == "INCONCLUSIVE"
    assert first.cause == "the adaptive expert swaps moved (100 against 90)"


def test_a_recipe_that_is_not_complete_excuses_nothing_that_did_not_move() -> None:
    """With shares and swaps equal on both sides the difference is a FAIL."""
    made = record(*APART, pinned=asked(left_out=("--adapt-every",)))

    assert exact(made).result.value == "FAIL"


def test_an_incomplete_recipe_does_not_excuse_drafters() -> None:
    """What is pinned about drafts is their effect on rounding, not the drafts."""
    part = Pinned(flags=RECIPE.flags, asked=True, left_out=("--x",))
    made = context(record(*APART, pinned=part), "1", draft_kind="RTX")
    made = changed(changed(made, "0", speculation=DRAFTS), "1", speculation=OTHER_DRAFTS)

    assert exact(made).result.value == "FAIL"


# ---- one repeat ---------------------------------------------------------------------------


def test_with_one_repeat_a_difference_is_to_be_confirmed() -> None:
    """A difference found with one repeat needs one more run of both sides before it is a FAIL."""
    verdict = exact(record("0: A", "1: A9"))

    assert (verdict.result.value, verdict.recheck) == ("INCONCLUSIVE", "c")
    assert verdict.reason == ("differs from token 9 on, seen once; variant 1 was not run once more")


def test_a_confirmed_difference_is_a_fail() -> None:
    """The same on both sides once more."""
    verdict = exact(record("0: A", "1: A9", "0c: A", "1c: A9"))

    assert (verdict.result.value, verdict.recheck) == ("FAIL", "c")
    assert verdict.reason == "differs from token 9 on, twice alike"


def test_wrong_output_is_confirmed_too() -> None:
    """A stream that broke off once may have been an accident."""
    made = record("0: A", "1: A<9!TRUNCATED", "0c: A", "1c: A<9!TRUNCATED")

    assert exact(record("0: A", "1: A<9!TRUNCATED")).recheck == "c"
    assert exact(made).result.value == "FAIL"


@pytest.mark.parametrize(
    ("base", "again", "why"),
    [
        ("A", "A", "variant 1 gave another stream when it was run once more"),
        ("A9", "A9", "variant 0 gave another stream when it was run once more"),
        ("A", "!CRASHED", "variant 1 was CRASHED when it was run once more"),
        ("!CRASHED", "A9", "variant 0 was CRASHED when it was run once more"),
        ("-", "A9", "variant 0 was not run once more"),
        ("A", "-", "variant 1 was not run once more"),
        ("A", "A9!DEGENERATE", "variant 1 was DEGENERATE when it was run once more"),
        (
            "A@4300",
            "A9",
            "variant 0 had another residency when it was run once more (4300 slots on GTX 1080 Ti)",
        ),
        ("A", "A9@?", "variant 1 had another residency when it was run once more (unknown)"),
    ],
)
def test_a_difference_that_does_not_come_again_alike_is_open(
    base: str, again: str, why: str
) -> None:
    """Both sides have to do the same once more, at the residency they had."""
    verdict = exact(record("0: A", "1: A9", f"0c: {base}", f"1c: {again}"))

    assert verdict.result.value == "INCONCLUSIVE"
    assert verdict.reason == f"differs from token 9 on, seen once; {why}"


@pytest.mark.parametrize("turn", [1, -1])
def test_of_two_records_of_one_further_run_both_must_agree(turn: int) -> None:
    """A repeat that is recorded twice confirms nothing that one of the two denies."""
    made = record("0: A", "1: A9", "0c: A", "1c: A9")
    twice = (*made.rechecks, altered(made.rechecks[0], stream=(1, 2, 3), order=9999))

    assert exact(replace(made, rechecks=twice[::turn])).result.value == "INCONCLUSIVE"


@pytest.mark.parametrize("purpose", [p for p in Purpose if p is not Purpose.RECHECK])
def test_only_what_was_run_once_more_confirms(purpose: Purpose) -> None:
    """A run under the id of a further run, made for another purpose, is none."""
    made = record("0: A", "1: A9", "0c: A", "1c: A9")

    assert exact(changed(made, "0c", purpose=purpose)).result.value == "INCONCLUSIVE"
    assert exact(changed(made, "1c", purpose=purpose)).result.value == "INCONCLUSIVE"


def test_with_one_repeat_what_moved_is_pinned_not_confirmed() -> None:
    """The pinned runs are a second look at both sides as well."""
    made = swapped("0: A", "1: A9", "0p: D", "1p: D9", "0c: A", "1c: A9")

    assert exact(swapped("0: A", "1: A9")).recheck == "p"
    assert (exact(made).result.value, exact(made).recheck) == ("FAIL", "p")


def test_with_one_repeat_under_pinned_a_difference_is_confirmed() -> None:
    """Pinning does not make one observation two."""
    assert doubt(record("0: A", "1: A9", pinned=asked()), run("1"), run("0")) is Question.CONFIRM


def test_anchors_and_homes_are_looked_at_once_more_under_their_own_ids() -> None:
    """The anchor's difference is settled by the anchor's own further runs."""
    lines = ("0: A", "1: B@5011", "1f: A9", "0c: A", "1fc: A9")
    made = of(judge(record(*lines)), Kind.ANCHOR, "1f")[0]

    assert (made.result.value, made.reason) == ("FAIL", "differs from token 9 on, twice alike")


def test_an_open_difference_makes_the_matrix_inconclusive() -> None:
    """Neither PASS nor FAIL comes of a doubt."""
    assert judge(swapped(*APART, *EQUAL)).conclusion is Conclusion.INCONCLUSIVE
    assert judge(record("0: A", "1: A9")).conclusion is Conclusion.INCONCLUSIVE
