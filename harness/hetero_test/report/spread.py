"""Repeated measurements as they may be quoted: median, range and number, and what differs.

Below five runs a confidence interval is narrower than it has any right to be, so only the
range is used; from five on, a percentile bootstrap of the ratio of medians (Efron 1979),
seeded, says whether two differ.
"""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SEED = 7
RESAMPLES = 1000
ENOUGH = 5
"""Runs from which on an interval is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Values of one quantity in the order in which they were measured; at least one."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """The known and finite values; None when there is none."""
        known = tuple(v for v in values if v is not None and math.isfinite(v))
        return cls(values=known) if known else None

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The smallest value."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest value."""
        return max(self.values)

    @property
    def drift(self) -> float:
        """How far the last value is from the first."""
        return abs(self.values[-1] - self.values[0])

    def __str__(self) -> str:
        # A hyphen between digits is no place to break a line, an en dash is.
        low, high = number(self.low), number(self.high)
        return number(self.median) if low == high else f"{number(self.median)} [{low}-{high}]"


def number(value: float) -> str:
    """A measured value with as many digits as anyone reads."""
    size = abs(value)
    if size >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 100 else f"{value:.2f}"


def change(this: Spread, reference: Spread) -> str:
    """How ``this`` differs from ``reference``: a percentage, or ``~`` inside the noise.

    With few runs all of its own range must lie outside of the reference's, widened by the
    reference's drift; with five or more on both sides the 95 % interval of the ratio must
    leave out 1.
    """
    if reference.median == 0 or len(reference.values) < 2:
        return "–"
    ratio = f"{100 * (this.median / reference.median - 1):+.1f} %"
    if min(len(this.values), len(reference.values)) >= ENOUGH:
        low, high = interval(this.values, reference.values)
        if low <= 1 <= high:
            return "~"
        return f"{ratio} (95 %: {100 * (low - 1):+.1f} to {100 * (high - 1):+.1f})"
    noise = reference.drift
    outside = this.high < reference.low - noise or this.low > reference.high + noise
    return ratio if outside else "~"


@lru_cache(maxsize=512)
def interval(this: tuple[float, ...], reference: tuple[float, ...]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the ratio of two medians."""
    draw = random.Random(SEED)
    ratios = []
    for _ in range(RESAMPLES):
        below = statistics.median(draw.choices(reference, k=len(reference)))
        above = statistics.median(draw.choices(this, k=len(this)))
        ratios.append(above / below if below else math.inf)
    ratios.sort()
    return ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES) - 1]
