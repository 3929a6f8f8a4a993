"""How good the predictions are: each point scored with its source left out, and the sums.

The 80 % interval of a point is its prediction × or ÷ (1 + q σ). σ is what the unknowns and the
roughness of the model leave; q is the 80 % quantile of |error| / σ over the points of *other*
sources, each source with one vote (split conformal prediction: Vovk et al. 2005, *Algorithmic
Learning in a Random World*, chapter 4). So the width follows from how far predictions have missed.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING

from hetero_test.triage.learn.fit import learn, predict_point
from hetero_test.triage.learn.interval import Z80
from hetero_test.triage.learn.points import Point, Use, shipped_points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVEL = 0.8
ROUGHNESS = 0.035
"""Standard deviation of ln(ratio) that no input explains: repeated pairs do not agree better."""


class Call(StrEnum):
    """What an interval says of a change; MEASURE FIRST where "no change" lies inside."""

    GO = "GO"
    NO_GO = "NO-GO"
    MEASURE_FIRST = "MEASURE FIRST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A prediction with its own source left out."""

    point: Point
    predicted: float
    """ln(b/a)."""
    sigma: float
    """Standard deviation of it: unknowns and roughness together."""
    measured: float

    @property
    def scaled(self) -> float:
        """|error| of the ratio in standard deviations."""
        return math.expm1(abs(self.measured - self.predicted)) / self.sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A point, its prediction and the interval that other sources' misses give it."""

    point: Point
    predicted: float
    half_width: float
    """Of the interval of ln(b/a)."""
    measured: float

    @property
    def error(self) -> float:
        """Predicted over measured ratio, minus one."""
        return math.expm1(self.predicted - self.measured)

    @property
    def inside(self) -> bool:
        """Whether the measured ratio lies in the interval."""
        return abs(self.measured - self.predicted) <= self.half_width

    @property
    def call(self) -> Call:
        """GO or NO-GO where the interval leaves out "no change"."""
        return call_of(self.predicted, self.half_width)

    @property
    def right(self) -> bool | None:
        """Whether a decided point has the right sign; None: it is not decided."""
        if self.call is Call.MEASURE_FIRST:
            return None
        return (self.measured > 0) == (self.call is Call.GO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The sums over scored points."""

    points: int
    sources: int
    decided: int
    right: int
    inside: int
    median_error: float
    worst_error: float
    worst_id: str
    median_width: float
    """Median of high / low of the interval of b/a, minus one."""
    signs: int
    """Points whose middle has the right sign, decided or not."""

    @property
    def binomial_half_width(self) -> float:
        """Two standard deviations of a share of 80 % over so many points."""
        return 2 * math.sqrt(LEVEL * (1 - LEVEL) / self.points)


def call_of(log_ratio: float, half_width: float) -> Call:
    """What an interval of ln(ratio) says: GO above no change, NO-GO below, else neither."""
    if log_ratio - half_width > 0:
        return Call.GO
    return Call.NO_GO if log_ratio + half_width < 0 else Call.MEASURE_FIRST


def misses(points: Sequence[Point], teachers: Sequence[Point]) -> list[Miss]:
    """Predictions of all scored points, each fitted without its own source.

    Args:
        points: those to be predicted.
        teachers: those to be fitted to.
    """
    found = []
    for origin in sorted({point.origin for point in points if point.use is Use.SCORE}):
        estimates = learn(teachers, without=frozenset({origin}))
        for point in points:
            if point.origin != origin or point.use is not Use.SCORE:
                continue
            predicted, spread = predict_point(point, estimates)
            assert point.log_ratio is not None
            found.append(
                Miss(
                    point=point,
                    predicted=predicted,
                    sigma=math.hypot(spread, ROUGHNESS),
                    measured=point.log_ratio,
                )
            )
    return found


def widening(found: Sequence[Miss]) -> float:
    """q: the 80 % quantile of |error| / σ, each source with one vote; without any, 1.28.

    1.28 is the value of a normal distribution. A source's misses are from fits without that
    source; those fits did see the source that an interval is for.
    """
    if not found:
        return Z80
    counts = Counter(miss.point.origin for miss in found)
    votes = sorted((miss.scaled, 1 / counts[miss.point.origin]) for miss in found)
    # One more vote, for the unseen source that the interval is for: it may miss by more than all.
    wanted = LEVEL * (len(counts) + 1)
    gathered = 0.0
    for scaled, vote in votes:
        gathered += vote
        if gathered >= wanted:
            return scaled
    return votes[-1][0]


@lru_cache(maxsize=1)
def shipped_misses() -> tuple[Miss, ...]:
    """Predictions of all shipped points, each fitted without its own source."""
    points = shipped_points()
    return tuple(misses(points, points))


def score(points: Sequence[Point]) -> list[Scored]:
    """Every scored point with its interval, from the shipped points of other sources.

    The source of a point takes part neither in its fit nor in its width.
    """
    teachers, taught = shipped_points(), shipped_misses()
    found = taught if points is teachers else misses(points, teachers)
    widths = {
        origin: widening([m for m in taught if m.point.origin != origin])
        for origin in {miss.point.origin for miss in found}
    }
    return [
        Scored(
            point=miss.point,
            predicted=miss.predicted,
            half_width=math.log1p(widths[miss.point.origin] * miss.sigma),
            measured=miss.measured,
        )
        for miss in found
    ]


def summarize(scored: Sequence[Scored]) -> Summary:
    """The sums that the README shows.

    Raises:
        ValueError: there is nothing to sum.
    """
    if not scored:
        raise ValueError("no point can be scored")
    worst = max(scored, key=lambda s: abs(s.predicted - s.measured))
    return Summary(
        points=len(scored),
        sources=len({s.point.origin for s in scored}),
        decided=sum(s.right is not None for s in scored),
        right=sum(s.right is True for s in scored),
        inside=sum(s.inside for s in scored),
        median_error=median(abs(s.error) for s in scored),
        worst_error=worst.error,
        worst_id=worst.point.id,
        median_width=median(math.expm1(2 * s.half_width) for s in scored),
        signs=sum((s.predicted > 0) == (s.measured > 0) for s in scored),
    )


def left_out(points: Sequence[Point]) -> Mapping[str, str]:
    """Points that are not scored, by id, and why."""
    return {
        point.id: point.missing
        or ("costs of batches only" if point.verify_measured else "one placement only")
        for point in points
        if point.use is not Use.SCORE
    }
