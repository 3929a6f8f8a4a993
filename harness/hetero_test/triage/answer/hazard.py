"""A hazard, which can spoil a split, and whether it was checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The outcome of a check."""

    PRESENT = "present"
    ABSENT = "absent"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """One check with its evidence."""

    name: str
    state: State
    evidence: str
    """What was found, or what would show it."""
    advice: str = ""


def present(name: str, evidence: str, advice: str = "") -> Hazard:
    """The hazard is present."""
    return Hazard(name=name, state=State.PRESENT, evidence=evidence, advice=advice)


def absent(name: str, evidence: str) -> Hazard:
    """The hazard was checked and is absent."""
    return Hazard(name=name, state=State.ABSENT, evidence=evidence)


def not_checked(name: str, how: str) -> Hazard:
    """The hazard was not checked; `how` says what would show it."""
    return Hazard(name=name, state=State.NOT_CHECKED, evidence=how)
