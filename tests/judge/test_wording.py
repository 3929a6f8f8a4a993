"""The conclusion in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hetero_test.judge.judge import judge
from hetero_test.values.record import Ending, Record, Rig
from hetero_test.values.remark import Remark, Weight
from hetero_test.values.run import Effect, EffectPart, RunState
from hetero_test.values.verdict import Kind
from tests.judge.factories import changed, judged, planned, record, two_cards, two_prompts

CHAINED = (("chain_batch", "no trace"),)


def told(made: Record) -> tuple[str, str]:
    judgment = judge(made)
    return judgment.headline, judgment.reason


@pytest.mark.parametrize("second", ["baseline", "1"])
def test_the_headline_of_a_pass_counts_variants(second: str) -> None:
    """Variants come first, comparisons second."""
    headline, reason = told(two_cards(second))

    assert headline == (
        "PASS — 6 of 6 variants exact (5 at their own residency, 6 at the baseline's), "
        "3 proven to have moved, 3 leave no trace, 0 not run"
    )
    assert reason == (
        "12 comparisons at equal residency over 60 tokens of 1 prompt found no difference; "
        "not everything that variants 3, 4, 5 changed leaves a trace in the log"
    )


def test_variants_that_cannot_run_for_want_of_devices_are_not_counted_as_not_run() -> None:
    """A variant for one card is no gap on two; one left out or refused is."""
    entries = (
        planned("0"),
        planned("1"),
        planned("2", planned=False, why_not="needs 1 device, 2 found", few_devices=True),
        planned("3", planned=False, why_not="left out by --skip"),
        planned("4", planned=False, why_not="unknown flag", refused=True),
        planned("5"),
        planned("6"),
    )
    lines = ("0: A A", "1: A A", "5: !REFUSED !NO_MEMORY", "6: A !REFUSED")
    headline, _ = told(record(*lines[:3], "6: A A", variants=entries))

    assert headline == (
        "PASS — 2 of 2 variants exact (2 at their own residency, 2 at the baseline's), "
        "2 proven to have moved, 0 leave no trace, 3 not run"
    )
    assert judge(record(*lines, variants=entries)).headline.startswith("INCONCLUSIVE")


def test_effects_that_are_not_shown_are_counted_and_named() -> None:
    """Equal, but variant 2 never left device 0: named in the sentence under the verdict."""
    made = record("0: A A", "1: A A", "2: A A", "3: A A")
    part = EffectPart(part="main", expected="1", seen="0", effect=Effect.CONTRADICTED)
    made = changed(made, "2", effect=Effect.CONTRADICTED, effect_parts=(part,))
    part = EffectPart(part="draft", expected="1", seen=None, effect=Effect.NOT_SEEN)
    made = changed(made, "3", effect=Effect.NOT_SEEN, effect_parts=(part,))
    headline, reason = told(made)

    assert headline == (
        "PASS — 3 of 3 variants exact (3 at their own residency, 3 at the baseline's), "
        "1 proven to have moved, 0 leave no trace, 1 not seen, 1 contradicted, 0 not run"
    )
    assert reason == (
        "6 comparisons at equal residency over 60 tokens of 1 prompt found no difference; "
        "equal, but variant 2 did not go where its flags say (main: expected 1, it was on 0); "
        "equal, but variant 3 was not seen to move (draft: expected 1, nothing tells)"
    )


def test_an_effect_without_its_part_is_named_all_the_same() -> None:
    """A run that was stored without parts still says what it came to."""
    made = changed(record("0: A A", "1: A A", "2: A A"), "2", effect=Effect.NOT_SEEN)

    assert told(made)[1].endswith("; equal, but variant 2 was not seen to move")


def test_a_variant_that_differs_is_not_called_equal() -> None:
    """What did not move and differs is no 'equal, but'."""
    made = changed(record("0: A A", "1: A9 A9"), "1", effect=Effect.NOT_SEEN)

    assert told(made)[1] == (
        "variant 1 against variant 0: differs from token 9 on; variant 1 was not seen to move"
    )


def test_one_variant_without_a_trace_is_named_in_the_singular() -> None:
    """Words agree with their number."""
    made = changed(record("0: A A", "1: A A", "2: A A"), "2", effect=Effect.UNOBSERVABLE)
    headline, reason = told(made)

    assert "1 leaves no trace" in headline
    assert reason.endswith("; not everything that variant 2 changed leaves a trace in the log")


def test_variants_that_are_not_claimed_are_counted_apart() -> None:
    """Neither exact nor not: the headline says how many."""
    headline, _ = told(record("0: A A", "1: A A", "2: C~RTX C~RTX", on_device=()))

    assert headline == (
        "PASS — 1 of 2 variants exact (1 at their own residency, 1 at the baseline's), "
        "2 proven to have moved, 0 leave no trace, 1 not claimed, 0 not run"
    )


def test_a_group_that_nothing_ties_does_not_reach_the_baseline() -> None:
    """Compared among themselves on another kind of device: 0 of them at the baseline's."""
    made = record("0: A A", "2: C~RTX C~RTX", "3: C~RTX C~RTX", on_device=())

    assert "1 of 2 variants exact (1 at their own residency, 0 at the baseline's)" in told(made)[0]


def test_one_device_passes_and_says_that_no_placement_was_tested() -> None:
    """Variants 0 and 7 of one card: chained drafts are exact, and place nothing."""
    few = planned("1", planned=False, why_not="needs at least 2 devices", few_devices=True)
    entries = (planned("0"), few, planned("7", *CHAINED))
    made = record("0: A A", "7: A A", variants=entries, rig=Rig(device_count=1), one_device=True)
    made = changed(made, "7", effect=Effect.UNOBSERVABLE)

    assert told(made)[0] == (
        "PASS — 1 of 1 variants exact (1 at their own residency, 1 at the baseline's), "
        "0 proven to have moved, 1 leaves no trace, 0 not run; "
        "no placement was tested (1 device)"
    )


def test_what_is_the_baseline_s_own_placement_is_counted_apart() -> None:
    """Being where the flags say is not moving."""
    entries = (planned("0"), planned("1", ("main", "1")), planned("2", ("main", "0")))
    made = record("0: A A", "1: A A", "2: A A", variants=entries)
    made = changed(made, "2", places={"main": "0"})

    assert ", 1 proven to have moved, 1 is the baseline's own placement, " in told(made)[0]


def test_a_doubted_placement_is_counted() -> None:
    """The headline of a PASS says how many placements are doubted."""
    made = record("0: A A", "1: A A", "2: A A")
    line = Remark(line="pool: nothing done", template="pool: nothing done", weight=Weight.DOUBTFUL)
    made = changed(made, "2", remarks=(line,))

    assert ", 1 doubted, " in told(made)[0]


@pytest.mark.parametrize(("count", "words"), [(None, ""), (0, " (0 devices)"), (2, " (2 devices)")])
def test_no_placement_is_said_with_the_number_of_devices_where_it_is_known(
    count: int | None, words: str
) -> None:
    """A fact may be missing, never guessed."""
    entries = (planned("0"), planned("7", *CHAINED))
    made = record("0: A A", "7: A A", variants=entries, rig=Rig(device_count=count))

    assert told(made)[0].endswith(f"; no placement was tested{words}")


def test_a_placement_with_one_silent_part_is_a_placement() -> None:
    """Only a variant all of whose parts leave no trace places nothing."""
    both = planned("3", ("main", "0"), *CHAINED)
    made = record("0: A A", "3: A A", variants=(planned("0"), both))

    assert "no placement was tested" not in told(made)[0]


@pytest.mark.parametrize("state", [RunState.REFUSED, RunState.NO_MEMORY])
def test_placements_that_all_refused_leave_nothing_tested(state: RunState) -> None:
    """What did not start placed nothing."""
    headline, _ = told(record("0: A A", f"1: !{state} -"))

    assert headline == (
        "INCONCLUSIVE — no placement was compared with anything; "
        "no placement was tested (2 devices)"
    )


def test_the_headline_of_a_fail_names_the_variants() -> None:
    """How many of how many differ, and which."""
    assert judged("0: A A", "1: A9 A9", "2: A A").headline == (
        "FAIL — 1 of 2 variants differs at equal residency (1)"
    )
    assert judged("0: A A", "1: A9 A9", "2: A7 A7", "3: !REFUSED -").headline == (
        "FAIL — 2 of 2 variants differ at equal residency (1, 2)"
    )


def test_a_variant_that_fails_by_its_anchor_is_named_once() -> None:
    """The anchor is the variant's."""
    made = judged("0: A A", "1: B@5011 B@5011", "2: B@5011 B7@5011", "1f: A9 A9")

    assert made.headline == (
        "FAIL — 2 of 2 variants differ at equal residency (2, 1); 1 does not repeat (2)"
    )


def test_variants_that_do_not_repeat_are_told_apart_from_those_that_differ() -> None:
    """Not the same defect, not the same words."""
    assert judged("0: A A9", "1: A A7", "2: A A5").headline == ("FAIL — 3 do not repeat (0, 1, 2)")


def test_the_sentence_of_a_fail_is_its_first_difference_and_where_the_matrix_ended() -> None:
    """A FAIL of a matrix that was cut says both."""
    made = record("0: A A", "1: A9 A9", ending=Ending.INTERRUPTED)

    assert told(made)[1] == (
        "variant 1 against variant 0: differs from token 9 on; "
        "the matrix is not complete (interrupted)"
    )
    assert "not complete" not in told(record("0: A A", "1: A9 A9"))[1]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (("1: A !CRASHED",), "2 comparisons stay open"),
        (("1: B@5011 B@5011", "2: B@5011 B@5011", "1f: A@?"), "5 comparisons stay open"),
        (("1: !REFUSED -",), "no placement was compared with anything"),
    ],
)
def test_the_sentence_of_an_open_matrix_counts_what_is_open(
    lines: tuple[str, ...], sentence: str
) -> None:
    """How many comparisons are open; without any, why nothing was tested."""
    assert judged("0: A A", *lines).reason == sentence


def test_one_open_comparison_is_told_in_the_singular() -> None:
    """Words agree with their number."""
    assert judged("0: A@3405 A@3414", "1: A@3405 A@3405").reason == "1 comparison stays open"


def test_an_anchor_is_called_an_anchor() -> None:
    """The reason says what was compared with what."""
    made = judged("0: A A", "1: B@5011 B@5011", "1f: A9 A9")

    assert made.reason == "anchor 1f against variant 0: differs from token 9 on"


def test_lengths_and_prompts_that_were_compared_are_told() -> None:
    """Streams that ended by themselves are shorter; each prompt is counted."""
    one, two = record("0: A A", "1: A A"), record("0: B<40 B<40", "1: B<40 B<40")

    assert told(two_prompts(one, two))[1] == (
        "4 comparisons at equal residency over 40 to 60 tokens of 2 prompts found no difference"
    )
    assert told(record("0: A", "1: A"))[1] == (
        "1 comparison at equal residency over 60 tokens of 1 prompt found no difference"
    )


def test_variants_that_ran_in_part_or_not_at_all_are_counted_among_those_that_were_to_run() -> None:
    """Only what the engine refused every time did not run for a reason of its own."""
    for line in ("2: - -", "2: A !REFUSED"):
        made = record("0: A A", "1: A9 A9", line, ending=Ending.INTERRUPTED)

        assert told(made)[0] == "FAIL — 1 of 2 variants differs at equal residency (1)"


def test_each_variant_is_named_with_its_own_part_that_did_not_move() -> None:
    """Not with another variant's, and not with a part of its own that did."""
    made = changed(record("0: A A", "1: A A", "2: A A", "3: A A"), "3", effect=Effect.PROVEN)
    for name, part in (("1", "main"), ("2", "draft")):
        moved = EffectPart(part="cache", expected="0", seen="0", effect=Effect.PROVEN)
        stuck = EffectPart(part=part, expected="1", seen="0", effect=Effect.CONTRADICTED)
        made = changed(made, name, effect=Effect.CONTRADICTED, effect_parts=(moved, stuck))

    assert "variant 1 did not go where its flags say (main: expected 1" in told(made)[1]
    assert "variant 2 did not go where its flags say (draft: expected 1" in told(made)[1]


def test_streams_that_were_not_compared_do_not_count_for_the_length() -> None:
    """What is not claimed may be longer than all that passed."""
    made = record("0: A<30 A<30", "1: A<30 A<30", "2: C~RTX C~RTX", on_device=())

    assert told(made)[1].startswith("2 comparisons at equal residency over 30 tokens of 1 prompt")


def test_one_token_is_told_as_one() -> None:
    """A stream may end at once; how little was compared is said in words that fit."""
    made = record("0: A<1 A<1", "1: A<1 A<1", "2: A<1~RTX A<1~RTX", on_device=())

    reasons = [v.reason for v in judge(made).verdicts if v.kind is Kind.EXACT]
    assert reasons == [
        *["equal over 1 token: too few to tell anything"] * 2,
        *["not claimed to be equal: equal over 1 token"] * 2,
    ]


def test_a_baseline_longer_than_what_was_compared_does_not_count() -> None:
    """How much was compared is told by the runs that were, not by any other."""
    made = record("0: A A", "1: B<30@5011 B<30@5011", "2: B<30@5011 B<30@5011", "1f: A A")
    short = replace(made, runs=tuple(r for r in made.runs if r.variant != "1f"))

    assert "over 30 to 60 tokens" in told(made)[1]
    assert judge(short).reason == "2 comparisons stay open"
