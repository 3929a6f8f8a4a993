"""Whether the log proves that a placement happened: expected parts against sightings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.values.run import AS_PICKED, NO_TRACE, Effect, EffectPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hetero_test.values.reading import Sighting

MAIN = "main"


def effects(
    expected: Sequence[tuple[str, str]],
    sightings: Sequence[Sighting],
    picked: Mapping[str, str],
) -> tuple[EffectPart, ...]:
    """What the log says of each part that a variant claims to place, in the matrix's order.

    Args:
        expected: (part, value) pairs of the variant.
        sightings: where the log shows parts.
        picked: placements that the engine announced to have chosen itself, by part.
    """
    wanted = {part: picked.get(part) if value == AS_PICKED else value for part, value in expected}
    main = wanted.get(MAIN)
    if main is None:
        main = next((seen.value for seen in sightings if seen.part == MAIN), None)
    return tuple(
        _unseen(part, value, Effect.UNOBSERVABLE)
        if value == NO_TRACE
        else _effect(part, value, wanted[part], main, [s for s in sightings if s.part == part])
        for part, value in expected
    )


def worst(parts: Iterable[EffectPart]) -> Effect:
    """The effect of a variant: the worst of its parts; UNOBSERVABLE where it claims none."""
    return Effect.worst(part.effect for part in parts) or Effect.UNOBSERVABLE


def _effect(
    part: str, expected: str, wanted: str | None, main: str | None, sightings: list[Sighting]
) -> EffectPart:
    if wanted is None:  # the engine never said what it picked
        return _unseen(part, expected, Effect.NOT_SEEN)
    # One line that shows it elsewhere outweighs any that show it where it should be.
    seen = sorted(
        (sighting for sighting in sightings if sighting.value is not None),
        key=lambda sighting: sighting.value == wanted,
    )
    if seen:
        first = seen[0]
        effect = Effect.PROVEN if first.value == wanted else Effect.CONTRADICTED
        return EffectPart(
            part=part, expected=expected, seen=first.value, effect=effect, line=first.line
        )
    silent = bool(sightings)  # the engine never tells this in this mode
    # A part that shares the main device is not announced: its absence proves nothing.
    at_home = part != MAIN and wanted == main
    return _unseen(part, expected, Effect.UNOBSERVABLE if silent or at_home else Effect.NOT_SEEN)


def _unseen(part: str, expected: str, effect: Effect) -> EffectPart:
    return EffectPart(part=part, expected=expected, seen=None, effect=effect)
