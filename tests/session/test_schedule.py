"""What is run next: rounds, then what their logs ask for; resumed, the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hetero_test.judge.judge import judge
from hetero_test.session.schedule import launches, next_cell, planned_cells, wedged
from hetero_test.values.record import Pinned, Record
from hetero_test.values.run import Cell, Purpose, Run, RunState
from hetero_test.values.verdict import Conclusion, Kind
from tests.judge.factories import RECIPE, probe, results
from tests.judge.rig import CACHE, Play, World, asked, engine, keys, play
from tests.judge.rig import forced_size as size
from tests.runs import altered, beside

EVEN = World()
APART = World(auto={"1": (5011,), "2": (5011,)})
PINNED = replace(RECIPE, asked=True)


def extra(cells: Sequence[Cell]) -> list[str]:
    """What was launched beside the rounds."""
    return keys([cell for cell in cells if cell.purpose is not Purpose.ROUND])


def sizes(cells: Sequence[Cell]) -> dict[str, int | None]:
    """The cache sizes that extra runs force."""
    return {cell.variant: size(cell) for cell in cells if cell.purpose is not Purpose.ROUND}


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


def launch_of(bad: dict[tuple[Purpose, str], RunState], world: World = EVEN) -> Play:
    """A rig in which runs of one purpose and id come to some state."""

    def launch(cell: Cell, count: int) -> Run:
        state = bad.get((cell.purpose, cell.variant))
        there = {} if state is None else {(cell.variant, cell.repeat): state}
        return replace(world, bad=there).run(cell, count)

    return launch


def test_an_extra_run_that_hangs_is_followed_by_the_baseline_too() -> None:
    """And the anchor is not gone on with."""
    made, cells = play(asked(1), replace(APART, bad={("1f", 1): RunState.TIMED_OUT}))

    assert extra(cells) == ["1f-1", "0w-1"]
    assert results(judge(made), Kind.ANCHOR, "1f") == ["INCONCLUSIVE"] * 2


# ---- anchors ------------------------------------------------------------------------------


def test_every_group_without_the_baseline_gets_an_anchor() -> None:
    """Not only variant 1's: by its first usable variant, all repeats."""
    world = World(auto={"1": (5011,), "2": (4800,), "3": (4800,)})
    made, cells = play(asked(3), world)

    assert extra(cells) == ["1f-1", "1f-2", "2f-1", "2f-2"]
    assert judge(made).conclusion is Conclusion.PASS


def test_at_most_three_groups_are_anchored() -> None:
    """What is beyond stays open."""
    world = World(auto={str(n): (5000 + n,) for n in range(1, 6)})
    made, cells = play(asked(5), world)

    assert extra(cells) == [f"{n}f-{r}" for n in "123" for r in "12"]
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_a_group_whose_first_variant_crashed_is_anchored_by_the_next() -> None:
    """The first usable variant in matrix order."""
    world = replace(APART, bad={("1", 1): RunState.CRASHED, ("1", 2): RunState.CRASHED})

    assert extra(play(asked(2), world)[1]) == ["2f-1", "2f-2"]


def test_no_anchor_without_a_usable_baseline() -> None:
    """There is no residency to force."""
    dead = {("0", 1): RunState.CRASHED, ("0", 2): RunState.CRASHED}

    assert extra(play(asked(2), replace(APART, bad=dead))[1]) == []
    assert extra(play(asked(2), replace(APART, unknown=frozenset("0")))[1]) == []


def test_extra_runs_are_ordered_as_they_are_made() -> None:
    """Anchors and re-checks alike go on behind what was planned, one by one."""
    made, cells = play(asked(1, repeats=1), replace(APART, wrong={"1": 9}))

    assert extra(cells) == ["1f-1", "0c-1", "1fc-1"]
    assert [run.order for run in (*made.runs, *made.rechecks)] == [0, 1, 2, 3, 4]


def test_on_a_canonical_pack_the_final_count_is_forced() -> None:
    """The final count stands in place of the user's value; a flag is not passed twice."""
    _, cells = play(asked(1, model_flags=("--pack", "p")), APART)

    assert sizes(cells) == {"1f": 4400}
    assert cells[-1].flags == ("--pack", "p", CACHE, "4400", "--place", "1")


def test_a_size_that_the_user_gave_is_replaced() -> None:
    """The user's own size holds for the rounds; an anchor has the baseline's final one."""
    given = ("--pack", "p", CACHE, "6000")
    world = World(most={"0": 5000, "1": 5500})
    _, cells = play(asked(1, model_flags=given), world)

    assert {size(cell) for cell in cells if cell.purpose is Purpose.ROUND} == {6000}
    assert sizes(cells) == {"1f": 5000}


def test_on_a_native_pack_the_estimate_is_forced() -> None:
    """N is a budget of largest blobs: 10581 opens 12288, and forcing 12288 would open more."""
    world = World(auto={"0": (10581,), "1": (11000,)}, budget=12288 / 10581)
    made, cells = play(asked(1), world)

    assert sizes(cells) == {"1f": 10581}
    anchor = next(run for run in made.runs if run.variant == "1f")
    assert anchor.residency.fact("slots") == 12288
    assert judge(made).conclusion is Conclusion.PASS


def test_the_anchor_is_compared_although_two_sizes_open_the_same() -> None:
    """Groups are told by final sizes, so the anchor of one group may be of any variant."""
    made, _ = play(asked(2), World(auto={"0": (4400,), "1": (5011, 5020), "2": (5011,)}))

    assert results(judge(made), Kind.ANCHOR, "1f") == ["PASS", "PASS"]
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_a_baseline_that_moved_is_forced_at_its_first_usable_size() -> None:
    """A baseline in several residencies is tied by its first usable run."""
    world = World(auto={"0": (4100, 4200), "1": (5011,)})

    assert sizes(play(asked(1), world)[1]) == {"1f": 4100}


def test_prompts_have_anchors_of_their_own() -> None:
    """Each prompt's groups are tied to its own baseline."""
    _, cells = play(asked(1, probes=(probe("a"), probe("b"))), APART)

    assert [(c.variant, c.probe) for c in cells if c.purpose is Purpose.ANCHOR] == [
        *[("1f", "a")] * 2,
        *[("1f", "b")] * 2,
    ]


def test_an_engine_that_cannot_force_a_size_has_no_anchors() -> None:
    """What cannot be forced stays open, with no launch in vain."""
    world = World(auto={"1": (5011,)}, budget=1.0)

    def launch(cell: Cell, count: int) -> Run:
        made = world.run(cell, count)
        return beside(made, budget=None)

    made, cells = play(asked(1), launch)

    assert extra(cells) == []
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


# ---- pairs --------------------------------------------------------------------------------

CLIPPED = World(auto={"0": (4400,), "1": (5011,)}, most={"1": 5011})


def clipped_at(**most: int) -> Play:
    """A rig in which a forced size is clipped, other than an automatic one."""

    def launch(cell: Cell, count: int) -> Run:
        forced = size(cell) is not None
        return replace(CLIPPED, most={n[1:]: m for n, m in most.items()} if forced else {}).run(
            cell, count
        )

    return launch


def test_a_clipped_anchor_stops_and_a_pair_shares_the_smaller_size() -> None:
    """The baseline and that variant, all repeats, with one size that both can hold."""
    made, cells = play(asked(1), clipped_at(v1=4100))

    assert extra(cells) == ["1f-1", "0s-1", "0s-2", "1s-1", "1s-2"]
    assert sizes(cells) == {"1f": 4400, "0s": 4100, "1s": 4100}
    assert judge(made).conclusion is Conclusion.PASS


def test_a_shared_size_below_half_of_the_baselines_is_not_tried() -> None:
    """It would be another matter than what the user runs; INCONCLUSIVE, with the numbers."""
    made, cells = play(asked(1), clipped_at(v1=2199))

    assert extra(cells) == ["1f-1"]
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE
    assert "4400 slots" in judge(made).headline
    assert "2199 slots" in judge(made).headline
    assert extra(play(asked(1), clipped_at(v1=2200))[1])[1:] == ["0s-1", "0s-2", "1s-1", "1s-2"]


def test_a_pair_that_is_clipped_again_is_inconclusive() -> None:
    """Only if that fails too; nothing smaller is tried."""

    def launch(cell: Cell, count: int) -> Run:
        most = {4400: 4100, 4100: 3900}.get(size(cell) or 0, 10**6)
        return replace(CLIPPED, most={"1": most}).run(cell, count)

    made, cells = play(asked(1), launch)

    assert extra(cells) == ["1f-1", "0s-1", "0s-2", "1s-1", "1s-2"]
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_a_forced_size_that_is_refused_leads_to_a_pair_at_what_the_variant_opened_itself() -> None:
    """A canonical pack names no smaller size; the variant's own automatic one fits."""
    world = World(auto={"0": (4400,), "1": (4100,)}, most={"1": 4100}, refuses_size=True)
    made, cells = play(asked(1), world)

    assert extra(cells) == ["1f-1", "0s-1", "0s-2", "1s-1", "1s-2"]
    assert sizes(cells) == {"1f": 4400, "0s": 4100, "1s": 4100}
    assert judge(made).conclusion is Conclusion.PASS


def test_a_refused_size_is_not_tried_again_as_a_pair() -> None:
    """Where the shared size would be the one that was refused there is no pair."""
    made, cells = play(asked(1), launch_of({(Purpose.ANCHOR, "1f"): RunState.NO_MEMORY}, CLIPPED))

    assert extra(cells) == ["1f-1"]
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_two_clipped_anchors_of_one_size_share_the_baselines_side() -> None:
    """The baseline is run once for each shared size, not once for each variant."""
    world = replace(CLIPPED, auto={"0": (4400,), "1": (5011,), "2": (4800,)})

    def launch(cell: Cell, count: int) -> Run:
        most = {"1": 4100, "2": 4100} if size(cell) is not None else {}
        return replace(world, most=most).run(cell, count)

    made, cells = play(asked(2), launch)

    assert extra(cells) == ["1f-1", "2f-1", "0s-1", "0s-2", "1s-1", "1s-2", "2s-1", "2s-2"]
    assert judge(made).conclusion is Conclusion.PASS


def test_two_clipped_anchors_of_two_sizes_have_each_a_baseline() -> None:
    """Each variant of a pair is compared with the baseline of its own size."""
    world = replace(CLIPPED, auto={"0": (4400,), "1": (5011,), "2": (4800,)})

    def launch(cell: Cell, count: int) -> Run:
        most = {"1": 4100, "2": 4000} if size(cell) is not None else {}
        return replace(world, most=most).run(cell, count)

    made, cells = play(asked(2), launch)

    assert sizes(cells) == {
        "1f": 4400,
        "2f": 4400,
        "0s": 4100,
        "1s": 4100,
        "0s-2": 4000,
        "2s": 4000,
    }
    assert judge(made).conclusion is Conclusion.PASS


# ---- home baselines -----------------------------------------------------------------------

MOVED = World(auto={"0": (4400,), "2": (3000,)}, kind={"2": "RTX 3060"})


def test_a_moved_main_model_gets_the_baseline_at_its_new_home() -> None:
    """Variant 0 on that device alone, with the variant's final residency forced."""
    made, cells = play(asked(2), MOVED)

    homes = [cell for cell in cells if cell.purpose is Purpose.HOME]
    assert keys(homes) == ["0-home-2-1", "0-home-2-2"]
    assert {cell.of for cell in homes} == {"0"}
    assert homes[0].flags == ("--pack", "p", CACHE, "3000")
    assert homes[0].env == (("CUDA_VISIBLE_DEVICES", "1"),)
    assert judge(made).conclusion is Conclusion.PASS


def test_a_mask_that_is_set_already_is_seen_through() -> None:
    """Device 1 behind a mask is the mask's second entry."""
    masked = (("CUDA_VISIBLE_DEVICES", "3,5"),)
    _, cells = play(asked(2, env=masked), MOVED)

    assert dict(cells[-1].env) == {"CUDA_VISIBLE_DEVICES": "5"}
    assert dict(cells[0].env) == {"CUDA_VISIBLE_DEVICES": "3,5"}


def test_an_engine_that_cannot_force_a_size_has_no_home_baselines() -> None:
    """At another size the baseline would be no reference."""

    def launch(cell: Cell, count: int) -> Run:
        made = replace(MOVED, budget=1.0).run(cell, count)
        return beside(made, budget=None)

    assert extra(play(asked(2), launch)[1]) == []


def test_a_matrix_without_a_mask_has_no_home_baselines() -> None:
    """Kinds are then not claimed."""
    made, cells = play(asked(2, on_device=()), MOVED)

    assert extra(cells) == []
    assert results(judge(made), Kind.EXACT, "2") == ["NOT_CLAIMED"] * 2


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
    world = replace(MOVED, wrong={"2": 9})
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
