"""Runs with the pinned recipe: at one size from the start, or to look at a difference again."""

from __future__ import annotations

from dataclasses import replace

from hetero_test.judge.judge import judge
from hetero_test.session.schedule import next_cell
from hetero_test.values.record import Pinned
from hetero_test.values.run import Cell, Purpose, Run, RunState
from hetero_test.values.verdict import Conclusion, Kind
from tests.judge.factories import RECIPE, probe
from tests.judge.rig import CACHE, Play, World, asked, engine, extra, keys, launch_of, play
from tests.judge.rig import forced_size as size
from tests.runs import altered, beside

APART = World(auto={"1": (5011,), "2": (5011,)})
PINNED = replace(RECIPE, asked=True)


# ---- pinned -------------------------------------------------------------------------------


def test_pinned_runs_have_the_recipe_and_the_smallest_size_that_was_seen() -> None:
    """Each variant is sized once; then one size holds for all, behind the user's flags."""
    world = World(auto={"0": (4400,), "1": (5011,), "2": (4300,)})
    made, cells = play(asked(2, pinned=PINNED), world)

    assert keys(cells)[:3] == ["0-1", "1-1", "2-1"]
    assert {run.purpose for run in made.warmup} == {Purpose.WARMUP}
    rounds = [cell for cell in cells if cell.purpose is Purpose.ROUND]
    assert {size(cell) for cell in rounds} == {4300}
    assert rounds[1].flags == (
        *("--pack", "p", "--adapt-every", "0"),
        CACHE,
        "4300",
        "--place",
        "1",
    )
    assert rounds[1].env == (("STRATA_IQ_MT_MIN", "1"),)
    assert [run.order for run in (*made.warmup, *made.runs)] == list(range(9))
    assert extra(cells) == ["0-1", "1-1", "2-1"]


def test_a_pinned_engine_without_sizes_has_the_recipe_alone() -> None:
    """Whatever its logs tell of sizes: it has no flag for one."""
    made, cells = play(asked(1, pinned=PINNED), World(), sized=False)
    mine = {cell.flags for cell in cells if cell.of == "1" and cell.purpose is Purpose.ROUND}

    assert mine == {("--pack", "p", "--adapt-every", "0", "--place", "1")}
    assert judge(made).conclusion is Conclusion.PASS


def test_pinned_sizing_that_told_nothing_pins_no_size() -> None:
    """The recipe's flags hold all the same."""
    made, cells = play(asked(1, pinned=PINNED), World(unknown=frozenset("01")))

    assert {size(cell) for cell in cells} == {None}
    assert cells[-1].flags[:4] == ("--pack", "p", "--adapt-every", "0")
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_a_sizing_run_that_is_not_usable_sizes_nothing() -> None:
    """A smaller size of a run that was cut is no size that was seen."""
    bad = {(Purpose.WARMUP, "1"): RunState.TRUNCATED}
    world = World(auto={"1": (3000,)})
    _, cells = play(asked(1, pinned=PINNED), launch_of(bad, world))

    assert size(cells[-1]) == 4400


def test_a_variant_that_hung_when_it_was_sized_is_not_launched_again() -> None:
    """Such a variant is not repeated."""
    bad = {(Purpose.WARMUP, "1"): RunState.TIMED_OUT}
    made, cells = play(asked(2, pinned=PINNED), launch_of(bad))

    assert keys(cells) == ["0-1", "1-1", "0w-1", "2-1", "0-1", "2-1", "2-2", "0-2"]
    reasons = [v.reason for v in judge(made).verdicts if v.kind is Kind.EXACT and v.variant == "1"]
    assert reasons == ["not run again after it timed out before the rounds"] * 2


def test_a_variant_that_did_not_fit_when_it_was_sized_is_tried_at_the_smallest_size() -> None:
    """What does not fit by itself may fit at a size that another one opened."""
    bad = {(Purpose.WARMUP, "1"): RunState.NO_MEMORY}
    made, _ = play(asked(1, pinned=PINNED), launch_of(bad))

    assert judge(made).conclusion is Conclusion.PASS


# ---- rechecks -----------------------------------------------------------------------------


def test_with_one_repeat_a_difference_is_run_once_more_on_both_sides() -> None:
    """The same commands again: confirmed it is a FAIL."""
    made, cells = play(asked(1, repeats=1), World(wrong={"1": 9}))

    assert keys(cells) == ["0-1", "1-1", "0c-1", "1c-1"]
    assert [cell.flags for cell in cells[2:]] == [cell.flags for cell in cells[:2]]
    assert [cell.env for cell in cells[2:]] == [cell.env for cell in cells[:2]]
    assert {run.purpose for run in made.rechecks} == {Purpose.RECHECK}
    assert judge(made).conclusion is Conclusion.FAIL


def test_a_reference_is_run_once_more_for_all_that_differ_from_it() -> None:
    """Not once for each."""
    _, cells = play(asked(2, repeats=1), World(wrong={"1": 9, "2": 7}))

    assert keys(cells)[3:] == ["0c-1", "1c-1", "2c-1"]


def test_a_confirmation_that_hangs_is_not_tried_again() -> None:
    """It stays open."""
    world = World(wrong={"1": 9}, bad={("1c", 1): RunState.TIMED_OUT})
    made, cells = play(asked(1, repeats=1), world)

    assert keys(cells)[2:] == ["0c-1", "1c-1", "0w-1"]
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_an_anchors_difference_is_confirmed_with_its_forced_size() -> None:
    """As it was: its own flags, not its variant's."""
    world = replace(APART, wrong={"1": 9})
    made, cells = play(asked(1, repeats=1), world)

    assert keys(cells)[2:] == ["1f-1", "0c-1", "1fc-1"]
    assert size(cells[-1]) == 4400
    assert judge(made).conclusion is Conclusion.FAIL


def swapping(world: World, **swaps: int) -> Play:
    """A rig on which swaps move, unless the recipe is given."""

    def launch(cell: Cell, count: int) -> Run:
        made = world.run(cell, count)
        if "--adapt-every" in cell.flags:
            return made
        return beside(made, swaps=swaps.get(f"v{cell.of}", 90))

    return launch


def test_a_difference_with_another_cause_is_run_again_with_the_recipe() -> None:
    """Both sides, all repeats, the cache fixed at the smallest size of the first round."""
    world = World(auto={"2": (4000,)}, wrong={"1": 9})
    made, cells = play(asked(2), swapping(world, v1=100))

    assert extra(cells) == ["2f-1", "2f-2", "0p-1", "0p-2", "1p-1", "1p-2"]
    again = cells[-1]
    assert again.flags == (*("--pack", "p", "--adapt-every", "0"), CACHE, "4000", "--place", "1")
    assert again.env == (("STRATA_IQ_MT_MIN", "1"),)
    assert judge(made).conclusion is Conclusion.FAIL


def test_only_the_first_round_of_the_variants_tells_the_pinned_size() -> None:
    """Later rounds, and extra runs with a forced size, are not asked."""
    world = World(auto={"0": (4400,), "1": (4400,), "2": (5011, 3000)}, wrong={"1": 9})

    def launch(cell: Cell, count: int) -> Run:
        clipped = {"2": 4100} if size(cell) is not None else {}
        return swapping(replace(world, most=clipped), v1=100)(cell, count)

    _, cells = play(asked(2), launch)

    assert {size(cell) for cell in cells if cell.purpose is Purpose.SHARED} == {4100}
    assert {size(cell) for cell in cells if cell.purpose is Purpose.RECHECK} == {4400}


def test_a_recheck_has_the_recipe_although_no_size_can_be_forced() -> None:
    """Flags and environment are pinned all the same."""

    def launch(cell: Cell, count: int) -> Run:
        made = swapping(World(wrong={"1": 9}, budget=1.0), v1=100)(cell, count)
        return beside(made, budget=None)

    _, cells = play(asked(1), launch)

    assert cells[-1].flags == ("--pack", "p", "--adapt-every", "0", "--place", "1")


def test_a_difference_that_the_recipe_removes_is_inconclusive() -> None:
    """It is run again once, not for ever."""

    def launch(cell: Cell, count: int) -> Run:
        pinned = "--adapt-every" in cell.flags
        return swapping(World() if pinned else World(wrong={"1": 9}), v1=100)(cell, count)

    made, cells = play(asked(1), launch)

    assert extra(cells) == ["0p-1", "0p-2", "1p-1", "1p-2"]
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_without_a_recipe_nothing_is_run_again() -> None:
    """It is open already."""
    _, cells = play(asked(1, pinned=Pinned()), swapping(World(wrong={"1": 9}), v1=100))

    assert extra(cells) == []


def test_repeats_that_differ_are_run_again_on_their_own() -> None:
    """A variant's own repeats have one side only."""
    count = iter(range(100))

    def launch(cell: Cell, launch: int) -> Run:
        made = World(noise=frozenset("1")).run(cell, launch)
        return beside(made, swaps=next(count))

    _, cells = play(asked(1, pinned=RECIPE), launch)

    assert extra(cells)[:2] == ["1p-1", "1p-2"]


def test_a_home_baseline_is_pinned_on_its_device() -> None:
    """The mask stays when the recipe is added."""
    world = World(auto={"0": (4400,), "2": (3000,)}, kind={"2": "RTX 3060"}, wrong={"2": 9})
    _, cells = play(asked(2), swapping(world, v2=100))

    home = next(cell for cell in cells if cell.variant == "0-home-2p")
    assert dict(home.env) == {"CUDA_VISIBLE_DEVICES": "1", "STRATA_IQ_MT_MIN": "1"}
    assert size(home) == 3000


def test_a_pinned_recheck_that_hangs_leaves_the_other_prompt_alone() -> None:
    """Given up is one command, with its prompt."""

    def launch(cell: Cell, count: int) -> Run:
        made = swapping(World(wrong={"1": 9}), v1=100)(cell, count)
        hangs = cell.variant == "0p" and cell.probe == "a"
        return altered(made, state=RunState.TIMED_OUT, stream=None) if hangs else made

    _, cells = play(asked(1, probes=(probe("a"), probe("b"))), launch)

    mine = [f"{c.variant}{c.probe}{c.repeat}" for c in cells if c.purpose is Purpose.RECHECK]
    assert mine == ["0pa1", "1pa1", "1pa2", "0pb1", "0pb2", "1pb1", "1pb2"]


def test_nothing_is_left_to_run_in_a_complete_matrix() -> None:
    """The end is an end, also for another process that looks at the record."""
    made, _ = play(asked(2), APART)

    assert next_cell(made, engine()) is None
