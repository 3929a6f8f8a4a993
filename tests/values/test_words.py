"""What states, effects and results mean, and how they are shown: each member of each enum."""

from __future__ import annotations

from dataclasses import fields

import pytest

from hetero_test.values.run import MEANINGS, Effect, Meaning, RunState
from hetero_test.values.verdict import Conclusion, Result

STATES = {
    RunState.OK: {"harmless"},
    RunState.REFUSED: {"never_started", "not_repeated", "harmless"},
    RunState.NO_MEMORY: {"never_started", "not_repeated", "harmless"},
    RunState.CRASHED: set(),
    RunState.TIMED_OUT: {"not_repeated", "hung"},
    RunState.NO_STREAM: set(),
    RunState.TRUNCATED: {"wrong_output"},
    RunState.DEGENERATE: {"wrong_output"},
    RunState.WRONG_PROMPT: set(),
    RunState.NOT_GREEDY: set(),
}
"""What each state means, said twice on purpose: here, and in the table that the program uses."""


def test_every_state_has_its_meaning() -> None:
    """A new state cannot be added without saying what judge, schedule and JUnit make of it."""
    assert set(MEANINGS) == set(RunState) == set(STATES)


@pytest.mark.parametrize("state", RunState)
def test_a_state_means_what_is_said_here(state: RunState) -> None:
    """By each of its properties, and by no other."""
    names = [field.name for field in fields(Meaning)]

    assert {name for name in names if getattr(state, name)} == STATES[state]


@pytest.mark.parametrize("state", RunState)
def test_the_meanings_of_a_state_do_not_contradict_each_other(state: RunState) -> None:
    """What never started printed nothing, and is not tried again; OK is none of it."""
    assert not (state.never_started and state.wrong_output)
    assert state.not_repeated or not state.never_started
    assert not (state.harmless and state.wrong_output)
    assert state is not RunState.OK or STATES[state] == {"harmless"}


@pytest.mark.parametrize("effect", Effect)
def test_an_effect_either_moved_or_says_what_it_did_instead(effect: Effect) -> None:
    """A proven effect, one that is doubted, and one that leaves no trace may have moved."""
    may_have_moved = effect in {Effect.PROVEN, Effect.DOUBTED, Effect.UNOBSERVABLE}

    assert (effect.unmoved is None) is may_have_moved
    assert effect.words == effect.words.lower().replace("_", " ")


def test_the_worst_effect_is_that_which_proves_least() -> None:
    """In the order of the enum, unknown ones left out."""
    assert Effect.worst([Effect.PROVEN, None, Effect.NOT_SEEN]) is Effect.NOT_SEEN
    assert Effect.worst([Effect.PROVEN, Effect.UNOBSERVABLE]) is Effect.UNOBSERVABLE
    assert Effect.worst(Effect) is Effect.CONTRADICTED
    assert Effect.worst([None]) is None
    assert Effect.worst([]) is None


def test_signs_are_the_same_for_results_and_conclusions() -> None:
    """Every conclusion has one, of results those that are conclusions too."""
    assert {c.sign for c in Conclusion} == {Result(c.value).sign for c in Conclusion}
    assert all(conclusion.sign for conclusion in Conclusion)
    assert {r for r in Result if not r.sign} == {Result.SKIPPED, Result.NOT_CLAIMED}
