"""What is run next: the rounds, and what a hang or a refusal changes in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hetero_test.errors import ExitCode
from hetero_test.judge.judge import exit_code, judge
from hetero_test.session.schedule import launches, no_baseline, planned_cells, wedged
from hetero_test.values.record import Record
from hetero_test.values.run import Cell, Purpose, Run, RunState
from hetero_test.values.verdict import Conclusion, Kind
from tests.judge.factories import RECIPE, probe, results
from tests.judge.rig import World, asked, engine, extra, keys, launch_of, play
from tests.runs import altered

APART = World(auto={"1": (5011,), "2": (5011,)})
PINNED = replace(RECIPE, asked=True)


# ---- rounds -------------------------------------------------------------------------------


def test_rounds_are_interleaved_and_every_second_is_reversed() -> None:
    """Round by round over the variants, so that drift hits them all alike."""
    made, cells = play(asked(2, repeats=3), World())

    assert keys(cells) == ["0-1", "1-1", "2-1", "2-2", "1-2", "0-2", "0-3", "1-3", "2-3"]
    assert [run.order for run in made.runs] == list(range(9))


def test_anchors_come_last() -> None:
    """After all rounds, all repeats of each."""
    made, cells = play(asked(2), APART)

    assert keys(cells)[6:] == ["1f-1", "1f-2"]
    assert [run.order for run in made.runs] == list(range(8))
    assert judge(made).conclusion is Conclusion.PASS


def test_warm_ups_come_first_and_are_kept_apart() -> None:
    """Of the baseline, as many as asked for; their orders come before the rounds'."""
    made, cells = play(asked(1, warmup=2), World())

    assert keys(cells) == ["0-1", "0-2", "0-1", "1-1", "1-2", "0-2"]
    assert [run.order for run in made.warmup] == [0, 1]
    assert [run.order for run in made.runs] == [2, 3, 4, 5]
    assert {run.purpose for run in made.warmup} == {Purpose.WARMUP}


def test_each_prompt_is_run_in_each_round() -> None:
    """A round is every variant with every prompt."""
    _, cells = play(asked(1, probes=(probe("a"), probe("b"))), World())

    assert [f"{cell.variant}{cell.probe}{cell.repeat}" for cell in cells] == [
        *("0a1", "0b1", "1a1", "1b1"),
        *("1a2", "1b2", "0a2", "0b2"),
    ]


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 6),
        ({"repeats": 4, "warmup": 1}, 13),
        ({"probes": (probe("a"), probe("b"))}, 12),
        ({"pinned": PINNED}, 9),
    ],
    ids=str,
)
def test_the_launches_that_are_certain_are_those_of_a_matrix_without_extra_runs(
    changed: dict[str, Any], count: int
) -> None:
    """What is announced before the first launch."""
    manifest = asked(2, **changed)

    assert launches(manifest) == count == len(play(manifest, World())[1])


def test_variants_that_cannot_run_are_not_launched() -> None:
    """They stand in the plan, with the reason."""
    manifest = asked(2)
    entries = (*manifest.variants[:2], replace(manifest.variants[2], planned=False))
    manifest = replace(manifest, variants=entries)

    assert launches(manifest) == 4
    assert keys(play(manifest, World())[1]) == ["0-1", "1-1", "1-2", "0-2"]
    sized = replace(manifest, pinned=PINNED)
    assert launches(sized) == 6
    assert keys(play(sized, World())[1]) == ["0-1", "1-1", "0-1", "1-1", "1-2", "0-2"]


def test_the_cells_that_are_certain_are_those_that_are_launched_first() -> None:
    """What --list shows is what runs: warm-ups, then rounds."""
    manifest = asked(2, warmup=1)

    assert planned_cells(manifest, engine()) == tuple(play(manifest, APART)[1])[:7]
    assert len(planned_cells(manifest, engine())) == launches(manifest)


# ---- states after which nothing is launched again -----------------------------------------


@pytest.mark.parametrize("state", [RunState.REFUSED, RunState.NO_MEMORY])
def test_a_placement_that_does_not_exist_here_is_not_launched_again(state: RunState) -> None:
    """It would only cost the loading once more; both repeats are SKIPPED."""
    made, cells = play(asked(2, repeats=3), World(bad={("1", 1): state}))

    assert "1-2" not in keys(cells)
    assert "1-3" not in keys(cells)
    assert results(judge(made), Kind.EXACT, "1") == ["SKIPPED"] * 3
    assert judge(made).conclusion is Conclusion.PASS


def test_a_variant_that_timed_out_is_not_repeated() -> None:
    """A variant that timed out is not repeated; the rest of the matrix runs."""
    made, cells = play(asked(2), World(bad={("1", 1): RunState.TIMED_OUT}))

    assert keys(cells) == ["0-1", "1-1", "0w-1", "2-1", "2-2", "0-2"]
    assert results(judge(made), Kind.EXACT, "2") == ["PASS", "PASS"]
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_with_another_prompt_a_variant_that_timed_out_is_another_command() -> None:
    """It may hang on a long prompt only."""

    def launch(cell: Cell, count: int) -> Run:
        hangs = cell.variant == "1" and cell.probe == "b"
        return World(bad={("1", 1): RunState.TIMED_OUT} if hangs else {}).run(cell, count)

    _, cells = play(asked(1, probes=(probe("a"), probe("b"))), launch)

    assert [f"{c.variant}{c.probe}{c.repeat}" for c in cells if c.variant == "1"] == [
        *("1a1", "1b1", "1a2"),
    ]


@pytest.mark.parametrize("state", [RunState.CRASHED, RunState.NO_STREAM, RunState.TRUNCATED])
def test_any_other_bad_run_is_repeated(state: RunState) -> None:
    """A crash in one repeat and none in the other is worth knowing."""
    _, cells = play(asked(1), World(bad={("1", 1): state}))

    assert "1-2" in keys(cells)


# ---- after a hang -------------------------------------------------------------------------


def test_after_a_hang_the_baseline_is_run_once_more_before_going_on() -> None:
    """Kept under rechecks; it is no repeat."""
    made, cells = play(asked(2), World(bad={("1", 1): RunState.TIMED_OUT}))

    assert keys(cells)[:3] == ["0-1", "1-1", "0w-1"]
    assert [(run.variant, run.purpose) for run in made.rechecks] == [("0w", Purpose.AFTER_HANG)]
    assert cells[2].flags == cells[0].flags
    assert cells[2].env == cells[0].env


def test_after_each_hang_the_baseline_is_run_once_more() -> None:
    """Every one may have wedged the rig."""
    hangs = {("1", 1): RunState.TIMED_OUT, ("2", 1): RunState.TIMED_OUT}
    _, cells = play(asked(2), World(bad=hangs))

    assert keys(cells) == ["0-1", "1-1", "0w-1", "2-1", "0w-2", "0-2"]


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.OK])
def test_a_baseline_that_fails_after_a_hang_stops_the_matrix(state: RunState) -> None:
    """Rig wedged: going on would only produce failures, garbage among them."""
    hang = {("1", 1): RunState.TIMED_OUT, ("0w", 1): state}
    made, cells = play(asked(2), World(bad=hang))

    assert keys(cells) == ["0-1", "1-1", "0w-1"]
    assert wedged(made) == f"after a hang the baseline was {state} too: it was {state.lower()}"
    judgment = judge(made)
    assert judgment.conclusion is Conclusion.INCONCLUSIVE
    reasons = {v.reason for v in judgment.verdicts if v.kind is Kind.EXACT and v.variant == "2"}
    assert reasons == {f"not run: rig wedged ({wedged(made)})"}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (RunState.REFUSED, ExitCode.USAGE),
        (RunState.NO_MEMORY, ExitCode.INCONCLUSIVE),
        (RunState.CRASHED, ExitCode.INCONCLUSIVE),
    ],
)
@pytest.mark.parametrize("warmup", [0, 2])
def test_a_baseline_that_does_not_start_ends_the_matrix(
    state: RunState, code: ExitCode, warmup: int
) -> None:
    """After its first launch: every variant adds to its flags. What is refused is the user's."""
    record, cells = play(asked(2, warmup=warmup), World(bad={("0", n): state for n in (1, 2)}))

    assert [cell.variant for cell in cells] == ["0"]
    found = no_baseline(record)
    assert found is not None
    ending, why = found
    assert why.startswith(f"variant 0 is {state}, ")
    ended = replace(record, ending=ending, ending_reason=why)
    judgment = judge(ended)
    assert judgment.conclusion is Conclusion.INCONCLUSIVE
    assert why in judgment.headline
    assert exit_code(ended, judgment) is code


@pytest.mark.parametrize(
    "bad",
    [
        {("0", 2): RunState.REFUSED},
        {("0", 1): RunState.TRUNCATED},
        {("1", 1): RunState.REFUSED},
    ],
)
def test_a_baseline_that_has_started_once_goes_on(bad: dict[tuple[str, int], RunState]) -> None:
    """Nor does a variant that is refused say anything of the baseline."""
    record, cells = play(asked(2), World(bad=bad))

    assert no_baseline(record) is None
    assert {cell.of for cell in cells} == {"0", "1", "2"}


def test_a_rig_that_runs_is_not_wedged() -> None:
    """No hang, or a baseline that ran after it; a recheck that failed is no hang."""
    made, _ = play(asked(1), World(bad={("1", 1): RunState.TIMED_OUT}))
    assert wedged(made) is None
    recheck = altered(made.rechecks[0], purpose=Purpose.RECHECK, state=RunState.CRASHED)
    assert wedged(replace(made, rechecks=(recheck,))) is None
    assert wedged(Record(manifest=asked(1))) is None


def test_a_warm_up_that_hangs_does_not_end_the_baseline() -> None:
    """That the baseline runs is shown by the run after the hang."""
    made, cells = play(asked(1, warmup=1), launch_of({(Purpose.WARMUP, "0"): RunState.TIMED_OUT}))

    assert keys(cells) == ["0-1", "0w-1", "0-1", "1-1", "1-2", "0-2"]
    assert judge(made).conclusion is Conclusion.PASS


def test_an_extra_run_that_hangs_is_followed_by_the_baseline_too() -> None:
    """And the anchor is not gone on with."""
    made, cells = play(asked(1), replace(APART, bad={("1f", 1): RunState.TIMED_OUT}))

    assert extra(cells) == ["1f-1", "0w-1"]
    assert results(judge(made), Kind.ANCHOR, "1f") == ["INCONCLUSIVE"] * 2
