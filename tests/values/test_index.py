"""An index finds what looking through all runs would find, and is made once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from hypothesis import given

from hetero_test.judge.judge import judge
from hetero_test.values.record import Record
from hetero_test.values.run import Effect, Purpose, RunState
from tests.judge.factories import record
from tests.judge.strategies import RECORDS


@given(RECORDS)
def test_every_part_is_what_a_scan_would_find(made: Record) -> None:
    """By id, by command, by prompt; the same runs in the same order."""
    index, runs = made.index, made.runs
    for run in runs:
        command = run.key[:2]
        assert index.by_key[run.key].key == run.key
        assert index.by_id[run.variant] == tuple(r for r in runs if r.variant == run.variant)
        assert index.by_command[command] == tuple(r for r in runs if r.key[:2] == command)
        assert index.by_prompt[run.probe] == tuple(r for r in runs if r.probe == run.probe)
        assert index.behind(run.variant) == index.by_id[run.variant][0].of
    assert sum(map(len, index.by_command.values())) == len(runs)
    assert index.behind("no such id") == "no such id"
    for command, first in index.first_usable.items():
        assert first == next(run for run in runs if run.usable and run.key[:2] == command)
    assert set(index.first_usable) == {run.key[:2] for run in runs if run.usable}


@given(RECORDS)
def test_the_rounds_are_in_the_order_of_the_matrix(made: Record) -> None:
    """Extra runs, and runs of what is not in the matrix, are not among them."""
    names = [entry.variant.id for entry in made.manifest.variants]
    for prompt, runs in made.index.rounds.items():
        places = [(names.index(run.variant), run.repeat) for run in runs]
        assert places == sorted(places)
        assert all(run.purpose is Purpose.ROUND and run.probe == prompt for run in runs)


@given(RECORDS)
def test_what_is_not_run_again_follows_from_the_states(made: Record) -> None:
    """Commands after a state that is not repeated; variants that hung before the rounds."""
    base = made.manifest.variants[0].variant.id
    gone = {run.key[:2] for run in made.runs if run.state.not_repeated}
    hung = {run.variant for run in made.warmup if run.state is RunState.TIMED_OUT} - {base}

    assert made.index.given_up == gone
    assert made.index.hung_before == hung


@given(RECORDS)
def test_the_effect_of_a_variant_is_the_worst_of_its_usable_runs(made: Record) -> None:
    """The baseline has none: it places nothing."""
    base, *others = [entry.variant.id for entry in made.manifest.variants]

    assert made.index.effects[base] is None
    for name in others:
        seen = [run.effect for run in made.runs if run.variant == name and run.usable]
        assert made.index.effects[name] is Effect.worst(seen)


def calls(act: Callable[[], Any]) -> int:
    """How many Python functions are called meanwhile."""
    count = 0

    def note(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def test_judging_grows_with_the_runs_and_not_with_their_square() -> None:
    """Four times the variants are four times the work: nobody looks through all for each."""
    small, large = (
        record("0: A A", *(f"{n}: A A" if n % 2 else f"{n}: B@5011 B@5011" for n in range(1, k)))
        for k in (50, 200)
    )
    judge(small)  # what is loaded or compiled at the first call

    assert calls(lambda: judge(large)) < 5 * calls(lambda: judge(small))


def test_what_is_published_is_redacted_unless_it_was_asked_not_to_be() -> None:
    """A manifest that says nothing of it is that of a report for strangers."""
    assert record("0: A A", "1: A A").manifest.redact


def test_an_index_is_made_once_for_a_record() -> None:
    """And its parts when somebody asks for them first."""
    made = record("0: A A", "1: A A")

    assert made.index is made.index
    assert made.index.by_id is made.index.by_id
