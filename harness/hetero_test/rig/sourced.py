"""A fact together with where it came from.

Triage is only as good as its inputs, so no number travels alone: it says whether it was
measured, specified or assumed, by what, and how far it can be trusted. The unit is in the
name of the field that holds the fact (``memory_bytes``, ``bandwidth_specified_gb_s``).
An unknown fact is ``None`` where it would stand, never 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T", bound=float | int | str | bool)


class Origin(StrEnum):
    """How a fact came to be known, strongest first."""

    MEASURED = "measured"
    """Read from the machine, the file or a run: a tool, a driver, a header, a stopwatch."""
    SPECIFIED = "specified"
    """Stated by a data sheet, a standard or the user: an upper bound where it is a speed."""
    ASSUMED = "assumed"
    """Neither: a default of this program, or a conclusion from something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced(Generic[T]):
    """One fact: a number, a text or a yes/no.

    Construct it without a subscript, ``Sourced(value=…)``; the subscript is for annotations.

    Raises:
        ValueError: the source is empty, a number is not finite, or the interval is only
            half given, belongs to something that is not a number, or leaves out the value.
    """

    value: T
    """The fact itself, in the unit that the holder's field name says."""
    origin: Origin
    """Measured, specified or assumed."""
    source: str
    """The command, file, table row or flag that the fact was taken from."""
    low: float | None = None
    """Lower end of the 80 % interval, in the unit of the value; None: no interval known."""
    high: float | None = None
    """Upper end of the 80 % interval, in the unit of the value; None: no interval known."""

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise ValueError("a fact needs a source")
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval needs both low and high")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise ValueError(f"{self.value} is not a finite number")
        if self.low is None or self.high is None:
            return
        if isinstance(self.value, str | bool):
            raise ValueError("only a number has an interval")  # noqa: TRY004  data, not a caller
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ValueError("an interval has finite ends")
        if not self.low <= self.value <= self.high:
            raise ValueError(f"the interval {self.low} to {self.high} leaves out {self.value}")


def measured(value: T, source: str) -> Sourced[T]:
    """A fact that was read from the machine, the file or a run."""
    return Sourced(value=value, origin=Origin.MEASURED, source=source)


def measured_if_known(value: T | None, source: str) -> Sourced[T] | None:
    """A fact that was read, or None where it could not be."""
    return None if value is None else measured(value, source)


def specified(value: T, source: str) -> Sourced[T]:
    """A fact that a data sheet, a standard or the user stated."""
    return Sourced(value=value, origin=Origin.SPECIFIED, source=source)


def assumed(value: T, source: str) -> Sourced[T]:
    """A default of this program, or a conclusion; the source says from what."""
    return Sourced(value=value, origin=Origin.ASSUMED, source=source)
