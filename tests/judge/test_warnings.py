"""Warnings that are no verdicts: each with a case for it, and the nearest case against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hetero_test.judge.judge import judge
from hetero_test.values.reading import Timings
from hetero_test.values.record import Record
from hetero_test.values.run import Purpose, Run, RunState
from hetero_test.values.verdict import Conclusion
from tests.judge.factories import (
    DRAFTS,
    changed,
    context,
    planned,
    record,
    run,
    two_prompts,
)
from tests.runs import altered

OTHER = replace(DRAFTS, accepted=12)
PLACED = (planned("0"), planned("1", ("main", "0"), ("draft", "1")), planned("2", ("main", "1")))


def warnings(made: Record) -> tuple[str, ...]:
    return judge(made).warnings


def equal(*more: str, **asked: Any) -> Record:
    return record("0: A A", "1: A A", *more, **asked)


def test_a_clean_matrix_has_no_warning() -> None:
    """Nothing is told without a reason."""
    assert warnings(equal()) == ()


# ---- drafts -------------------------------------------------------------------------------


def drafted(kind: tuple[str | None, str | None] = ("a", "a"), **of_one: Any) -> Record:
    """Equal streams; variant 1 accepted other drafts than the baseline."""
    made = changed(changed(equal(), "0", speculation=DRAFTS), "1", speculation=OTHER)
    made = context(context(made, "0", draft_kind=kind[0]), "1", draft_kind=kind[1])
    return changed(made, "1", **of_one) if of_one else made


def test_draft_statistics_that_differ_under_equal_streams() -> None:
    """A drafter can be broken without the output showing it; a warning, no verdict."""
    assert warnings(drafted()) == (
        "draft statistics differ under equal streams: "
        "variant 1 accepted 12 of 62 in 22 rounds of 6, variant 0 38 of 62 in 22 rounds of 6",
    )
    assert judge(drafted()).conclusion is Conclusion.PASS


def test_drafters_whose_kind_no_log_tells_are_compared() -> None:
    """Where nothing says that they differ in kind, a broken drafter is not to be missed."""
    assert len(warnings(drafted((None, None)))) == 1


@pytest.mark.parametrize("kinds", [("a", "b"), (None, "b")])
def test_drafters_of_two_kinds_may_draft_differently(kinds: tuple[str | None, str]) -> None:
    """Only drafters of one kind are to draft alike."""
    assert warnings(drafted(kinds)) == ()


def test_drafts_under_unequal_streams_are_no_matter() -> None:
    """Another stream has other drafts."""
    made = changed(
        changed(record("0: A A", "1: A9 A9"), "0", speculation=DRAFTS), "1", speculation=OTHER
    )

    assert warnings(made) == ()


@pytest.mark.parametrize(
    "unknown",
    [None, replace(DRAFTS, accepted=None), replace(DRAFTS, tokens_per_round=9.9)],
    ids=["no statistics", "one number unknown", "a ratio of the others"],
)
def test_draft_statistics_that_are_unknown_differ_from_nothing(unknown: Any) -> None:
    """Unknown is not 0."""
    assert warnings(drafted(speculation=unknown)) == ()


@pytest.mark.parametrize("name", ["rounds", "window", "accepted", "offered"])
def test_each_number_of_the_draft_statistics_counts(name: str) -> None:
    """Rounds, window, accepted and offered drafts."""
    assert len(warnings(drafted(speculation=replace(DRAFTS, **{name: 1})))) == 1


def test_unknown_numbers_are_shown_as_unknown() -> None:
    """What is not known is no number."""
    unknown = replace(OTHER, offered=None, rounds=None, window=None)
    (text,) = warnings(drafted(speculation=unknown))

    assert "variant 1 accepted 12 of ? in ? rounds, variant 0" in text


@pytest.mark.parametrize(
    ("odd", "one", "first"),
    [(1, 38, 12), (2, 12, 38), (3, 12, 38)],
    ids=["first", "second", "last"],
)
def test_drafts_that_differ_between_repeats(odd: int, one: int, first: int) -> None:
    """Wherever streams are equal, repeats included: each is held against the first."""
    made = changed(record("0: A A A", "1: A A A"), "1", speculation=DRAFTS)

    assert warnings(changed(made, "1", odd, speculation=OTHER)) == (
        "draft statistics differ under equal streams: variant 1 accepted "
        f"{one} of 62 in 22 rounds of 6, variant 1 {first} of 62 in 22 rounds of 6",
    )


def test_drafts_of_repeats_that_did_not_pass_are_not_compared() -> None:
    """Another variant's repeats, which did, are no reason to."""
    made = changed(record("0: A A A", "1: A A !CRASHED"), "1", speculation=DRAFTS)

    assert warnings(changed(made, "1", 2, speculation=OTHER)) == ()


def test_a_crashed_repeat_has_no_drafts_to_compare() -> None:
    """Repeats that are not all usable are told elsewhere."""
    made = changed(record("0: A A", "1: A A!CRASHED"), "1", 1, speculation=DRAFTS)

    assert warnings(changed(made, "1", 2, speculation=OTHER)) == ()


# ---- what moved ---------------------------------------------------------------------------


def test_slots_that_moved_between_repeats() -> None:
    """Auto sizes that differ between repeats of one command."""
    assert warnings(record("0: A A", "1: A@3405 A@3414")) == (
        "the residency of variant 1 moved between repeats: "
        "3405 slots on GTX 1080 Ti, 3414 slots on GTX 1080 Ti",
    )


@pytest.mark.parametrize(
    "lines", [("1: A@3405 B@?",), ("1: A@3405 A@3414!CRASHED",), ("1: B@9 B@9",)]
)
def test_slots_that_did_not_move(lines: tuple[str, ...]) -> None:
    """Unknown is not another size, a crashed run's is not final, two variants may differ."""
    assert not any("moved" in text for text in warnings(record("0: A A", *lines)))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("swaps", "the adaptive expert swaps of variant 1 moved between repeats: 2, 3"),
        (
            "pcie_share",
            "the share of experts read over the link of variant 1 moved between repeats: 2, 3",
        ),
    ],
)
def test_swaps_or_shares_that_moved_between_repeats(key: str, words: str) -> None:
    """What is recorded beside the residency is told where it moved."""
    made = context(context(equal(), "1", 1, **{key: 2}), "1", 2, **{key: 3})

    assert warnings(made) == (words,)
    assert warnings(context(equal(), "1", 1, **{key: 2})) == ()
    assert warnings(context(equal(), "1", **{key: 2})) == ()
    once = context(context(equal(), "1", 1, **{key: 2}), "1", 2, **{key: None})
    assert warnings(once) == (), "what one log does not tell has not moved"


def test_what_moves_between_prompts_has_not_moved_between_repeats() -> None:
    """Another prompt is another command."""
    long = context(record("0: B@9 B@9", "1: B@9 B@9"), "1", swaps=7)
    made = two_prompts(context(equal(), "1", swaps=3), long)

    assert warnings(made) == ()


def test_what_moves_between_an_anchor_and_its_variant_has_not_moved_between_repeats() -> None:
    """Only runs of the rounds are repeats of a variant."""
    assert warnings(record("0: A A", "1: B@5011 B@5011", "1f: A A")) == ()
    assert warnings(record("0: A A", "1: B@5011 B@5011", "1f: A A@4100")) == ()


# ---- devices ------------------------------------------------------------------------------


def test_a_device_list_that_changed_between_runs() -> None:
    """One number, two cards: labels may not mean the same card."""
    made = changed(changed(equal(), "0", devices=("0: a", "1: b")), "1", devices=("1: c",))

    assert warnings(made) == (
        "the device list changed between runs (1 was b, then c); "
        "labels of devices may not mean the same card",
    )


def test_a_device_list_that_is_longer_in_one_log_has_not_changed() -> None:
    """Some modes print the second card, some do not."""
    made = changed(changed(equal(), "0", devices=("0: a",)), "1", devices=("0: a", "1: b"))

    assert warnings(made) == ()


def test_the_baseline_alone_on_a_device_sees_it_under_another_number_on_purpose() -> None:
    """A home baseline's list is no change."""
    made = record("0: A A", "2: C~RTX C~RTX", "0-home-2: C~RTX C~RTX")
    made = changed(changed(made, "0", devices=("0: a", "1: b")), "0-home-2", devices=("0: b",))

    assert warnings(made) == ()


# ---- identical lines ----------------------------------------------------------------------


def lined(one: str, other: str, names: tuple[str, str] = ("1", "2")) -> Record:
    made = record("0: A A", "1: A A", "2: A A", variants=PLACED)
    return changed(changed(made, names[0], lines=(one,)), names[1], lines=(other,))


@pytest.mark.parametrize("names", [("1", "2"), ("0", "1")])
def test_two_placements_with_identical_lines(names: tuple[str, str]) -> None:
    """Placements with identical logs, or the baseline's, are named: a flag had no effect."""
    assert warnings(lined("same", "same", names)) == (
        f"variants {names[0]} and {names[1]} have identical memory and role lines: "
        "a flag had no visible effect",
    )


def test_two_placements_with_different_lines() -> None:
    """One free MiB apart is apart."""
    assert warnings(lined("one", "other")) == ()
    assert warnings(changed(changed(equal(), "0", lines=("a",)), "1", lines=("b",))) == ()
    assert warnings(record("0: A A", "1: A A", "2: A A", variants=PLACED)) == ()


@pytest.mark.parametrize(
    ("one", "two", "warned"),
    [
        ((("main", "0"),), (("main", "0"), ("chain_batch", "no trace")), False),
        ((("main", "0"),), (("main", "0"), ("draft", "1")), False),
        ((("main", "0"),), (("main", "as picked"),), False),
        ((("main", "0"),), (("main", "1"),), True),
        ((), (("main", "0"),), True),
        ((), (), True),
    ],
    ids=str,
)
def test_identical_lines_matter_only_between_placements_meant_to_differ(
    one: tuple[tuple[str, str], ...], two: tuple[tuple[str, str], ...], *, warned: bool
) -> None:
    """Silent parts, and parts that the engine picks itself, may well look alike."""
    made = record("0: A A", "1: A A", "2: A A")
    entries = (planned("0"), planned("1", *one), planned("2", *two))
    made = replace(made, manifest=replace(made.manifest, variants=entries))
    made = changed(changed(made, "1", lines=("same",)), "2", lines=("same",))

    assert any("identical" in text for text in warnings(made)) is warned


@pytest.mark.parametrize(
    ("effect", "warned"),
    [
        ((("chain_batch", "no trace"),), False),
        ((("main", "as picked"),), False),
        ((("main", "0"),), True),
        ((("main", "0"), ("chain_batch", "no trace")), True),
        ((), True),
    ],
)
def test_identical_lines_of_the_baseline_and_a_variant(
    effect: tuple[tuple[str, str], ...], *, warned: bool
) -> None:
    """A variant that is meant to place something looks like the user's own command."""
    entries = (planned("0"), planned("1", *effect))
    made = changed(equal(variants=entries), "0", lines=("same",))

    assert any("identical" in t for t in warnings(changed(made, "1", lines=("same",)))) is warned


def test_lines_of_another_prompt_are_not_compared() -> None:
    """The same command with another prompt has other figures, or the same."""
    made = two_prompts(lined("same", "other"), lined("third", "same"))

    assert warnings(made) == ()


def test_lines_of_a_crashed_run_are_not_compared() -> None:
    """It did not come far enough to show its placement."""
    made = record("0: A A", "1: A!CRASHED A", "2: A A", variants=PLACED)
    made = changed(changed(made, "1", 1, lines=("same",)), "2", lines=("same",))

    assert warnings(made) == ()


# ---- times --------------------------------------------------------------------------------


def timed(name: str, *speeds: float | None) -> Record:
    made = record(*(f"{n}: {'A ' * len(speeds)}" for n in "01"))
    for repeat, speed in enumerate(speeds, 1):
        made = changed(made, name, repeat, timings=Timings(decode_tok_s=speed))
    return made


@pytest.mark.parametrize(("last", "told"), [(9.6, "-4.0%"), (10.4, "+4.0%")])
def test_a_baseline_that_drifted(last: float, told: str) -> None:
    """A warning tells how far decoding drifted from the first baseline to the last."""
    assert warnings(timed("0", 10.0, 3.0, last))[0] == (
        f"the baseline's decode speed drifted by {told} between its first and its last run: "
        "differences below that are not resolvable"
    )


def drifted(made: Record) -> bool:
    return any("drifted" in text for text in warnings(made))


def test_what_is_no_drift() -> None:
    """Within 3 %, of another variant, unknown, or of one run only."""
    assert not drifted(timed("0", 10.0, 10.25))
    assert not drifted(timed("0", 10.0, 9.75))
    assert not drifted(timed("1", 10.0, 9.0))
    assert not drifted(timed("0", 10.0, None))
    assert not drifted(timed("0", 10.0))
    assert not drifted(timed("0", None, None))
    assert not drifted(changed(timed("0", 10.0, 9.0), "0", 2, state=RunState.CRASHED))


def test_the_drift_is_from_the_first_to_the_last_in_planned_order() -> None:
    """In what order runs were stored decides nothing."""
    made = timed("0", 10.0, 10.0, 9.0)

    assert drifted(replace(made, runs=made.runs[::-1]))


def test_another_prompt_is_no_drift() -> None:
    """A longer prompt decodes at another speed."""
    assert not drifted(two_prompts(timed("0", 10.0, 10.0), timed("0", 5.0, 5.0)))


def test_a_repeat_that_was_cached() -> None:
    """A repeat more than 1.5 times as fast at an equal stream was cached: not comparable."""
    assert warnings(timed("1", 10.0, 10.0, 15.5)) == (
        "variant 1 decoded 1.6 times as fast in repeat 3 as in the one before: "
        "a cached repeat or a busy machine, not comparable",
    )


def test_what_is_no_cached_repeat() -> None:
    """Up to 1.5 times, slower, or another stream."""
    assert warnings(timed("1", 10.0, 15.0)) == ()
    assert warnings(timed("1", 30.0, 10.0)) == ()
    assert warnings(timed("1", 10.0, None, 14.0)) == ()
    assert not any(
        "cached" in t for t in warnings(changed(timed("1", 9.0, 18.0), "1", 2, stream=(1,)))
    )
    assert not any(
        "cached" in t
        for t in warnings(changed(timed("1", 9.0, 18.0), "1", 2, state=RunState.CRASHED))
    )


# ---- further runs of the baseline ---------------------------------------------------------


def test_a_warm_up_whose_stream_differs() -> None:
    """A warning, since warm-ups are no repeats."""
    assert warnings(equal(warm=["0: A A7"])) == (
        "the stream of warm-up run 2 differs from that of its first run",
    )


def test_a_warm_up_that_failed() -> None:
    """It is told, with its state."""
    assert warnings(equal(warm=["0: !CRASHED"])) == ("warm-up run 1 was CRASHED: it was crashed",)


def test_a_sizing_run_is_told_by_its_variant() -> None:
    """Under --pinned each variant is run once before the rounds."""
    assert warnings(equal(warm=["1: A7"])) == (
        "the stream of warm-up run 1 of variant 1 differs from that of its first run",
    )


@pytest.mark.parametrize("warm", ["0: A", "0: A7@5011", "0: A7@?"])
def test_what_is_no_warning_of_a_warm_up(warm: str) -> None:
    """Equal, or of a residency that no run of the baseline had."""
    assert warnings(equal(warm=[warm])) == ()


def test_a_further_run_is_compared_with_its_own_variants_first_good_run() -> None:
    """Not with another variant's, and not with what a crashed run printed."""
    assert warnings(record("0: A A", "1: A9 A9", warm=["1: A9"])) == ()
    assert warnings(record("0: A9!CRASHED A", "1: A A", warm=["0: A"])) == ()


def test_a_warm_up_of_another_prompt_is_not_compared() -> None:
    """Streams of two prompts differ anyway."""
    made = equal(warm=["0: A7"])

    assert warnings(made) != ()
    assert warnings(replace(made, warmup=(altered(made.warmup[0], probe="long"),))) == ()


def after_hang(word: str, **more: Any) -> Record:
    check: Run = run("0w", word=word, of="0", **({"purpose": Purpose.AFTER_HANG} | more))
    return replace(equal(), rechecks=(check,))


def test_a_baseline_that_changed_after_a_hang() -> None:
    """The rig runs on, but not as before."""
    assert warnings(after_hang("A7")) == (
        "the stream of the baseline after a hang differs from that of its first run: "
        "what ran since then may be the rig's fault",
    )


def test_a_baseline_that_did_not_change_after_a_hang() -> None:
    """Equal; or not usable, which stops the matrix; or another kind of run."""
    assert warnings(after_hang("A")) == ()
    assert warnings(after_hang("A7!CRASHED")) == ()
    assert warnings(after_hang("A7@5011")) == ()
    assert warnings(after_hang("A7", purpose=Purpose.RECHECK)) == ()


def test_what_a_run_itself_warns_of_is_told_with_its_name() -> None:
    """Each run's own warnings, with the run that they are of."""
    assert warnings(changed(equal(), "1", 2, warnings=("left processes behind",))) == (
        "variant 1, repeat 2: left processes behind",
    )


# ---- drafters that vanished -------------------------------------------------------------------


def vanished(*drafters: bool | None, silent: str = "1") -> Record:
    """Three variants of which one prints no draft statistics."""
    entries = tuple(planned(name, drafter=d) for name, d in zip("012", drafters, strict=True))
    made = record("0: A A", "1: A A", "2: A A", variants=entries)
    for name in "012":
        made = changed(made, name, speculation=None if name == silent else DRAFTS)
    return made


@pytest.mark.parametrize("silent", ["0", "1", "2"])
def test_a_drafter_that_vanished_is_told_and_strict_counts_it(silent: str) -> None:
    """One side prints draft statistics and the other none: the drafter may not have run."""
    made = vanished(True, True, True, silent=silent)
    strict = replace(made, manifest=replace(made.manifest, strict=True))
    told = [text for text in judge(made).warnings if "prints no draft statistics" in text]

    assert judge(made).conclusion is Conclusion.PASS
    assert told
    assert all(text.startswith(f"variant {silent} prints") for text in told)
    assert judge(strict).conclusion is Conclusion.INCONCLUSIVE
    assert "prints no draft statistics" in judge(strict).headline


def test_a_drafter_that_vanished_in_one_repeat_is_told_with_the_repeat() -> None:
    """The repeats of one command have one drafter."""
    made = changed(vanished(True, True, True, silent="none"), "1", 2, speculation=None)

    assert any("variant 1 (repeat 2) prints no draft" in text for text in judge(made).warnings)


def test_a_variant_without_a_drafter_of_its_own_prints_nothing_of_one() -> None:
    """Where one command brings a drafter and the other does not, nothing vanished."""
    made = vanished(True, False, True)

    assert not any("prints no draft" in text for text in judge(made).warnings)
