"""What the shipped points teach, once for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.triage.fit import learn
from harness.triage.points import shipped_points
from harness.triage.scoring import score, shipped_misses, widening

if TYPE_CHECKING:
    from harness.triage.beliefs import Beliefs
    from harness.triage.points import Point
    from harness.triage.scoring import Scored


@pytest.fixture(scope="session")
def points() -> tuple[Point, ...]:
    """The calibration points."""
    return shipped_points()


@pytest.fixture(scope="session")
def beliefs(points: tuple[Point, ...]) -> Beliefs:
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
