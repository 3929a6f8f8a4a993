"""A matrix on any rig ends, launches nothing twice, and goes on where it was cut."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from hetero_test.session.schedule import launches, next_cell
from hetero_test.store.run_dir import add, list_of
from hetero_test.store.run_json import to_text
from hetero_test.values.record import Manifest, Record
from hetero_test.values.run import Purpose, Run, RunState
from tests.judge.rig import World, asked, engine, play
from tests.judge.strategies import PLANS, SOUND, WORLDS
from tests.runs import altered

RUN = TypeAdapter(Run)
RIGS = st.one_of(WORLDS, SOUND)
slow = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def stored(run: Run) -> Run:
    """A run as it comes back from the disk."""
    data = json.loads(to_text(run, schema="test"))
    del data["schema"]
    return RUN.validate_python(data)


def launched(made: Record) -> list[Run]:
    return [*made.warmup, *made.runs, *made.rechecks]


@slow
@given(plan=PLANS, world=RIGS)
def test_every_matrix_ends_and_launches_no_cell_twice(plan: Manifest, world: World) -> None:
    """Whatever the logs ask for, it comes to an end; each run has a place of its own."""
    _, cells = play(plan, world)
    keys = [(list_of(cell.purpose), cell.key) for cell in cells]

    assert len(set(keys)) == len(keys)


@slow
@given(plan=PLANS, world=RIGS)
def test_orders_are_unique_and_extra_runs_come_behind_what_was_planned(
    plan: Manifest, world: World
) -> None:
    """The order of a cell is its place in the plan; what logs ask for is behind all of it."""
    _, cells = play(plan, world)
    orders = [cell.order for cell in cells]
    first = {Purpose.WARMUP, Purpose.ROUND}
    planned = [cell.order for cell in cells if cell.purpose in first]
    extra = [cell.order for cell in cells if cell.purpose not in first]

    assert len(set(orders)) == len(orders)
    assert planned == sorted(planned)
    assert extra == sorted(extra)
    assert all(order < launches(plan) for order in planned)
    assert all(order >= launches(plan) for order in extra)


@slow
@given(plan=PLANS, world=RIGS, data=st.data())
def test_a_matrix_that_was_cut_goes_on_with_the_same_cells(
    plan: Manifest, world: World, data: st.DataObject
) -> None:
    """From any point, with what was stored: the same cells in the same order."""
    made, cells = play(plan, world)
    done = data.draw(st.integers(0, len(cells)))
    runs = {(list_of(run.purpose), run.key): run for run in launched(made)}
    begun = Record(manifest=plan)
    for cell in cells[:done]:
        begun = add(begun, stored(runs[list_of(cell.purpose), cell.key]))
    again, rest = play(plan, world, begun=begun)

    assert rest == cells[done:]
    assert again == made


@slow
@given(plan=PLANS, world=RIGS)
def test_nothing_is_launched_that_hung_or_does_not_exist_here(plan: Manifest, world: World) -> None:
    """After TIMED_OUT, REFUSED or NO_MEMORY the same command is not launched again."""
    made, cells = play(plan, world)
    over = {RunState.TIMED_OUT, RunState.REFUSED, RunState.NO_MEMORY}
    ended: dict[tuple[Purpose, str, str], int] = {
        (run.purpose, run.variant, run.probe): run.order
        for run in launched(made)
        if run.state in over and run.purpose not in {Purpose.WARMUP, Purpose.AFTER_HANG}
    }

    for cell in cells:
        last = ended.get((cell.purpose, cell.variant, cell.probe))
        assert last is None or cell.order <= last


@slow
@given(plan=PLANS, world=RIGS)
def test_after_every_hang_the_baseline_is_next(plan: Manifest, world: World) -> None:
    """And if that is not usable nothing is."""
    made = Record(manifest=plan)
    before: Run | None = None
    while (cell := next_cell(made, engine())) is not None:
        if before is not None:
            assert before.usable or before.purpose is not Purpose.AFTER_HANG
            hung = before.state is RunState.TIMED_OUT
            assert (cell.purpose is Purpose.AFTER_HANG) == hung
        before = world.run(cell, len(launched(made)))
        made = add(made, before)


def test_a_run_comes_back_from_the_disk_as_it_was() -> None:
    """What follow-ups and verdicts are made of is all stored."""
    made, _ = play(asked(1), World(auto={"1": (5011,)}))

    assert [stored(run) for run in made.runs] == list(made.runs)
    context: Any = {"a": 1, "b": 1.5, "c": True, "d": None, "e": "1"}
    back = stored(altered(made.runs[0], context=context)).reading.context
    assert back == context
    assert [type(value) for value in back.values()] == [int, float, bool, type(None), str]
