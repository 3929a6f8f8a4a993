"""Rule 1: the repeats of a variant are identical."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hetero_test.judge.judge import judge
from hetero_test.judge.rules import renumbered
from hetero_test.values.record import Ending
from hetero_test.values.verdict import Conclusion, Kind, Result
from tests.judge.factories import (
    changed,
    context,
    judged,
    only,
    record,
    results,
    run,
    two_prompts,
)
from tests.runs import beside

REPEAT = Kind.REPEAT


def test_identical_repeats_pass() -> None:
    """All that were asked for ran, at one known residency, with one stream."""
    verdict = only(judged("0: A A A", "1: A A A"), REPEAT, "1")

    assert verdict.result is Result.PASS
    assert verdict.reason == "3 of 3 repeats are identical"
    assert (verdict.repeat, verdict.against) == (None, None)


def test_every_variant_and_every_extra_run_has_one_verdict() -> None:
    """The baseline, the variants, and anchors, pairs and home baselines are all repeated."""
    made = judged("0: A A", "1: B@5011 B@5011", "1f: A@4100 -", "0s: C@4100 C@4100")

    assert [v.variant for v in made.verdicts if v.kind is REPEAT] == ["0", "1", "1f", "0s"]


def test_a_difference_is_a_fail_with_the_order_of_clusters() -> None:
    """It is told as k distinct of n, with the order of clusters: A B B."""
    verdict = only(judged("0: A A A", "1: A A17 A17"), REPEAT, "1")

    assert verdict.result is Result.FAIL
    assert verdict.reason == "2 distinct streams in 3 repeats (A B B), first at token 17"
    assert verdict.difference is not None
    assert verdict.difference.index == 17


def test_repeats_of_which_one_is_a_strict_prefix_are_said_so() -> None:
    """An end of sequence that came in one repeat only."""
    verdict = only(judged("0: A A", "1: A A<40"), REPEAT, "1")

    assert verdict.reason == (
        "2 distinct streams in 2 repeats (A B), first at token 40, one a strict prefix of the other"
    )


def test_a_difference_counts_also_when_another_repeat_crashed() -> None:
    """A missing stream does not hide a difference between the others."""
    assert results(judged("0: A A A", "1: A !CRASHED A17"), REPEAT, "1") == ["FAIL"]


@pytest.mark.parametrize("bad", ["!CRASHED", "!TIMED_OUT", "!NO_STREAM", "A<40!TRUNCATED", "-"])
def test_fewer_usable_than_asked_is_inconclusive(bad: str) -> None:
    """One good repeat is not identical to itself; the states of the others are told."""
    verdict = only(judged("0: A A", f"1: A {bad}"), REPEAT, "1")

    assert verdict.result is Result.INCONCLUSIVE
    assert verdict.reason.startswith("1 of 2 repeats are usable (")
    assert ("1 not run" if bad == "-" else bad.partition("!")[2]) in verdict.reason


def test_both_what_failed_and_what_is_missing_are_told() -> None:
    """The reason counts the repeats that were not run beside the states of those that were."""
    verdict = only(judged("0: A A A", "1: A !CRASHED -"), REPEAT, "1")

    assert verdict.reason == "1 of 3 repeats are usable (CRASHED, 1 not run)"


def test_repeats_of_unknown_residency_are_inconclusive() -> None:
    """Equal streams of unknown residency are no repeats of each other, nor are unequal ones."""
    for words in ("A@? A@?", "A A@?", "A@? A17@?", "A A17@?"):
        verdict = only(judged("0: A A", f"1: {words}"), REPEAT, "1")

        assert verdict.result is Result.INCONCLUSIVE
        assert verdict.reason == "the residency is unknown: no line tells the final size"


@pytest.mark.parametrize("second", ["A@3414", "A17@3414"])
def test_repeats_of_different_residencies_are_no_repeats(second: str) -> None:
    """Auto sizes that moved between restarts: inconclusive, with both numbers."""
    verdict = only(judged("0: A A", f"1: A@3405 {second}"), REPEAT, "1")

    assert verdict.result is Result.INCONCLUSIVE
    assert "3405 slots" in verdict.reason
    assert "3414 slots" in verdict.reason


def test_a_difference_within_one_residency_counts_also_when_another_moved() -> None:
    """Repeats 1 and 3 share a residency and differ: a FAIL, whatever repeat 2 had."""
    verdict = only(judged("0: A A A", "1: A C@3414 A5"), REPEAT, "1")

    assert verdict.result is Result.FAIL
    assert verdict.reason == "2 distinct streams in 2 repeats (A B), first at token 5"


def test_repeats_on_swapped_devices_are_no_repeats() -> None:
    """Runs whose device list differs are not repeats of each other."""
    for words in ("A A", "A A17"):
        made = record("0: A A", f"1: {words}")
        made = changed(made, "1", 1, devices=("0: cuda A", "1: cuda B"))
        made = changed(made, "1", 2, devices=("0: cuda A", "1: vulkan B"))

        verdict = only(judge(made), REPEAT, "1")

        assert verdict.result is Result.INCONCLUSIVE
        assert verdict.reason == (
            "the device list changed between the repeats: 1 was cuda B, then vulkan B"
        )


def test_a_device_list_that_names_fewer_devices_has_not_changed() -> None:
    """Only a number that names another device is a change; a log may name fewer of them."""
    assert renumbered([("0: a", "1: b"), ("0: a",), (), ("1: b", "2: c")]) is None
    assert renumbered([("0: a",), ("1: b",), ("0: b",)]) == "0 was a, then b"


@pytest.mark.parametrize("words", ["!REFUSED !REFUSED", "!NO_MEMORY -", "!REFUSED !NO_MEMORY"])
def test_a_placement_that_never_started_is_skipped(words: str) -> None:
    """All REFUSED or NO_MEMORY is SKIPPED, with what the engine said."""
    verdict = only(judged("0: A A", f"1: {words}"), REPEAT, "1")

    assert verdict.result is Result.SKIPPED
    assert verdict.reason.startswith(words.split(maxsplit=1)[0][1:] + ": it was")


@pytest.mark.parametrize("words", ["A !REFUSED", "!NO_MEMORY A", "!REFUSED !CRASHED"])
def test_a_placement_that_started_once_is_not_skipped(words: str) -> None:
    """Only when all repeats never started there is nothing to say."""
    assert results(judged("0: A A", f"1: {words}"), REPEAT, "1") == ["INCONCLUSIVE"]


def test_no_record_at_all_is_inconclusive() -> None:
    """A planned variant that never ran is not one whose repeats agree."""
    verdict = only(judged("0: A A", "1: - -", ending=Ending.INTERRUPTED), REPEAT, "1")

    assert verdict.result is Result.INCONCLUSIVE
    assert verdict.reason == "0 of 2 repeats are usable (2 not run)"


@pytest.mark.parametrize("word", ["A", "!CRASHED", "A@?"])
def test_one_repeat_is_skipped(word: str) -> None:
    """With --repeats 1 nothing was repeated: never PASS."""
    verdict = only(judged("0: A", f"1: {word}"), REPEAT, "1")

    assert verdict.result is Result.SKIPPED
    assert verdict.reason == "one repeat was asked for, so nothing was repeated"


@pytest.mark.parametrize("word", ["A", "!CRASHED", "C@5011"])
def test_two_records_of_one_repeat_are_inconclusive(word: str) -> None:
    """Two records of one repeat mean overwritten or mixed evidence, which proves nothing."""
    made = record("0: A", "1: A")
    made = replace(made, runs=(*made.runs, run("1", 1, word, order=9)))

    assert results(judge(made), REPEAT, "1") == ["INCONCLUSIVE"]
    assert only(judge(made), REPEAT, "1").reason == "a repeat is recorded more than once"


def test_two_records_of_one_repeat_that_differ_are_a_fail() -> None:
    """Any difference between usable runs of one command counts."""
    made = record("0: A A", "1: A A")
    made = replace(made, runs=(*made.runs, run("1", 1, "A9", order=9)))

    assert results(judge(made), REPEAT, "1") == ["FAIL"]


@pytest.mark.parametrize("ids", [None, ()])
def test_ok_runs_without_a_token_are_no_repeats(ids: tuple[int, ...] | None) -> None:
    """Streams that are equally empty are not identical."""
    made = changed(record("0: A A", "1: A A"), "1", stream=ids)

    assert results(judge(made), REPEAT, "1") == ["INCONCLUSIVE"]


@pytest.mark.parametrize("words", ["A@4100 -", "A@4100 A@4100", "A@4100!TRUNCATED -"])
def test_an_anchor_that_never_had_its_residency_is_skipped(words: str) -> None:
    """The anchor stops there; its repeats are of nothing that was wanted."""
    made = judged("0: A A", "1: B@5011 B@5011", f"1f: {words}")

    assert only(made, REPEAT, "1f").reason == "the forced residency was not reached"
    assert results(made, REPEAT, "1f") == ["SKIPPED"]


@pytest.mark.parametrize("words", ["A@4100 A", "A A@4100", "!CRASHED A@4100", "A@? A@4100"])
def test_an_anchor_that_strayed_once_is_inconclusive(words: str) -> None:
    """What reached its residency once and then did not is no repeat of itself."""
    made = judged("0: A A", "1: B@5011 B@5011", f"1f: {words}")

    assert results(made, REPEAT, "1f") == ["INCONCLUSIVE"]


def test_an_anchor_that_strays_and_differs_is_a_fail() -> None:
    """Any difference between usable repeats counts, wanted residency or not."""
    made = judged("0: A A", "1: B@5011 B@5011", "1f: A@4100 A9@4100")

    assert results(made, REPEAT, "1f") == ["FAIL"]


def test_a_variant_that_strays_from_the_baseline_is_repeated_all_the_same() -> None:
    """Only anchors are to have the baseline's residency; a variant or pair has its own."""
    made = judged("0: A A", "1: B@5011 B@5011", "1f: A@4100 -", "0s: C@4100 C@4100")

    assert results(made, REPEAT, "1") == ["PASS"]
    assert results(made, REPEAT, "0s") == ["PASS"]


def test_of_several_differences_the_one_that_nothing_explains_is_told() -> None:
    """Repeats 1 and 3 differ with nothing else moved: a FAIL, though 2 has another share."""
    made = record("0: A A A", "1: A A17 A5")
    made = context(made, "1", pcie_share=0.25)
    made = context(made, "1", 2, pcie_share=0.5)

    verdict = only(judge(made), REPEAT, "1")

    assert verdict.result is Result.FAIL
    assert verdict.reason.endswith("first at token 5")


def test_prompts_are_repeated_apart() -> None:
    """Each prompt has its own verdict: streams of two prompts are not compared."""
    made = judge(two_prompts(record("0: A A", "1: A A"), record("0: B B", "1: B B7")))

    assert [(v.variant, v.probe, v.result) for v in made.verdicts if v.kind is REPEAT] == [
        ("0", "default", Result.PASS),
        ("1", "default", Result.PASS),
        ("0", "long", Result.PASS),
        ("1", "long", Result.FAIL),
    ]


# ---- differences beside the rounds ------------------------------------------------------------


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_a_warm_up_that_differs_makes_the_baseline_noisy(repeats: int) -> None:
    """A difference counts wherever it was seen: more care never gives a better verdict."""
    words = " ".join(["A"] * repeats)
    made = judged(f"0: {words}", f"1: {words}", warm=("0: Q",))

    assert made.conclusion is Conclusion.INCONCLUSIVE
    assert "the baseline does not repeat itself" in made.headline
    assert results(made, Kind.REPEAT, "0") == ["FAIL"]
    assert "warmup among them" in only(made, Kind.REPEAT, "0").reason
    assert results(made, Kind.EXACT, "1") == ["INCONCLUSIVE"] * repeats


def test_a_warm_up_at_another_residency_is_no_difference() -> None:
    """Streams are compared at equal residency only, whatever the runs are for."""
    made = judged("0: A A", "1: A A", warm=("0: Q@5011",))

    assert made.conclusion is Conclusion.PASS


def test_a_warm_up_without_a_known_residency_tells_nothing() -> None:
    """What is not known is not held against the rounds."""
    made = judged("0: A A", "1: A A", warm=("0: Q@?",))

    assert made.conclusion is Conclusion.PASS


def test_the_baseline_after_a_hang_counts_as_a_repeat() -> None:
    """A rig that gives another stream after a hang does not repeat itself."""
    made = judged("0: A A", "1: A A", "0w: Q")

    assert made.conclusion is Conclusion.INCONCLUSIVE
    assert "the baseline does not repeat itself" in made.headline


def test_the_baseline_with_a_shared_size_counts_as_a_repeat_at_equal_residency() -> None:
    """Another road to the same residency may not give another stream."""
    made = judged("0: A A", "1: A A", "0s: Q Q")

    assert made.conclusion is Conclusion.INCONCLUSIVE
    assert "the baseline does not repeat itself" in made.headline


def test_a_home_baseline_counts_as_a_repeat_at_equal_residency() -> None:
    """So does the baseline alone on one device."""
    made = judged("0: A A", "1: A A", "0-home-2: Q Q")

    assert made.conclusion is Conclusion.INCONCLUSIVE
    assert "the baseline does not repeat itself" in made.headline


def test_a_variant_that_differs_in_an_extra_run_fails_its_repeat() -> None:
    """A variant that gives two streams at one residency is a FAIL of its repeats."""
    made = judged("0: A A", "1: A A", "1s: Q Q")

    assert made.conclusion is Conclusion.FAIL
    assert results(made, Kind.REPEAT, "1") == ["FAIL"]


def test_a_warm_up_that_differs_under_moved_swaps_is_run_again_as_the_command_it_is() -> None:
    """What may explain it is looked at with the pinned recipe, under the id of the rounds."""
    made = record("0: A A", "1: A A", "0p: A A", warm=("0: Q",))
    made = context(context(made, "0", swaps=3), "1", swaps=3)
    made = replace(made, warmup=tuple(beside(run, swaps=9) for run in made.warmup))
    verdict = only(judge(made), Kind.REPEAT, "0")

    assert (verdict.result, verdict.recheck) == (Result.INCONCLUSIVE, "p")
    assert "with the pinned recipe the streams are equal" in verdict.reason
