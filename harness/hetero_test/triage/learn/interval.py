"""A positive quantity with its 80 % interval, and what arithmetic does to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

Z80 = 1.2815515655446004
"""Standard deviations from the middle to either end of a normal distribution's central 80 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value and the ends between which it lies in 8 of 10 cases, all in one unit.

    Raises:
        ValueError: the ends do not enclose the value, or a number is not finite.
    """

    low: float
    value: float
    high: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(x) for x in (self.low, self.value, self.high)):
            raise ValueError(f"{self.low}, {self.value}, {self.high} are not all finite")
        if not self.low <= self.value <= self.high:
            raise ValueError(f"the interval {self.low} to {self.high} leaves out {self.value}")

    @classmethod
    def around(cls, value: float, half_width: float) -> Interval:
        """A positive value whose upper end is `half_width` above it.

        The lower end is as far below by ratio: low = value² / high. So it never reaches
        zero, and both ends move outward when either argument grows.

        Raises:
            ValueError: the value or the width is negative, or not finite.
        """
        if value < 0 or half_width < 0:
            raise ValueError("a positive quantity has no negative value or width")
        high = value + half_width
        # Rounding may lift the quotient above the value it comes from.
        return cls(low=min(value, value * value / high if high else 0.0), value=value, high=high)

    def times(self, factor: float) -> Interval:
        """In another unit: every number times a positive factor.

        Raises:
            ValueError: the factor is zero or negative.
        """
        if factor <= 0:
            raise ValueError("a unit is a positive factor")
        return Interval(low=self.low * factor, value=self.value * factor, high=self.high * factor)

    def inverse(self) -> Interval:
        """1/x: seconds a token become tokens a second.

        Raises:
            ValueError: the interval reaches down to zero.
        """
        if self.low <= 0:
            raise ValueError("what may be zero has no inverse")
        return Interval(low=1 / self.high, value=1 / self.value, high=1 / self.low)
