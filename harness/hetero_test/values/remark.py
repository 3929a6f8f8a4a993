"""A line of a log that its reader does not know, and what it says of the run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Weight(StrEnum):
    """What a line says, the gravest first; a known one is told elsewhere and never weighs."""

    NO_MEMORY = "no memory"
    FATAL = "fatal"
    NOT_A_NUMBER = "not a number"
    NOT_GREEDY = "not greedy"
    REFUSED = "refused"
    DOUBTFUL = "doubtful"
    NOTHING = "nothing"
    KNOWN = "known"


GRAVE = frozenset(
    {
        Weight.NO_MEMORY,
        Weight.FATAL,
        Weight.NOT_A_NUMBER,
        Weight.NOT_GREEDY,
        Weight.REFUSED,
    }
)
"""Weights that decide what became of a run; the others are weighed against other runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A line that a run printed and that no reader knows.

    Attributes:
        template: the line with numbers, addresses and paths masked; equal for two runs that
            say the same.
        line: the first such line, verbatim, cut to a readable length.
        weight: what it says of the run.
    """

    template: str
    line: str
    weight: Weight
