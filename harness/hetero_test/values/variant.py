"""A placement of the matrix, what it needs, and whether it is run here."""

from __future__ import annotations

from dataclasses import dataclass

BASELINE_PURPOSE = "the user's own command, untouched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a variant needs of the rig and of the model flags.

    Attributes:
        devices: comparison and number, such as ``(">=", 2)``; None when any will do.
        drafter: True when a drafter must be present, False when none may be.
        experts: True when the model must be a mixture of experts, False when it may not.
    """

    devices: tuple[str, int] | None = None
    drafter: bool | None = None
    experts: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One placement.

    Attributes:
        id: short name, unique in the matrix.
        name: what it does, for people.
        flags: appended to the user's model flags.
        env: set in the engine's environment.
        needs: what the rig must have.
        effect: (part, expected) pairs that the log must prove; ``as picked`` takes the
            engine's own announcement, ``no trace`` says that no line ever tells.
        claims: False when this placement is not claimed to be bit-exact.
        for_each: ``device`` or ``other_device``: one variant each, ``{device}`` filled in.
    """

    id: str
    name: str
    flags: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    needs: Needs = Needs()
    effect: tuple[tuple[str, str], ...] = ()
    claims: bool = True
    for_each: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVariant:
    """A variant, and whether it can run here.

    Attributes:
        variant: the placement.
        planned: True when cells of it are launched.
        why_not: why not, in words for the report.
        refused: True when the engine's own help rules it out.
        few_devices: True when only the number of devices keeps it from running.
        copy_of: id of the variant that has the same command, which runs in its place.
        drafter: whether its command brings a drafter; None where nobody asked the engine.
    """

    variant: Variant
    planned: bool
    why_not: str | None = None
    refused: bool = False
    few_devices: bool = False
    copy_of: str | None = None
    drafter: bool | None = None
