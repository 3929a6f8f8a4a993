"""Variants that are known before the first launch to be a command that runs already. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hetero_test.values.variant import PlannedVariant, Variant


def without_copies(
    variants: Sequence[PlannedVariant], flags: Sequence[str], env: Mapping[str, str]
) -> tuple[PlannedVariant, ...]:
    """The variants, without those that are the baseline under another name.

    What a variant sets may be what the user's command and environment set already. Its streams
    would be equal to the baseline's, and nothing would have been tested.
    """
    why = "the model flags and the environment set already what it sets: it is the baseline"
    return (
        variants[0],
        *(
            replace(entry, planned=False, why_not=why)
            if entry.planned and _is_set(entry.variant, flags, env)
            else entry
            for entry in variants[1:]
        ),
    )


def without_twins(
    variants: Sequence[PlannedVariant], combined: Callable[[Variant], tuple[str, ...]]
) -> tuple[PlannedVariant, ...]:
    """The variants, each command once: of equal ones the first runs.

    Args:
        variants: as planned.
        combined: a variant's flags put together with the user's.
    """
    first: dict[object, str] = {}
    found = []
    for entry in variants:
        variant = entry.variant
        command = (combined(variant), frozenset(dict(variant.env).items()))
        if entry.planned and (own := first.setdefault(command, variant.id)) != variant.id:
            why = f"its flags and environment are those of variant {own}"
            found.append(replace(entry, planned=False, why_not=why, copy_of=own))
        else:
            found.append(entry)
    return tuple(found)


def _is_set(variant: Variant, flags: Sequence[str], env: Mapping[str, str]) -> bool:
    wanted = variant.flags
    if any(env.get(name) != value for name, value in variant.env):
        return False
    names = {flag for flag in wanted if flag.startswith("-")}
    for place in range(len(flags) - len(wanted), -1, -1):
        if tuple(flags[place : place + len(wanted)]) == wanted:
            # Of a repeated flag the last one counts.
            return names.isdisjoint(flags[place + len(wanted) :])
    return False
