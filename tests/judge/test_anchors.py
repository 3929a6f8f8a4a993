"""Rule 3: extra runs at the baseline's residency, against the baseline."""

from __future__ import annotations

import pytest

from hetero_test.judge.judge import judge
from hetero_test.values.run import Effect, Purpose
from hetero_test.values.verdict import Conclusion, Kind, Result
from tests.judge.factories import changed, judged, of, record, results, two_prompts

ANCHOR = Kind.ANCHOR
APART = ("0: A A", "1: B@5011 B@5011")
MISSED = "4400 slots on GTX 1080 Ti was forced, but the engine opened 4100 slots on GTX 1080 Ti"


def test_each_repeat_of_an_anchor_is_compared_with_the_baseline() -> None:
    """Forced to the baseline's residency, a placement is held against the baseline itself."""
    made = judged(*APART, "1f: A A17")

    assert [(v.repeat, v.against, v.result) for v in of(made, ANCHOR, "1f")] == [
        (1, ("0", 1), Result.PASS),
        (2, ("0", 1), Result.FAIL),
    ]


def test_all_placements_wrong_alike_are_found_by_the_anchor() -> None:
    """Equal among themselves at their own residency, they differ from the baseline."""
    made = judged(*APART, "2: B@5011 B@5011", "1f: A5 A5")

    assert results(made, Kind.EXACT, "2") == ["PASS"] * 2
    assert results(made, ANCHOR, "1f") == ["FAIL"] * 2
    assert made.conclusion is Conclusion.FAIL


def test_an_anchor_that_was_not_begun_has_no_verdicts() -> None:
    """That it is missing is said where the runs are that it would cover."""
    made = judged(*APART)

    assert [v for v in made.verdicts if v.kind is ANCHOR] == []
    assert results(made, Kind.EXACT, "1") == ["INCONCLUSIVE"] * 2


def test_runs_of_the_rounds_are_no_anchor() -> None:
    """What another matrix called 1f is not taken for the anchor of 1."""
    made = judge(changed(record(*APART, "1f: A A"), "1f", purpose=Purpose.ROUND))

    assert [v for v in made.verdicts if v.variant == "1f"] == []
    assert results(made, Kind.EXACT, "1") == ["INCONCLUSIVE"] * 2


def test_every_anchored_group_has_its_anchor_compared() -> None:
    """Not only variant 1's: each group that lacks the baseline."""
    made = judged(*APART, "2: C@4800 C@4800", "1f: A A", "2f: A A")

    assert results(made, ANCHOR, "1f") == results(made, ANCHOR, "2f") == ["PASS"] * 2


def test_a_shared_anchor_is_compared_once() -> None:
    """Two groups with one first variant share an anchor; its verdicts are not doubled."""
    made = judged("0: A A", "1: B@5011 C@5020", "1f: A A")

    assert results(made, ANCHOR, "1f") == ["PASS"] * 2
    assert results(made, Kind.EXACT, "1") == ["SKIPPED"]


def test_an_anchor_is_compared_with_the_first_usable_run_of_a_baseline_that_moved() -> None:
    """A baseline in several residencies is tied by its first usable run."""
    made = judged("0: !CRASHED A@4200 A@4300", "1: B@5011 B@5011 B@5011", "1f: A@4200 A@4200 -")

    assert [v.against for v in of(made, ANCHOR, "1f")] == [("0", 2), ("0", 2), None]


@pytest.mark.parametrize(
    ("word", "result", "reason"),
    [
        ("!CRASHED", "INCONCLUSIVE", "CRASHED: it was crashed"),
        ("A@?", "INCONCLUSIVE", "the residency is unknown: no line tells the final size"),
        ("-", "INCONCLUSIVE", "planned, but there is no record of it"),
        ("!NO_MEMORY", "SKIPPED", "NO_MEMORY: it was no_memory"),
        ("!REFUSED", "SKIPPED", "REFUSED: it was refused"),
        ("A<9!TRUNCATED", "FAIL", "TRUNCATED: it was truncated"),
        ("A!DEGENERATE", "FAIL", "DEGENERATE: it was degenerate"),
    ],
)
def test_an_anchors_repeat_that_is_no_good_run(word: str, result: str, reason: str) -> None:
    """An anchor that crashes in one repeat stays open there; the other repeat is compared."""
    verdict = of(judged(*APART, f"1f: A {word}"), ANCHOR, "1f")[1]

    assert (verdict.result.value, verdict.reason) == (result, reason)
    assert results(judged(*APART, f"1f: A {word}"), ANCHOR, "1f")[0] == "PASS"


def test_a_noisy_baseline_decides_nothing_for_an_anchor() -> None:
    """A reference that is not identical to itself makes the anchor inconclusive as well."""
    made = judged("0: A A9", "1: B@5011 B@5011", "1f: A A9")

    assert results(made, ANCHOR, "1f") == ["INCONCLUSIVE"] * 2
    assert results(made, Kind.EXACT, "1") == ["INCONCLUSIVE"] * 2


def test_prompts_have_anchors_of_their_own() -> None:
    """A second prompt's anchor is compared with that prompt's baseline."""
    short = record(*APART, "1f: A A")
    made = judge(two_prompts(short, record("0: D D", "1: E@5011 E@5011", "1f: D D7")))

    assert [(v.probe, v.result.value) for v in of(made, ANCHOR, "1f")] == [
        *[("default", "PASS")] * 2,
        ("long", "PASS"),
        ("long", "FAIL"),
    ]


# ---- an anchor in which nothing moved -----------------------------------------------------


@pytest.mark.parametrize("effect", [Effect.NOT_SEEN, Effect.CONTRADICTED, None])
def test_an_anchor_in_which_nothing_moved_does_not_vouch_for_a_placement_that_moved(
    effect: Effect | None,
) -> None:
    """A drafter that fell back to the main path in the anchor only shows the baseline twice."""
    made = judge(changed(record(*APART, "2: B@5011 B@5011", "1f: A A"), "1f", effect=effect))

    assert results(made, ANCHOR, "1f") == ["INCONCLUSIVE"] * 2
    assert of(made, ANCHOR, "1f")[0].reason == (
        f"equal over 60 tokens, but the placement is {effect or 'not told'} in this run"
    )
    assert results(made, Kind.EXACT, "1") == ["INCONCLUSIVE"] * 2
    assert made.conclusion is Conclusion.INCONCLUSIVE


def test_an_anchor_in_which_nothing_moved_can_still_fail() -> None:
    """Whatever moved: at the baseline's residency the streams are to be equal."""
    made = judge(changed(record(*APART, "1f: A9 A9"), "1f", effect=Effect.NOT_SEEN))

    assert results(made, ANCHOR, "1f") == ["FAIL"] * 2


def test_a_placement_that_never_moved_is_covered_by_an_anchor_that_did_not_either() -> None:
    """Its anchor shows what the variant showed; that nothing moved is told by its effect."""
    made = record(*APART, "2: B@5011 B@5011", "1f: A A")
    made = changed(changed(made, "1", effect=Effect.CONTRADICTED), "1f", effect=Effect.NOT_SEEN)

    assert results(judge(made), ANCHOR, "1f") == ["PASS"] * 2
    assert results(judge(made), Kind.EXACT, "1") == ["SKIPPED"]


@pytest.mark.parametrize("effect", [Effect.PROVEN, Effect.UNOBSERVABLE])
def test_an_anchor_without_a_trace_is_as_good_as_its_variant(effect: Effect) -> None:
    """What leaves no trace leaves none in the anchor either."""
    made = judge(changed(record(*APART, "1f: A A"), "1f", effect=effect))

    assert results(made, ANCHOR, "1f") == ["PASS"] * 2


# ---- strays and pairs ---------------------------------------------------------------------


def test_an_anchor_that_strays_is_skipped_with_the_numbers() -> None:
    """The log shows another residency than was forced: its verdicts are SKIPPED."""
    made = judged(*APART, "1f: A@4100 -")

    assert results(made, ANCHOR, "1f") == ["SKIPPED"] * 2
    assert {v.reason for v in of(made, ANCHOR, "1f")} == {MISSED}


def test_a_repeat_that_had_its_residency_is_compared_although_another_strayed() -> None:
    """A difference at equal residency is not lost because the next repeat was clipped."""
    made = judged(*APART, "1f: A9 A@4100", "0s: C@4100 C@4100", "1s: C@4100 C@4100")

    assert results(made, ANCHOR, "1f") == ["FAIL", "SKIPPED"]
    assert made.conclusion is Conclusion.FAIL


def test_a_repeat_that_crashed_before_another_strayed_stays_open() -> None:
    """Only what strayed, and what was not run after it, is skipped."""
    made = judged("0: A A A", "1: B@5011 B@5011 B@5011", "1f: !CRASHED A@4100 -")

    assert results(made, ANCHOR, "1f") == ["INCONCLUSIVE", "SKIPPED", "SKIPPED"]


def test_a_pair_with_one_shared_size_stands_in_for_an_anchor_that_strayed() -> None:
    """The variant of the pair is compared with the baseline of the pair, and covers."""
    made = judged(*APART, "1f: A@4100 -", "0s: C@4100 C@4100", "1s: C@4100 C5@4100")

    assert [(v.repeat, v.against, v.result) for v in of(made, ANCHOR, "1s")] == [
        (1, ("0s", 1), Result.PASS),
        (2, ("0s", 1), Result.FAIL),
    ]
    assert results(made, Kind.EXACT, "1") == ["SKIPPED"]


def test_a_clipped_cache_with_an_equal_pair_passes() -> None:
    """A forced size that the engine clips is tested all the same, at a smaller one."""
    made = judged(*APART, "1f: C@4100 -", "0s: C@4100 C@4100", "1s: C@4100 C@4100")

    assert made.conclusion is Conclusion.PASS


def test_without_a_pair_an_anchor_that_strayed_is_inconclusive_with_the_numbers() -> None:
    """Only if a pair fails too, or cannot be, it is INCONCLUSIVE."""
    made = judged(*APART, "1f: A@4100 -")

    assert results(made, ANCHOR, "1s") == ["INCONCLUSIVE"] * 2
    assert {v.reason for v in of(made, ANCHOR, "1s")} == {
        f"{MISSED}, and there is no pair with one shared size"
    }


def test_a_pair_of_two_residencies_is_inconclusive_with_the_numbers() -> None:
    """Clipped again: the two sides did not get one size, equal streams or not."""
    made = judged(*APART, "1f: A@4100 -", "0s: C@4100 C@4100", "1s: C@3900 C9@3900")

    assert results(made, ANCHOR, "1s") == ["INCONCLUSIVE"] * 2
    assert of(made, ANCHOR, "1s")[0].reason == (
        "the residencies differ: 3900 slots on GTX 1080 Ti against 4100 slots on GTX 1080 Ti"
    )
    assert results(made, Kind.EXACT, "1") == ["INCONCLUSIVE"] * 2


@pytest.mark.parametrize("side", ["!CRASHED !CRASHED", "C@? C@?", "- -"])
def test_a_pair_whose_baseline_is_no_good_is_inconclusive(side: str) -> None:
    """The variant's side alone proves nothing."""
    made = judged(*APART, "1f: A@4100 -", f"0s: {side}", "1s: C@4100 C@4100")

    assert results(made, ANCHOR, "1s") == ["INCONCLUSIVE"] * 2
    assert of(made, ANCHOR, "1s")[0].reason == ("the baseline's side of the pair has no usable run")


def test_each_pair_is_compared_with_the_baseline_of_its_size() -> None:
    """Two anchors that were clipped differently have each a baseline of their own size."""
    made = judged(
        *("0: A A", "1: B@5011 B@5011", "2: C@4800 C@4800", "1f: D@4100 -", "2f: E@4000 -"),
        *("0s: D@4100 D@4100", "1s: D@4100 D@4100"),
        *("0s-2: E@4000 E@4000", "2s: E@4000 E@4000"),
    )

    assert {v.against for v in of(made, ANCHOR, "1s")} == {("0s", 1)}
    assert {v.against for v in of(made, ANCHOR, "2s")} == {("0s-2", 1)}
    assert made.conclusion is Conclusion.PASS


def test_a_pair_that_nobody_asked_for_is_not_compared() -> None:
    """An anchor that reached its residency needs no pair."""
    made = judged(*APART, "1f: A A", "0s: C@4100 C@4100", "1s: C@4100 C9@4100")

    assert of(made, ANCHOR, "1s") == []


def test_a_pair_stands_in_for_an_anchor_that_does_not_fit() -> None:
    """A canonical pack refuses a forced size that is too large; a smaller one is shared."""
    for words, told in (("!NO_MEMORY -", "SKIPPED"), ("!CRASHED !NO_MEMORY", "INCONCLUSIVE")):
        made = judged(*APART, f"1f: {words}", "0s: C@4100 C@4100", "1s: C@4100 C@4100")

        assert results(made, ANCHOR, "1f") == [told, "SKIPPED"]
        assert results(made, ANCHOR, "1s") == ["PASS"] * 2
        assert results(made, Kind.EXACT, "1") == ["SKIPPED"]


def test_an_anchor_that_does_not_fit_and_has_no_pair_covers_nothing() -> None:
    """It is SKIPPED, and the runs that it would have covered are inconclusive."""
    made = judged(*APART, "1f: !NO_MEMORY -")

    assert results(made, ANCHOR, "1f") == ["SKIPPED"] * 2
    assert of(made, ANCHOR, "1s") == []
    assert made.conclusion is Conclusion.INCONCLUSIVE


def test_a_refused_pair_covers_nothing() -> None:
    """SKIPPED is not compared."""
    made = judged(*APART, "1f: A@4100 -", "0s: C@4100 C@4100", "1s: !NO_MEMORY -")

    assert results(made, ANCHOR, "1s") == ["SKIPPED"] * 2
    assert results(made, Kind.EXACT, "1") == ["INCONCLUSIVE"] * 2
