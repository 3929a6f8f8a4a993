"""What became of one variant."""

from __future__ import annotations

import pytest

from hetero_test.judge.judge import judge
from hetero_test.values.run import Effect
from hetero_test.values.verdict import Judgment, VariantSummary
from tests.judge.factories import changed, judged, planned, record, two_prompts

APART = ("0: A A", "1: B@5011 B@5011")


def summary(made: Judgment, name: str) -> VariantSummary:
    return next(summary for summary in made.summaries if summary.id == name)


def standing(made: Judgment, name: str) -> tuple[bool, bool, bool]:
    """(exact, at its own residency, at the baseline's)."""
    found = summary(made, name)
    return found.exact, found.own_residency, found.baseline_residency


# ---- effects ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effects", "worst"),
    [
        ((Effect.PROVEN, Effect.PROVEN), Effect.PROVEN),
        ((Effect.PROVEN, Effect.UNOBSERVABLE), Effect.UNOBSERVABLE),
        ((Effect.NOT_SEEN, Effect.UNOBSERVABLE), Effect.NOT_SEEN),
        ((Effect.NOT_SEEN, Effect.CONTRADICTED), Effect.CONTRADICTED),
        ((None, Effect.PROVEN), Effect.PROVEN),
        ((None, None), None),
    ],
)
def test_a_variants_effect_is_the_worst_of_its_runs(
    effects: tuple[Effect | None, Effect | None], worst: Effect | None
) -> None:
    """In the order CONTRADICTED, NOT_SEEN, UNOBSERVABLE, PROVEN."""
    made = record("0: A A", "1: A A")
    for repeat, effect in enumerate(effects, 1):
        made = changed(made, "1", repeat, effect=effect)

    assert summary(judge(made), "1").effect is worst


def test_the_baseline_has_no_effect() -> None:
    """It places nothing."""
    made = changed(record("0: A A", "1: A A"), "0", effect=Effect.PROVEN)

    assert summary(judge(made), "0").effect is None


def test_only_usable_runs_show_an_effect() -> None:
    """A crashed run's log is no proof, good or bad."""
    made = changed(record("0: A A", "1: A A!CRASHED"), "1", 2, effect=Effect.CONTRADICTED)

    assert summary(judge(made), "1").effect is Effect.PROVEN
    assert summary(judged("0: A A", "1: !CRASHED !CRASHED"), "1").effect is None


def test_extra_runs_do_not_change_a_variants_effect() -> None:
    """An anchor has an effect of its own."""
    made = changed(record(*APART, "1f: A A"), "1f", effect=Effect.CONTRADICTED)

    assert summary(judge(made), "1").effect is Effect.PROVEN


# ---- exact, and where ---------------------------------------------------------------------


def test_compared_with_the_baseline_is_exact_at_both() -> None:
    """Its own residency is the baseline's."""
    assert standing(judged("0: A A", "1: A A"), "1") == (True, True, True)
    assert summary(judged("0: A A", "1: A A"), "1").text == "exact"


def test_tied_only_by_its_anchor_it_was_never_compared_at_its_own_residency() -> None:
    """The report says so."""
    made = judged(*APART, "1f: A A")

    assert standing(made, "1") == (True, False, True)
    assert summary(made, "1").text == ("exact at the baseline's residency, by its anchor alone")


def test_tied_by_a_pair_it_is_exact_likewise() -> None:
    """A pair stands in for the anchor."""
    made = judged(*APART, "1f: C@4100 -", "0s: C@4100 C@4100", "1s: C@4100 C@4100")

    assert standing(made, "1") == (True, False, True)


@pytest.mark.parametrize(
    "tie",
    [("1f: A A",), ("1f: C@4100 -", "0s: C@4100 C@4100", "1s: C@4100 C@4100")],
    ids=["anchor", "pair"],
)
def test_the_others_of_a_group_reach_the_baseline_by_the_tie_of_its_first(
    tie: tuple[str, ...],
) -> None:
    """Compared at their own residency, and tied through their reference."""
    assert standing(judged(*APART, "2: B@5011 B@5011", *tie), "2") == (True, True, True)


def test_without_a_tie_a_group_is_exact_at_its_own_residency_only() -> None:
    """Equal among themselves, whatever the baseline does."""
    made = judged(*APART, "2: B@5011 B@5011")

    assert standing(made, "2") == (True, True, False)
    assert standing(made, "1") == (False, False, False)


@pytest.mark.parametrize("anchor", ["A9 A9", "A !CRASHED", "A@? A@?"])
def test_an_anchor_that_did_not_pass_ties_nobody(anchor: str) -> None:
    """That its repeats are identical is no tie to the baseline, nor is one repeat of two."""
    made = judged(*APART, "2: B@5011 B@5011", f"1f: {anchor}")

    assert standing(made, "2") == (True, True, anchor.startswith("A !"))
    assert standing(made, "1") == (False, False, False)


def test_a_variant_is_compared_at_its_own_residency_if_it_is_so_for_one_prompt() -> None:
    """With another prompt it may have a residency of its own, and an anchor."""
    long = record(*APART, "1f: A A")
    made = judge(two_prompts(record("0: A A", "1: A A"), long))

    assert standing(made, "1") == (True, True, True)
    assert summary(made, "1").text == "exact"


def test_a_variant_reaches_the_baseline_only_if_it_does_for_every_prompt() -> None:
    """What is tied with one prompt and not with another is not tied."""
    lines = ("0: A A", "2: C~RTX C~RTX", "3: C~RTX C~RTX")
    short = record(*lines[:1], "2: A A", "3: A A", on_device=())
    made = judge(two_prompts(short, record(*lines, on_device=())))

    assert standing(made, "3") == (True, True, False)


def test_at_its_new_home_a_moved_variant_is_compared_with_the_baseline() -> None:
    """The baseline on that device is the baseline."""
    made = judged("0: A A", "2: C~RTX C~RTX", "0-home-2: C~RTX C~RTX")

    assert standing(made, "2") == (True, True, True)


def test_the_baseline_is_not_exact_to_itself() -> None:
    """It is the measure."""
    made = judged("0: A A", "1: A A")

    assert standing(made, "0") == (False, False, False)
    assert summary(made, "0").text == "baseline"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (("1: A A9",), "FAIL: differs from token 9 on"),
        (("1: A !CRASHED",), "INCONCLUSIVE: CRASHED: it was crashed"),
        (
            ("1: A B@3414", "1f: A A"),
            "INCONCLUSIVE: the repeats had different residencies: "
            "4400 slots on GTX 1080 Ti and 3414 slots on GTX 1080 Ti",
        ),
        (
            ("1: B@5011 B9@5011", "1f: A A"),
            "FAIL: 2 distinct streams in 2 repeats (A B), first at token 9",
        ),
        (("1: B@5011 B@5011", "1f: A A9"), "FAIL: differs from token 9 on"),
        (
            ("1: B@5011 B@5011", "1f: A !CRASHED"),
            "INCONCLUSIVE: CRASHED: it was crashed",
        ),
        (("1: !REFUSED -",), "not run: REFUSED: it was refused"),
    ],
    ids=str,
)
def test_what_is_not_all_good_is_not_exact_and_says_why(lines: tuple[str, ...], text: str) -> None:
    """Worst first; what was compared is told before what was repeated."""
    made = judged("0: A A", *lines)

    assert standing(made, "1") == (False, False, False)
    assert summary(made, "1").text == text


def test_a_variant_with_one_skipped_repeat_is_not_exact() -> None:
    """One good repeat and one that did not fit are no repeats."""
    assert standing(judged("0: A A", "1: A !NO_MEMORY"), "1") == (False, False, False)


def test_a_variant_that_is_not_claimed_shows_what_was_seen() -> None:
    """Neither exact nor inexact."""
    made = judged("0: A A", "1: A9 A9", variants=(planned("0"), planned("1", claims=False)))

    assert standing(made, "1") == (False, False, False)
    assert summary(made, "1").text == "not claimed to be equal: differs from token 9 on"


def test_a_variant_that_cannot_run_says_why_not() -> None:
    """The plan's reason is the summary."""
    entries = (planned("0"), planned("1"), planned("2", planned=False, why_not="needs a drafter"))
    made = judged("0: A A", "1: A A", variants=entries)

    assert summary(made, "2").text == "not run: needs a drafter"


def test_summaries_are_in_matrix_order() -> None:
    """One for each variant of the plan."""
    assert [s.id for s in judged("0: A A", "2: A A", "1: A A").summaries] == ["0", "2", "1"]
