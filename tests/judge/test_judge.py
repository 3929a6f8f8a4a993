"""Verdicts to the one conclusion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hetero_test.judge.judge import judge
from hetero_test.values.record import Ending, Record, Rig
from hetero_test.values.run import NO_TRACE, Effect, EffectPart, RunState
from hetero_test.values.verdict import Conclusion, Kind, Result
from tests.judge.factories import (
    DRAFTS,
    changed,
    context,
    judged,
    planned,
    record,
    results,
    two_cards,
    two_prompts,
)

PASS, FAIL, OPEN = Conclusion.PASS, Conclusion.FAIL, Conclusion.INCONCLUSIVE


def why(made: Record) -> str:
    """The headline of a matrix that is not a PASS."""
    judgment = judge(made)
    assert judgment.conclusion is OPEN
    return judgment.headline.removeprefix("INCONCLUSIVE — ")


# ---- counts -------------------------------------------------------------------------------


@pytest.mark.parametrize("second", ["baseline", "1"])
def test_the_two_card_rig_counts_as_the_bash_harness_counted(second: str) -> None:
    """16 runs, 20 PASS, 0 FAIL: 8 repeat, 10 exact, 2 anchor, whichever residency 2 has."""
    made = two_cards(second)
    judgment = judge(made)
    passed = [v.kind for v in judgment.verdicts if v.result is Result.PASS]

    assert len(made.runs) == 16
    assert judgment.count(Result.PASS) == 20
    assert judgment.count(Result.FAIL) == judgment.count(Result.INCONCLUSIVE) == 0
    assert judgment.count(Result.SKIPPED) == 1
    assert {kind: passed.count(kind) for kind in Kind} == {
        Kind.REPEAT: 8,
        Kind.EXACT: 10,
        Kind.ANCHOR: 2,
    }
    assert judgment.conclusion is PASS


# ---- PASS ---------------------------------------------------------------------------------


def test_a_pass_needs_a_placement_that_was_compared_and_equal() -> None:
    """Everything compared is equal, and something was compared."""
    assert judged("0: A A", "1: A A").conclusion is PASS


def test_no_runs_at_all_are_no_pass() -> None:
    """Nothing failed because nothing was tested."""
    assert why(record("0: - -", "1: - -")).startswith("the repeats of variant 0")


@pytest.mark.parametrize(
    "word", ["!CRASHED", "A!CRASHED", "!TIMED_OUT", "!NO_STREAM", "A<1!TRUNCATED"]
)
def test_every_run_bad_is_no_pass(word: str) -> None:
    """Runs that all crashed, hung, stayed mute or were cut to one token make no PASS."""
    words = f"{word} {word}"

    assert judged(f"0: {words}", f"1: {words}", f"2: {words}").conclusion is OPEN


@pytest.mark.parametrize("state", [RunState.REFUSED, RunState.NO_MEMORY])
def test_every_placement_skipped_is_no_pass(state: RunState) -> None:
    """A baseline that repeats itself alone is no PASS: no placement was compared."""
    made = record("0: A A", f"1: !{state} !{state}")

    assert why(made).startswith("no placement was compared with anything")


def test_what_is_not_claimed_is_no_pass_by_itself() -> None:
    """NOT_CLAIMED is compared and shown, but proves nothing either way; the reason names it."""
    made = record("0: A A", "1: A A", variants=(planned("0"), planned("1", claims=False)))

    assert why(made).startswith("no placement was compared with anything; not claimed to be equal")
    assert why(made).endswith("(--device-kind declares one): 1")


def test_what_is_not_claimed_does_not_keep_the_rest_from_passing() -> None:
    """It is counted apart: never PASS, never FAIL."""
    made = judged("0: A A", "1: A A", "2: C~RTX C~RTX", on_device=())

    assert results(made, Kind.EXACT, "2") == ["NOT_CLAIMED"] * 2
    assert made.conclusion is PASS


def test_a_dead_baseline_is_no_pass() -> None:
    """Placements that agree with each other prove nothing when the baseline is dead."""
    assert why(record("0: !CRASHED !CRASHED", "1: A A", "2: A A")) == (
        "the repeats of variant 0: 0 of 2 repeats are usable (CRASHED, CRASHED)"
    )


def test_the_open_verdict_on_the_baseline_explains_the_rest() -> None:
    """Of several reasons the baseline's is told, since the others follow from it."""
    backwards = (planned("1"), planned("0"))

    assert "variant 0" in why(record("0: A !CRASHED", "1: A !CRASHED"))
    assert "variant 1" in why(record("0: A !CRASHED", "1: A !CRASHED", variants=backwards))
    assert "variant 1" in why(record("0: A A", "1: A !CRASHED"))


def test_an_open_anchor_explains_what_it_does_not_cover() -> None:
    """That the forced size was not reached, with the numbers, comes before what follows of it."""
    made = record("0: A A", "1: B@5011 B@5011", "2: !CRASHED A", "1f: A@1900 -")

    assert why(made) == (
        "anchor 1s: 4400 slots on GTX 1080 Ti was forced, but the engine opened "
        "1900 slots on GTX 1080 Ti, and there is no pair with one shared size"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("1: A !CRASHED",),
        ("1: A A@?",),
        ("1: A -",),
        ("1: A@3405 A@3414", "1f: A A"),
        ("1: B@5011 B@5011",),
        ("1: B@5011 B@5011", "1f: A !CRASHED"),
        ("1: B@5011 B@5011", "1f: A@4100 -", "0s: A@4100 A@4100", "1s: A@4100 !CRASHED"),
        ("1: A A", "2: !TIMED_OUT -"),
        ("2: C~RTX C~RTX", "0-home-2: C~RTX !CRASHED"),
    ],
    ids=str,
)
def test_one_open_comparison_is_no_pass(lines: tuple[str, ...]) -> None:
    """INCONCLUSIVE if any verdict is, however many others passed."""
    assert judged("0: A A", "9: A A", *lines).conclusion is OPEN


# ---- FAIL ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        ("1: A9 A9",),
        ("1: A A9",),
        ("1: B@5011 B@5011", "1f: A9 A9"),
        ("1: A9 A9", "2: !CRASHED !CRASHED"),
        ("1: A<9!TRUNCATED A<9!TRUNCATED",),
        ("2: C~RTX C~RTX", "0-home-2: D~RTX D~RTX"),
    ],
    ids=str,
)
def test_any_fail_is_a_fail(lines: tuple[str, ...]) -> None:
    """One difference at equal residency decides, whatever else passed or stayed open."""
    assert judged("0: A A", "9: A A", *lines).conclusion is FAIL


@pytest.mark.parametrize("effect", [Effect.NOT_SEEN, Effect.CONTRADICTED])
def test_a_difference_is_a_fail_also_where_nothing_was_seen_to_move(effect: Effect) -> None:
    """The streams differ at equal residency, wherever the log says that things are."""
    made = changed(record("0: A A", "1: A9 A9"), "1", effect=effect)

    assert judge(made).conclusion is FAIL


# ---- the noisy baseline -------------------------------------------------------------------


def test_a_baseline_that_alone_does_not_repeat_is_inconclusive() -> None:
    """Placement was not tested; the placements are not to blame."""
    assert why(record("0: A A9", "1: A A")) == (
        "the baseline does not repeat itself; placement was not tested"
    )


def test_a_noisy_baseline_hides_no_variant_that_does_not_repeat() -> None:
    """A noisy baseline excuses itself only, not a variant that does not repeat itself."""
    assert judged("0: A A9", "1: A A7").conclusion is FAIL


def test_a_noisy_baseline_hides_no_difference_between_placements() -> None:
    """Two variants that repeat and differ at a residency of their own are a FAIL."""
    made = judged("0: A A9", "1: B@5011 B@5011", "2: B7@5011 B7@5011")

    assert made.conclusion is FAIL


def test_a_baseline_that_does_not_repeat_at_home_is_no_fail_of_a_placement() -> None:
    """Variant 0 on another device is the baseline still: noise there tests nothing."""
    made = record("0: A A", "1: A A", "2: C~RTX C~RTX", "0-home-2: C~RTX C9~RTX")

    assert why(made) == (
        "the baseline does not repeat itself in its extra runs (0-home-2); "
        "what is compared with them was not tested"
    )


def test_a_noisy_baseline_is_told_although_the_matrix_was_cut() -> None:
    """What is known decides the reason."""
    made = record("0: A A9", "1: A -", ending=Ending.INTERRUPTED)

    assert why(made).startswith("the baseline does not repeat itself")


# ---- matrices that were cut ---------------------------------------------------------------


@pytest.mark.parametrize("ending", [ending for ending in Ending if ending is not Ending.COMPLETE])
def test_a_matrix_that_is_not_complete_is_no_pass(ending: Ending) -> None:
    """Even if all that ran is equal; a rig that is wedged stops and is inconclusive."""
    made = record("0: A A", "1: A A", ending=ending)

    assert why(made) == f"the matrix is not complete ({ending})"


def test_why_a_matrix_was_cut_is_told() -> None:
    """The reason stands in the headline."""
    made = record("0: A A", "1: A A", ending=Ending.WEDGED, ending_reason="it hung")

    assert why(made) == "the matrix is not complete (rig wedged: it hung)"


@pytest.mark.parametrize("ending", list(Ending))
def test_an_interrupted_matrix_keeps_a_proven_fail(ending: Ending) -> None:
    """A difference stays one when the rest was not run."""
    made = record("0: A A", "1: A9 A9", "2: - -", ending=ending)

    assert judge(made).conclusion is FAIL


# ---- effects ------------------------------------------------------------------------------


def equal(*effects: Effect | None) -> Record:
    """Equal streams; the effect of each repeat of variant 1."""
    made = record("0: A A", "1: A A")
    for repeat, effect in enumerate(effects, 1):
        made = changed(made, "1", repeat, effect=effect)
    return made


@pytest.mark.parametrize("effect", [Effect.PROVEN, Effect.UNOBSERVABLE])
def test_equal_streams_of_what_moved_or_leaves_no_trace_pass(effect: Effect) -> None:
    """PROVEN and UNOBSERVABLE count."""
    assert judge(equal(effect, effect)).conclusion is PASS


@pytest.mark.parametrize(
    "effects",
    [
        (Effect.CONTRADICTED, Effect.CONTRADICTED),
        (Effect.NOT_SEEN, Effect.NOT_SEEN),
        (Effect.PROVEN, Effect.NOT_SEEN),
        (None, None),
    ],
)
def test_equal_but_nothing_moved_is_inconclusive(effects: tuple[Effect | None, ...]) -> None:
    """CONTRADICTED and NOT_SEEN never count as moved; the worst of the repeats decides."""
    assert why(equal(*effects)) == "the streams are equal, but nothing was seen to move"


def test_one_variant_that_moved_is_enough() -> None:
    """The others are named under the verdict."""
    made = changed(record("0: A A", "1: A A", "2: A A"), "2", effect=Effect.CONTRADICTED)

    assert judge(made).conclusion is PASS


def test_a_variant_that_moved_but_was_compared_with_nothing_is_not_enough() -> None:
    """The comparison that passed has to be of a variant that moved."""
    made = record("0: A A", "1: A A", "2: !REFUSED !REFUSED")
    made = changed(changed(made, "1", effect=Effect.NOT_SEEN), "2", effect=Effect.PROVEN)

    assert why(made) == "the streams are equal, but nothing was seen to move"


def test_an_anchors_pass_counts_for_its_variant() -> None:
    """An anchor has its variant's effect."""
    made = record("0: A A", "1: B@5011 B@5011", "1f: A A")

    assert judge(made).conclusion is PASS
    assert judge(changed(made, "1", effect=Effect.NOT_SEEN)).conclusion is OPEN


def test_passing_repeats_are_not_compared_placements() -> None:
    """That everything repeats itself is no comparison of placements."""
    made = record("0: A A", "1: B@5011 B@5011", variants=(planned("0"), planned("1", claims=False)))

    assert [v.result for v in judge(made).verdicts][:2] == [Result.PASS] * 2
    assert judge(made).conclusion is OPEN


# ---- strict -------------------------------------------------------------------------------


def strict(*lines: str, **changes: Any) -> Record:
    return record(*lines, strict=True, **changes)


def test_strict_passes_what_is_clean() -> None:
    """Strictness asks for more, not for something else."""
    assert judge(strict("0: A A", "1: A A")).conclusion is PASS
    silent = changed(strict("0: A A", "1: A A", "2: A A"), "2", effect=Effect.UNOBSERVABLE)
    assert judge(silent).conclusion is PASS


def test_strict_wants_something_proven_to_have_moved() -> None:
    """What leaves no trace alone is not shown to have happened; a part that is proven is."""
    silent = changed(strict("0: A A", "1: A A"), "1", effect=Effect.UNOBSERVABLE)
    assert why(silent) == "strict: no placement is proven to have moved"
    part = EffectPart(part="main", expected="0", seen="0", effect=Effect.PROVEN)
    assert judge(changed(silent, "1", effect_parts=(part,))).conclusion is PASS


def test_strict_takes_no_proof_from_a_run_that_is_not_usable() -> None:
    """What a run printed before it crashed is not shown to have happened."""
    two = planned("2", planned=False, why_not="needs 1 device, 2 found", few_devices=True)
    entries = (planned("0"), planned("1"), two)
    made = strict("0: A A", "1: A A", "2: !CRASHED", variants=entries)
    silent = changed(made, "1", effect=Effect.UNOBSERVABLE)
    part = EffectPart(part="main", expected="0", seen="0", effect=Effect.PROVEN)

    assert why(changed(silent, "2", effect_parts=(part,))) == (
        "strict: no placement is proven to have moved"
    )


@pytest.mark.parametrize("effect", [Effect.CONTRADICTED, Effect.NOT_SEEN])
def test_strict_refuses_an_effect_that_is_not_shown(effect: Effect) -> None:
    """Also where another variant moved."""
    made = changed(strict("0: A A", "1: A A", "2: A A"), "2", effect=effect)

    assert why(made) == (
        f"strict: the placement of variant 2 is {effect.value.lower().replace('_', ' ')}"
    )


@pytest.mark.parametrize("state", [RunState.REFUSED, RunState.NO_MEMORY])
def test_strict_refuses_a_variant_that_did_not_start(state: RunState) -> None:
    """A refused placement was not tested."""
    made = strict("0: A A", "1: A A", f"2: !{state} !{state}")

    assert why(made) == f"strict: variant 2 was not run: {state}"


@pytest.mark.parametrize("refused", [True, False])
def test_strict_refuses_a_variant_that_was_left_out(*, refused: bool) -> None:
    """By the engine's help, by --skip, or for want of a drafter."""
    two = planned("2", planned=False, why_not="left out by --skip", refused=refused)
    made = strict("0: A A", "1: A A", variants=(planned("0"), planned("1"), two))

    assert why(made) == "strict: variant 2 was not run: left out by --skip"


def test_strict_excuses_what_the_number_of_devices_rules_out() -> None:
    """A variant for one card is not missing on two."""
    two = planned("2", planned=False, why_not="needs 1 device, 2 found", few_devices=True)
    made = strict("0: A A", "1: A A", variants=(planned("0"), planned("1"), two))

    assert judge(made).conclusion is PASS


def test_strict_refuses_draft_warnings() -> None:
    """A drafter can be broken without the output showing it."""
    made = changed(strict("0: A A", "1: A A"), "0", speculation=DRAFTS)
    made = changed(made, "1", speculation=replace(DRAFTS, accepted=12))

    assert why(made).startswith("strict: draft statistics differ under equal streams")


def test_what_strict_refuses_passes_without_it() -> None:
    """Each of these is a warning, or named under the verdict, without --strict."""
    left_out = planned("3", planned=False, why_not="left out by --skip")
    asked = (planned("0"), planned("1"), planned("2"), left_out)
    made = record("0: A A", "1: A A", "2: !REFUSED !REFUSED", variants=asked)
    made = changed(changed(made, "0", speculation=DRAFTS), "1", speculation=DRAFTS)
    made = changed(made, "1", 2, speculation=replace(DRAFTS, accepted=12))

    assert judge(made).conclusion is PASS


def test_other_warnings_do_not_matter_to_strict() -> None:
    """Only what the rule names keeps a strict matrix from passing."""
    made = context(strict("0: A A", "1: A A"), "1", 1, swaps=1)
    made = changed(context(made, "1", 2, swaps=2), "1", warnings=("the drafter is slow",))

    assert judge(made).conclusion is PASS


# ---- the judgment -------------------------------------------------------------------------


def test_verdicts_are_in_the_order_of_kinds() -> None:
    """Repeats, then exact, then anchors, over all prompts."""
    one = record("0: A A", "1: B@5011 B@5011", "1f: A A")
    kinds = [v.kind for v in judge(two_prompts(one, one)).verdicts]

    assert kinds == [*[Kind.REPEAT] * 6, *[Kind.EXACT] * 2, *[Kind.ANCHOR] * 4]


def test_the_order_in_which_runs_were_stored_decides_nothing() -> None:
    """The same runs in another order are the same judgment."""
    made = two_cards()
    made = changed(made, "4", 1, warnings=("one",), lines=("a",), effect=Effect.NOT_SEEN)
    made = changed(made, "5", 2, warnings=("two",), lines=("b",))

    assert judge(replace(made, runs=made.runs[::-1])) == judge(made)


def test_warnings_of_plan_record_and_runs_are_told_once() -> None:
    """The manifest's, the record's, then what the runs give reason for."""
    made = record("0: A A", "1: A A", warnings=("planned", "both"))
    made = replace(changed(made, "1", warnings=("odd",)), warnings=("both", "recorded"))

    assert judge(made).warnings == (
        *("planned", "both", "recorded"),
        *("variant 1, repeat 1: odd", "variant 1, repeat 2: odd"),
    )


def test_clusters_are_of_all_runs_by_their_order() -> None:
    """Every stream has a letter, in the order in which it was planned to appear."""
    found = judged("0: A A", "1: A9 A9", "2: !CRASHED A").clusters

    assert [(c.letter, c.runs) for c in found] == [
        ("A", (("0", "default", 1), ("2", "default", 2), ("0", "default", 2))),
        ("B", (("1", "default", 1), ("1", "default", 2))),
    ]


CHANGED_ENGINE = "the engine changed during the matrix (versions 0.1.34, 0.1.35)"


def of_two_versions(made: Record) -> Record:
    return changed(changed(made, "0", version="0.1.34"), "1", version="0.1.35")


def test_equal_streams_of_an_engine_that_changed_are_no_pass() -> None:
    """Two things that changed together prove nothing of either; one version may be untold."""
    made = record("0: A A", "1: A A")
    two = of_two_versions(made)

    assert judge(two).conclusion is OPEN
    assert why(two) == CHANGED_ENGINE
    assert judge(changed(made, "1", version="0.1.35")).conclusion is judge(made).conclusion


def test_a_change_of_version_never_outranks_a_difference() -> None:
    """A difference that was seen stays a FAIL, and the change of version stands beside it."""
    two = of_two_versions(record("0: A A", "1: B B"))

    assert judge(two).conclusion is Conclusion.FAIL
    assert CHANGED_ENGINE in judge(two).warnings


# ---- one device -------------------------------------------------------------------------------


def test_one_device_that_nobody_announced_is_inconclusive() -> None:
    """A second card that vanished never leaves a green mark; the reason says what to write."""
    made = judged("0: A A", "1: A A", rig=Rig(device_count=1))

    assert made.conclusion is Conclusion.INCONCLUSIVE
    assert "one device found, no placement over several was tested" in made.headline
    assert "`--devices 1`" in made.headline


def test_one_device_where_nothing_is_placed_says_so_once() -> None:
    """The reason names what was not tested, and nothing repeats it."""
    entries = (planned("0"), planned("7", ("draft", NO_TRACE)))
    made = judged("0: A A", "7: A A", variants=entries, rig=Rig(device_count=1))

    assert made.headline == (
        "INCONCLUSIVE — one device found, no placement was tested; "
        "owners of one card say `--devices 1`"
    )


@pytest.mark.parametrize(("count", "said"), [(1, True), (2, False), (None, False), (0, False)])
def test_an_announced_device_or_another_number_is_no_reason(
    count: int | None, *, said: bool
) -> None:
    """Only a single device that nobody announced keeps a matrix open."""
    made = judged("0: A A", "1: A A", rig=Rig(device_count=count), one_device=said)

    assert made.conclusion is Conclusion.PASS


def test_a_fail_on_one_device_stays_a_fail() -> None:
    """A difference was seen, on however many devices."""
    made = judged("0: A A", "1: Q Q", rig=Rig(device_count=1))

    assert made.conclusion is Conclusion.FAIL
