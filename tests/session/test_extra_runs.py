"""Runs that the logs ask for: anchors, pairs at one size, baselines at home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hetero_test.judge.judge import judge
from hetero_test.values.run import Cell, Purpose, Run, RunState
from hetero_test.values.verdict import Conclusion, Kind
from tests.judge.factories import probe, results
from tests.judge.rig import CACHE, Play, World, asked, extra, keys, launch_of, play
from tests.judge.rig import forced_size as size
from tests.runs import altered, beside

APART = World(auto={"1": (5011,), "2": (5011,)})


def sizes(cells: Sequence[Cell]) -> dict[str, int | None]:
    """The cache sizes that extra runs force."""
    return {cell.variant: size(cell) for cell in cells if cell.purpose is not Purpose.ROUND}


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


def test_an_engine_without_sizes_has_its_baseline_at_home_as_it_is() -> None:
    """Nothing is to be forced: the residency there is the engine's own."""
    world = World(kind={"2": "RTX 3060"})
    made, cells = play(asked(2), world, sized=False)
    homes = [cell for cell in cells if cell.purpose is Purpose.HOME]

    assert keys(homes) == ["0-home-2-1", "0-home-2-2"]
    assert homes[0].flags == ("--pack", "p")
    assert homes[0].env == (("CUDA_VISIBLE_DEVICES", "1"),)
    assert judge(made).conclusion is Conclusion.PASS


def test_an_engine_without_sizes_has_neither_anchors_nor_pairs() -> None:
    """Another residency stays open, also beside runs of an anchor that strayed."""
    made, cells = play(asked(1), World(auto={"1": (5011,)}), sized=False)
    strays = tuple(
        altered(run, variant="1f", purpose=Purpose.ANCHOR) for run in made.runs if run.of == "1"
    )
    begun = replace(made, runs=(*made.runs, *strays))

    assert extra(cells) == []
    assert results(judge(made), Kind.EXACT, "1") == ["INCONCLUSIVE"] * 2
    assert extra(play(asked(1), World(), begun=begun, sized=False)[1]) == []


def test_a_matrix_without_a_mask_has_no_home_baselines() -> None:
    """Kinds are then not claimed."""
    made, cells = play(asked(2, on_device=()), MOVED)

    assert extra(cells) == []
    assert results(judge(made), Kind.EXACT, "2") == ["NOT_CLAIMED"] * 2
