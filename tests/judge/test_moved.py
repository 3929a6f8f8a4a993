"""Moved means elsewhere than the baseline, by both logs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hetero_test.judge.judge import judge
from hetero_test.values.reading import Sighting
from hetero_test.values.run import NO_TRACE, Effect, EffectPart, RunState
from hetero_test.values.verdict import Conclusion, Moved
from tests.judge.factories import changed, record

if TYPE_CHECKING:
    from hetero_test.values.record import Record


def moved(name: str, made: Record) -> Moved | None:
    """Whether a variant moved."""
    return next(s.moved for s in judge(made).summaries if s.id == name)


def claiming(made: Record, name: str, effect: tuple[tuple[str, str], ...]) -> Record:
    """The record with what a variant claims to place."""
    variants = tuple(
        replace(entry, variant=replace(entry.variant, effect=effect))
        if entry.variant.id == name
        else entry
        for entry in made.manifest.variants
    )
    return replace(made, manifest=replace(made.manifest, variants=variants))


def test_the_baselines_own_placement_proves_nothing() -> None:
    """Being where the flags say is not moving: equal streams of one placement are INCONCLUSIVE."""
    made = changed(record("0: A A", "1: A A"), "1", places={"main": "0"}, effect=Effect.PROVEN)
    made = claiming(made, "1", (("main", "0"),))
    judgment = judge(made)

    assert judgment.conclusion is Conclusion.INCONCLUSIVE
    assert "nothing moved" in judgment.headline
    assert judgment.summaries[1].moved is Moved.SAME
    assert "same placement as the baseline" in judgment.summaries[1].text


def test_one_variant_that_moved_is_enough() -> None:
    """A copy of the baseline beside a placement that moved counts as nothing, and harms nothing."""
    made = changed(record("0: A A", "1: A A", "2: A A"), "1", places={"main": "0"})
    made = claiming(made, "1", (("main", "0"),))

    assert judge(made).conclusion is Conclusion.PASS
    assert moved("1", made) is Moved.SAME
    assert moved("2", made) is Moved.YES


def test_a_part_that_leaves_no_trace_is_what_was_tested() -> None:
    """Where a variant has a part that no line ever tells, equal places do not make it a copy."""
    made = changed(record("0: A A", "1: A A"), "1", places={"main": "0"})
    made = claiming(made, "1", (("chains", NO_TRACE),))

    assert moved("1", made) is Moved.UNTOLD
    assert judge(made).conclusion is Conclusion.PASS


def test_every_run_of_a_variant_must_have_moved() -> None:
    """One repeat that stayed where the baseline is takes the proof away."""
    made = changed(record("0: A A", "1: A A"), "1", 2, places={"main": "0"})
    made = claiming(made, "1", (("main", "1"),))

    assert moved("1", made) is Moved.SAME
    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_a_part_that_only_one_log_tells_is_no_move() -> None:
    """What the baseline's log never tells may have been there all along."""
    made = changed(record("0: A A", "1: A A"), "1", places={"draft": "1"})
    made = claiming(made, "1", (("draft", "1"),))

    assert moved("1", made) is Moved.SAME


@pytest.mark.parametrize("effect", [Effect.CONTRADICTED, Effect.NOT_SEEN])
def test_elsewhere_than_asked_is_no_evidence(effect: Effect) -> None:
    """A placement must be as asked and elsewhere than the baseline."""
    made = changed(record("0: A A", "1: A A"), "1", effect=effect)

    assert judge(made).conclusion is Conclusion.INCONCLUSIVE


def test_what_the_engine_never_tells_in_this_mode_is_untold() -> None:
    """A claimed part without a place in either log may have moved."""
    part = EffectPart(part="draft", expected="1", seen=None, effect=Effect.UNOBSERVABLE)
    made = changed(
        record("0: A A", "1: A A"),
        "1",
        places={"main": "0"},
        effect=Effect.UNOBSERVABLE,
        effect_parts=(part,),
    )
    made = claiming(made, "1", (("draft", "1"),))

    assert moved("1", made) is Moved.UNTOLD


def test_of_an_engine_without_places_the_sightings_tell() -> None:
    """Where lines show a part counts; a part that this mode never tells does not."""

    def seen(value: str | None) -> dict[str, object]:
        sighting = Sighting(part="main", value=value, line="main is there")
        return {"places": {}, "sightings": (sighting,)}

    made = claiming(record("0: A A", "1: A A"), "1", (("main", "1"),))
    here = changed(made, "0", **seen("0"))
    assert moved("1", changed(here, "1", **seen("1"))) is Moved.YES
    assert moved("1", changed(here, "1", **seen("0"))) is Moved.SAME
    assert moved("1", changed(here, "1", **seen(None))) is None


def test_a_variant_that_claims_nothing_is_untold() -> None:
    """Without an effect in the matrix no line says what was to move."""
    made = changed(record("0: A A", "1: A A"), "1", places={"main": "0"})
    assert moved("1", claiming(made, "1", ())) is Moved.UNTOLD


def test_one_run_that_leaves_a_part_untold_is_enough() -> None:
    """A part that only some runs tell may have moved in the others."""
    part = EffectPart(part="draft", expected="1", seen=None, effect=Effect.UNOBSERVABLE)
    made = changed(record("0: A A", "1: A A"), "1", places={"main": "0"})
    made = claiming(changed(made, "1", 2, effect_parts=(part,)), "1", (("draft", "1"),))
    assert moved("1", made) is Moved.UNTOLD


def test_what_is_not_known_has_not_moved() -> None:
    """Without a usable run on either side, or without places, nothing is said."""
    made = claiming(record("0: A A", "1: A A"), "1", (("main", "1"),))
    crashed = RunState.CRASHED
    assert moved("0", made) is None
    assert moved("1", changed(made, "1", state=crashed)) is None
    assert moved("1", changed(made, "0", state=crashed)) is None
    assert moved("1", changed(made, "1", places={})) is None
    assert moved("1", changed(made, "1", 2, places={})) is None


def test_only_usable_runs_tell_where_a_placement_was() -> None:
    """A crashed repeat that stayed at home takes nothing away from the others."""
    made = claiming(record("0: A A", "1: A A"), "1", (("main", "1"),))
    made = changed(made, "1", 2, state=RunState.CRASHED, places={"main": "0"})
    assert moved("1", made) is Moved.YES


def test_one_part_without_a_trace_among_several_is_enough() -> None:
    """A part that was proven to be at home beside one that no line tells: what was tested."""
    made = changed(record("0: A A", "1: A A"), "1", places={"main": "0"})
    assert moved("1", claiming(made, "1", (("main", "0"), ("chains", NO_TRACE)))) is Moved.UNTOLD


@pytest.mark.parametrize("effect", [Effect.PROVEN, Effect.CONTRADICTED, Effect.NOT_SEEN])
def test_a_part_that_was_told_is_not_untold(effect: Effect) -> None:
    """Only what the engine never tells in this mode may have moved unseen."""
    part = EffectPart(part="draft", expected="1", seen="1", effect=effect)
    made = changed(record("0: A A", "1: A A"), "1", places={"main": "0"}, effect_parts=(part,))
    assert moved("1", claiming(made, "1", (("draft", "1"),))) is Moved.SAME


def test_a_part_with_a_place_is_not_untold() -> None:
    """Where a part stays with the rest, its place is told although no line announces it."""
    part = EffectPart(part="main", expected="0", seen=None, effect=Effect.UNOBSERVABLE)
    made = changed(record("0: A A", "1: A A"), "1", places={"main": "0"}, effect_parts=(part,))
    assert moved("1", claiming(made, "1", (("main", "0"),))) is Moved.SAME
