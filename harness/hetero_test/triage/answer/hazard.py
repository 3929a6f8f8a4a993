"""A thing that can spoil a split, and whether it was looked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What looking for a hazard gave."""

    PRESENT = "present"
    ABSENT = "absent"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """One check with its evidence."""

    name: str
    state: State
    evidence: str
    """What was seen, or what would show it."""
    advice: str = ""


def present(name: str, evidence: str, advice: str = "") -> Hazard:
    """It is there."""
    return Hazard(name=name, state=State.PRESENT, evidence=evidence, advice=advice)


def absent(name: str, evidence: str) -> Hazard:
    """It was looked for and is not there."""
    return Hazard(name=name, state=State.ABSENT, evidence=evidence)


def not_checked(name: str, how: str) -> Hazard:
    """It was not looked for; `how` says what would show it."""
    return Hazard(name=name, state=State.NOT_CHECKED, evidence=how)
