"""Whether a variant's placement is another one than the baseline's own, by their logs.

Being where the flags say is not moving: a variant that names the baseline's own placement in
other words is compared for what it is worth, and proves nothing of a placement. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.judge.groups import baseline_id
from hetero_test.values.run import NO_TRACE, Effect
from hetero_test.values.verdict import Moved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hetero_test.values.record import Record
    from hetero_test.values.run import Run
    from hetero_test.values.variant import Variant


def moved_of(record: Record) -> Mapping[str, Moved | None]:
    """Each variant that ran, beside whether it moved; None where that is not known."""
    base = baseline_id(record.manifest)
    own = _usable(record, base)
    found: dict[str, Moved | None] = {}
    for entry in record.manifest.variants:
        name = entry.variant.id
        runs = _usable(record, name)
        found[name] = None if name == base or not runs else _moved(entry.variant, runs, own)
    return found


def _usable(record: Record, name: str) -> list[Run]:
    return [run for run in record.index.by_id.get(name, ()) if run.usable]


def _moved(variant: Variant, runs: Sequence[Run], own: Sequence[Run]) -> Moved | None:
    """By the runs of a variant and of the baseline: every one of the variant's must differ."""
    if all(any(_elsewhere(run, base) for base in own) for run in runs):
        return Moved.YES
    silent = any(expected == NO_TRACE for _, expected in variant.effect) or not variant.effect
    # What the engine never tells in this mode may have moved, unless it stayed with the rest.
    silent |= any(_untold(run, own) for run in runs)
    if silent:
        return Moved.UNTOLD
    return Moved.SAME if own and all(map(_places, runs)) else None


def _elsewhere(run: Run, base: Run) -> bool:
    """Whether any part that both logs tell is at another place in one of them."""
    here, there = _places(run), _places(base)
    return any(place != there[part] for part, place in here.items() if part in there)


def _untold(run: Run, own: Sequence[Run]) -> bool:
    """Whether a part was claimed of which neither log tells where it is."""
    told = {part for each in (run, *own) for part in _places(each)}
    return any(
        part.effect is Effect.UNOBSERVABLE and part.part not in told for part in run.effect_parts
    )


def _places(run: Run) -> Mapping[str, str]:
    """Where the parts are; of an engine that hands over no places, where they were seen."""
    if run.reading.places:
        return run.reading.places
    return {seen.part: seen.value for seen in run.reading.sightings if seen.value is not None}
