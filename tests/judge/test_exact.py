"""Rule 2: each run of a variant against its reference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hetero_test.judge.judge import judge
from hetero_test.values.record import Ending
from hetero_test.values.run import Purpose, RunState
from hetero_test.values.verdict import Kind, Result
from tests.judge.factories import (
    changed,
    first_exact,
    judged,
    of,
    only,
    record,
    residency,
    results,
    stream,
    two_prompts,
)

EXACT = Kind.EXACT


# ---- references ---------------------------------------------------------------------------


def test_the_baseline_has_no_exact_verdict() -> None:
    """It is what the others are held against."""
    assert of(judged("0: A A", "1: A A"), EXACT, "0") == []


def test_each_run_is_compared_with_the_first_usable_baseline_of_its_residency() -> None:
    """Every repeat of a variant has a verdict against the baseline's first usable run."""
    made = judged("0: !CRASHED A A", "1: A A A")

    assert [(v.repeat, v.against, v.result) for v in of(made, EXACT, "1")] == [
        (1, ("0", 2), Result.PASS),
        (2, ("0", 2), Result.PASS),
        (3, ("0", 2), Result.PASS),
    ]
    assert first_exact(made, "1").reason == "equal over 60 tokens"


def test_a_difference_from_the_baseline_is_a_fail_with_its_place() -> None:
    """The first difference, and both continuations from there on."""
    verdict = first_exact(judged("0: A A", "1: A17 A17"), "1")

    assert verdict.result is Result.FAIL
    assert verdict.reason == "differs from token 17 on"
    assert verdict.difference is not None
    assert verdict.difference.index == 17
    assert verdict.difference.reference == stream("A")[17:25]
    assert verdict.difference.this == stream("A17")[17:25]


def test_streams_of_different_residencies_are_never_compared() -> None:
    """Another residency rounds differently: never PASS, never FAIL."""
    for word in ("A", "B"):
        made = judged("0: A A", f"1: {word}@5011 {word}@5011")

        assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2


def test_without_the_baseline_a_group_has_its_first_usable_variant_as_reference() -> None:
    """The first usable run of the first usable variant, in matrix order."""
    made = judged("0: A A", "1: - B@5011", "2: B@5011 B@5011", "3: B@5011 B5@5011")

    assert [v.against for v in of(made, EXACT, "2")] == [("1", 2)] * 2
    assert results(made, EXACT, "3") == ["PASS", "FAIL"]


def test_one_stream_a_strict_prefix_of_the_other_is_said_so() -> None:
    """Either side may be the shorter one, ended by an end of sequence."""
    short, long = judged("0: A A", "1: A<40 A<40"), judged("0: A<40 A<40", "1: A A")

    assert first_exact(short, "1").reason == "it is a strict prefix: parts at token 40"
    assert first_exact(long, "1").reason == "the reference is a strict prefix: parts at token 40"
    assert first_exact(short, "1").result is first_exact(long, "1").result is Result.FAIL


@pytest.mark.parametrize(("length", "told"), [(4, Result.PASS), (3, Result.INCONCLUSIVE)])
def test_a_handful_of_equal_tokens_passes_nothing(length: int, told: Result) -> None:
    """Streams that end at once are equal on any rig; an anchor of that length ties nothing."""
    word = f"A<{length}"
    anchored = judged(f"0: {word} {word}", "1: B@5011 B@5011", f"1f: {word} {word}")

    assert {v.result for v in of(anchored, Kind.ANCHOR, "1f")} == {told}
    assert first_exact(judged(f"0: {word} {word}", f"1: {word} {word}"), "1").result is told


def test_a_difference_is_a_fail_however_early_it_comes() -> None:
    """Two ids that differ were not equal, however few they are."""
    assert first_exact(judged("0: A<2 A<2", "1: A1<2 A1<2"), "1").result is Result.FAIL


def test_a_variant_in_two_residencies_is_compared_in_each() -> None:
    """Each repeat has the reference of its own group."""
    made = judged("0: A A", "1: B@5011 B@5011", "2: A B@5011")

    assert [v.against for v in of(made, EXACT, "2")] == [("0", 1), ("1", 1)]


def test_prompts_are_compared_apart() -> None:
    """A second prompt has references of its own."""
    made = judge(two_prompts(record("0: A A", "1: A A"), record("0: B B", "1: B9 B9")))

    assert [(v.probe, v.result.value) for v in of(made, EXACT, "1")] == [
        *[("default", "PASS")] * 2,
        *[("long", "FAIL")] * 2,
    ]


# ---- a group's first variant --------------------------------------------------------------


def test_a_first_variant_that_its_anchor_covers_is_one_skipped() -> None:
    """However many repeats there are, one SKIPPED says that the anchor covers them."""
    for anchor in ("A A", "A A17", "A9 A9"):
        verdict = only(judged("0: A A", "1: B@5011 B@5011", f"1f: {anchor}"), EXACT, "1")

        assert (verdict.result, verdict.reason) == (Result.SKIPPED, "covered by its anchor")
        assert verdict.repeat is None


@pytest.mark.parametrize(
    "anchor",
    [(), ("1f: !CRASHED !CRASHED",), ("1f: !NO_MEMORY -",), ("1f: A@? A@?",), ("1f: A@4100 -",)],
    ids=str,
)
def test_a_first_variant_without_an_anchor_that_tells_is_inconclusive(
    anchor: tuple[str, ...],
) -> None:
    """INCONCLUSIVE for each run that no anchor covers: it was compared with nothing."""
    made = judged("0: A A", "1: B@5011 B@5011", "2: B@5011 B@5011", *anchor)

    assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2
    assert first_exact(made, "1").reason == (
        "no other run has its residency (5011 slots on GTX 1080 Ti), and no anchor covers it"
    )
    assert results(made, EXACT, "2") == ["PASS"] * 2


def test_an_anchor_that_strayed_to_its_variants_own_size_is_no_reference() -> None:
    """It is no baseline: what it gave there is held against nobody."""
    made = judged("0: A A", "1: B@5011 B@5011", "2: B@5011 B@5011", "1f: B9@5011 -")

    assert {v.against for v in of(made, EXACT, "2")} == {("1", 1)}
    assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2


def test_an_anchor_covers_only_its_own_variant() -> None:
    """Another group's anchor, or a pair of another variant, vouches for nobody else."""
    made = judged("0: A A", "1: B@5011 B@5011", "2: C@4800 C@4800", "1f: A A", "2s: A A")

    assert results(made, EXACT, "1") == ["SKIPPED"]
    assert results(made, EXACT, "2") == ["INCONCLUSIVE"] * 2


def test_a_crashed_repeat_is_not_hidden_by_the_anchor() -> None:
    """Covered is what ran: the repeat that crashed stays open."""
    made = judged("0: A A", "1: B@5011 !CRASHED", "1f: A A")

    assert results(made, EXACT, "1") == ["SKIPPED", "INCONCLUSIVE"]


def test_a_repeat_in_a_group_beyond_the_third_is_not_hidden_by_the_anchor() -> None:
    """More groups than are anchored: what has no anchor is told so, repeat by repeat."""
    moving = (f"{n}: B@500{n} B@500{n}" for n in "1234")
    made = judged("0: A A", *moving, "1f: A A", "2f: A A", "3f: A A")

    assert results(made, EXACT, "3") == ["SKIPPED"]
    assert results(made, EXACT, "4") == ["INCONCLUSIVE"] * 2
    assert first_exact(made, "4").reason.endswith("covers it: more residencies than are anchored")


def test_a_dead_baseline_leaves_everything_untied() -> None:
    """Placements that agree among themselves prove nothing without a baseline."""
    made = judged("0: !CRASHED !CRASHED", "1: A A", "2: A A")

    assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2
    assert first_exact(made, "1").reason.endswith("the baseline has no usable run")
    assert results(made, EXACT, "2") == ["PASS"] * 2


def test_a_baseline_of_unknown_residency_leaves_everything_untied() -> None:
    """All role variants may be wrong alike, so without the baseline's cache line none passes."""
    made = judged("0: A@? A@?", "1: B B", "2: B B")

    assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2


def test_a_first_variant_that_does_not_repeat_makes_its_group_inconclusive() -> None:
    """A reference that is not identical to itself is none."""
    made = judged("0: A A", "1: B@5011 B9@5011", "2: B@5011 B@5011", "1f: A A")

    assert results(made, Kind.REPEAT, "1") == ["FAIL"]
    assert results(made, EXACT, "2") == ["INCONCLUSIVE"] * 2
    assert first_exact(made, "2").reason == "its reference, variant 1, does not repeat itself"


# ---- a baseline that cannot serve ---------------------------------------------------------


@pytest.mark.parametrize("word", ["A", "A9", "B"])
def test_a_noisy_baseline_makes_its_comparisons_inconclusive(word: str) -> None:
    """A reference that is not identical to itself decides nothing, equal or not."""
    made = judged("0: A A9", f"1: {word} {word}")

    assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2
    assert first_exact(made, "1").against == ("0", 1)


@pytest.mark.parametrize("second", ["A<40!TRUNCATED", "A<40!DEGENERATE"])
def test_a_baseline_that_broke_off_once_is_no_reference(second: str) -> None:
    """Only a repeatable reference can make a FAIL; one that stopped early once is none."""
    made = judged(f"0: A {second}", "1: A9 A<40!TRUNCATED")

    assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2


def test_what_a_crashed_run_printed_says_nothing_of_a_reference() -> None:
    """Only streams that came out whole, or broke off, are held against the baseline."""
    made = judged("0: A A9!CRASHED", "1: A A")

    assert results(made, EXACT, "1") == ["PASS"] * 2


def test_a_baseline_that_moved_is_identical_to_itself_within_each_residency() -> None:
    """Repeats of another residency are no evidence against a reference."""
    made = judged("0: A C@3414", "1: A A")

    assert results(made, EXACT, "1") == ["PASS"] * 2


# ---- runs that cannot be compared ---------------------------------------------------------


@pytest.mark.parametrize("state", [RunState.REFUSED, RunState.NO_MEMORY])
def test_a_placement_that_never_started_is_skipped(state: RunState) -> None:
    """REFUSED and NO_MEMORY are SKIPPED, also for the repeat that was not tried again."""
    made = judged("0: A A", f"1: !{state} -", f"2: A !{state}", f"3: !{state} !{state}")

    assert results(made, EXACT, "1") == ["SKIPPED"] * 2
    assert [v.reason for v in of(made, EXACT, "1")] == [
        f"{state}: it was {state.lower()}",
        f"not run again after {state} (repeat 1): it was {state.lower()}",
    ]
    assert [v.repeat for v in of(made, EXACT, "1")] == [1, 2]
    assert results(made, EXACT, "2") == ["PASS", "SKIPPED"]
    assert results(made, EXACT, "3") == ["SKIPPED"] * 2


@pytest.mark.parametrize(
    "state", ["CRASHED", "TIMED_OUT", "NO_STREAM", "WRONG_PROMPT", "NOT_GREEDY"]
)
def test_any_other_unusable_run_is_inconclusive(state: str) -> None:
    """The stream of a run that failed does not count, equal or not."""
    for word in ("A", "B"):
        made = judged("0: A A", f"1: {word}!{state} A")

        assert results(made, EXACT, "1") == ["INCONCLUSIVE", "PASS"]
        assert first_exact(made, "1").reason == f"{state}: it was {state.lower()}"


def test_a_run_of_unknown_residency_is_inconclusive() -> None:
    """Unknown is equal to nothing, not even to itself."""
    for word in ("A@?", "A9@?", "A<9@?!TRUNCATED"):
        made = judged("0: A A", f"1: {word} {word}")

        assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2
        assert first_exact(made, "1").reason == (
            "the residency is unknown: no line tells the final size"
        )


@pytest.mark.parametrize("ids", [None, ()])
def test_an_ok_run_without_a_token_is_inconclusive(ids: tuple[int, ...] | None) -> None:
    """An OK run without a token is neither equal nor different, whoever stored it."""
    made = judge(changed(record("0: A A", "1: A A"), "1", 1, stream=ids))

    assert results(made, EXACT, "1") == ["INCONCLUSIVE", "PASS"]
    assert first_exact(made, "1").reason == "no stream of it is stored"


@pytest.mark.parametrize(
    ("ending", "why", "told"),
    [
        (Ending.COMPLETE, None, "planned, but there is no record of it"),
        (Ending.RUNNING, None, "not run yet"),
        (Ending.INTERRUPTED, None, "not run: interrupted"),
        (Ending.TOTAL_TIMEOUT, None, "not run: total time limit"),
        (Ending.WEDGED, "it hung", "not run: rig wedged (it hung)"),
        (Ending.BROKEN, "disk full", "not run: could not finish (disk full)"),
    ],
)
def test_a_planned_run_without_a_record_is_inconclusive(
    ending: Ending, why: str | None, told: str
) -> None:
    """The judge is given the plan: what is missing is open, with the reason."""
    made = judged("0: A A", "1: A -", ending=ending, ending_reason=why)

    assert results(made, EXACT, "1") == ["PASS", "INCONCLUSIVE"]
    assert of(made, EXACT, "1")[1].reason == told


def test_a_variant_that_hung_is_not_missing_without_a_reason() -> None:
    """A run that timed out is not repeated, and the missing repeat says so."""
    made = judged("0: A A A", "1: A !TIMED_OUT -")

    assert of(made, EXACT, "1")[2].reason == "not run again after it timed out (repeat 2)"
    assert results(made, EXACT, "1") == ["PASS", "INCONCLUSIVE", "INCONCLUSIVE"]


def test_a_variant_that_hung_before_the_rounds_says_so() -> None:
    """Under --pinned each variant is sized first; the baseline is run all the same."""
    made = judged("0: A -", "1: - -", warm=["0: !TIMED_OUT", "1: !TIMED_OUT"])

    assert first_exact(made, "1").reason == "not run again after it timed out before the rounds"
    assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2
    assert only(made, Kind.REPEAT, "0").reason == "1 of 2 repeats are usable (1 not run)"


def test_a_warm_up_that_ran_is_no_reason_for_a_missing_run() -> None:
    """Only one that hung keeps its variant from being run."""
    made = judged("0: A A", "1: A -", warm=["1: A"])

    assert of(made, EXACT, "1")[1].reason == "planned, but there is no record of it"


def test_runs_of_another_purpose_are_not_a_variants() -> None:
    """What is stored under a variant's id counts only if it is of the rounds."""
    made = judge(changed(record("0: A A", "1: A A"), "1", 2, purpose=Purpose.ANCHOR))

    assert results(made, EXACT, "1") == ["PASS", "INCONCLUSIVE"]


# ---- wrong output -------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["TRUNCATED", "DEGENERATE"])
@pytest.mark.parametrize("word", ["A<40", "A", "B"])
def test_wrong_output_against_a_good_reference_is_a_fail(state: str, word: str) -> None:
    """Usable, repeatable, of equal residency: then a broken-off or stuck stream fails."""
    made = judged("0: A A", f"1: {word}!{state} {word}!{state}")

    assert results(made, EXACT, "1") == ["FAIL"] * 2
    assert first_exact(made, "1").reason == f"{state}: it was {state.lower()}"
    assert first_exact(made, "1").against == ("0", 1)


def test_not_a_number_without_a_stream_is_a_fail_too() -> None:
    """NaN may leave no stream at all; the reference had one."""
    made = changed(record("0: A A", "1: A!DEGENERATE A!DEGENERATE"), "1", stream=None)

    assert results(judge(made), EXACT, "1") == ["FAIL"] * 2


@pytest.mark.parametrize("state", ["TRUNCATED", "DEGENERATE"])
def test_equal_garbage_never_passes(state: str) -> None:
    """When both sides are garbage there is no reference, and no PASS."""
    made = judged(f"0: A!{state} A!{state}", f"1: A!{state} A!{state}")

    assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2
    assert first_exact(made, "1").reason.endswith("; no reference to hold it against")


def test_wrong_output_at_another_residency_is_inconclusive() -> None:
    """Nobody usable has that residency, so nothing says what the stream should have been."""
    made = judged("0: A A", "1: B@5011!TRUNCATED B@5011!TRUNCATED")

    assert results(made, EXACT, "1") == ["INCONCLUSIVE"] * 2


def test_wrong_output_of_the_groups_first_variant_is_not_held_against_itself() -> None:
    """Its own good repeat is no reference for it; repeats are another rule's matter."""
    made = judged("0: A A", "1: B@5011 B<9@5011!TRUNCATED", "1f: A A")

    assert results(made, EXACT, "1") == ["SKIPPED", "INCONCLUSIVE"]


def test_a_run_of_unknown_residency_does_not_make_its_reference_unsteady() -> None:
    """What its log tells of the residency may be the same; that all was told is not known."""
    unknown = replace(residency(), unknown="the log ends before its last line")
    made = changed(record("0: A B", "1: A A"), "0", 2, residency=unknown)

    assert results(judge(made), EXACT, "1") == ["PASS", "PASS"]
