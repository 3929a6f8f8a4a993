"""The fit to the shipped points, once for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hetero_test.triage.learn.fit import learn
from hetero_test.triage.learn.points import shipped_points
from hetero_test.triage.learn.scoring import score, shipped_misses, widening

if TYPE_CHECKING:
    from hetero_test.triage.learn.estimates import Estimates
    from hetero_test.triage.learn.points import Point
    from hetero_test.triage.learn.scoring import Scored


@pytest.fixture(scope="session")
def points() -> tuple[Point, ...]:
    """The calibration points."""
    return shipped_points()


@pytest.fixture(scope="session")
def estimates(points: tuple[Point, ...]) -> Estimates:
    """After all points."""
    return learn(points)


@pytest.fixture(scope="session")
def scored(points: tuple[Point, ...]) -> list[Scored]:
    """Each point with its source left out."""
    return score(points)


@pytest.fixture(scope="session")
def q() -> float:
    """How many standard deviations an interval is wide."""
    return widening(shipped_misses())
