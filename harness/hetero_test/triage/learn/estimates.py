"""Estimates of the unknowns, and how a measurement changes them.

Every unknown (an efficiency, a cost per split) is log-normal: the logarithms are jointly normal,
with a mean and a covariance. A measured speed moves each unknown in proportion to how uncertain it
was and how much the speed depends on it, and narrows all of them. By this one rule the calibration
points are fitted and the user's baselines recalibrate. It is the iterated extended Kalman update
(Jazwinski 1970, *Stochastic Processes and Filtering Theory*, section 8.3); nothing is drawn at
random, so a result can be repeated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hetero_test.triage.cost.priors import Reader

ITERATIONS = 6
"""Linearizations a measurement gets; the sums of time here settle within four."""
LONGEST_STEP = 1.5
"""Most that one linearization may move a logarithm, so that a wild start cannot overshoot."""
SETTLED = 1e-4
"""Change of every logarithm below which a further linearization changes nothing."""
NUDGE = 1e-5
"""Step of the differences, in the logarithm."""


class FirstEstimate(Protocol):
    """Gives an unknown that is not yet held its first mean and spread."""

    def __call__(self, name: str) -> tuple[float, float]:
        """The mean of the logarithm and its standard deviation."""
        ...


class Estimates:
    """Unknowns with mean and covariance of their logarithms.

    Args:
        first: mean and spread of an unknown that is looked up for the first time. The part of
            one device is looked up as ``name@device`` and has mean 0.
    """

    def __init__(self, first: FirstEstimate) -> None:
        self._first = first
        self._index: dict[str, int] = {}
        self._mean: list[float] = []
        self._covariance: list[list[float]] = []
        self._used: list[int] = []
        self.looked_up: set[str] = set()
        """Unknowns that a model looked up, since these estimates were copied."""

    def copy(self) -> Estimates:
        """An independent copy."""
        other = Estimates(self._first)
        other._index = dict(self._index)
        other._mean = list(self._mean)
        other._covariance = [list(row) for row in self._covariance]
        return other

    @property
    def names(self) -> tuple[str, ...]:
        """All unknowns that were looked up so far."""
        return tuple(self._index)

    def add(self, name: str, mean: float, spread: float) -> None:
        """Hold an unknown with this mean and standard deviation of its logarithm.

        One that is already held is left as it is.
        """
        if name in self._index:
            return
        self._index[name] = len(self._mean)
        self._mean.append(mean)
        for row in self._covariance:
            row.append(0.0)
        self._covariance.append([0.0] * len(self._mean))
        self._covariance[-1][-1] = spread * spread

    def loosen(self, name: str, spread: float) -> None:
        """Widen one unknown alone, by a further standard deviation of its logarithm."""
        self._meet([name])
        i = self._index[name]
        self._covariance[i][i] += spread * spread

    def drop(self, wanted: Callable[[str], bool]) -> None:
        """Forget unknowns; what was learned with them about the others stays."""
        kept = [name for name in self._index if not wanted(name)]
        places = [self._index[name] for name in kept]
        self._mean = [self._mean[i] for i in places]
        self._covariance = [[self._covariance[i][j] for j in places] for i in places]
        self._index = {name: i for i, name in enumerate(kept)}

    def known(self, name: str) -> tuple[float, float]:
        """Middle of an unknown in its own unit, and standard deviation of its logarithm."""
        self._meet([name])
        i = self._index[name]
        return math.exp(self._mean[i]), math.sqrt(max(0.0, self._covariance[i][i]))

    def condition(self, model: Callable[[Reader], float], observed: float, noise: float) -> None:
        """Learn that `model`, which returns a logarithm, came out as `observed` ± `noise`."""
        self._met_by(model)
        start = list(self._mean)
        at = list(start)
        gain, spread = [0.0] * len(at), [0.0] * len(at)
        for _ in range(ITERATIONS):
            value, slope = self._linear(model, at)
            spread = self._times(slope)
            scale = sum(s * g for s, g in zip(spread, slope, strict=True)) + noise * noise
            gain = [s / scale for s in spread]
            moved = sum(g * (m - x) for g, m, x in zip(slope, start, at, strict=True))
            surprise = observed - value - moved
            goal = [m + k * surprise for m, k in zip(start, gain, strict=True)]
            steps = [
                max(-LONGEST_STEP, min(LONGEST_STEP, aim - x))
                for x, aim in zip(at, goal, strict=True)
            ]
            at = [x + step for x, step in zip(at, steps, strict=True)]
            if max(map(abs, steps), default=0.0) < SETTLED:
                break
        self._mean = at
        for i, k in enumerate(gain):
            if k:
                row = self._covariance[i]
                for j, s in enumerate(spread):
                    row[j] -= k * s

    def predict(self, model: Callable[[Reader], float]) -> tuple[float, float]:
        """Mean and standard deviation of what `model` returns, to first order."""
        self._met_by(model)
        value, slope = self._linear(model, self._mean)
        variance = sum(s * g for s, g in zip(self._times(slope), slope, strict=True))
        return value, math.sqrt(max(0.0, variance))

    def shares(self, model: Callable[[Reader], float]) -> list[tuple[str, float]]:
        """The share of each unknown in the variance of what `model` returns, largest first.

        The shares add up to one; correlations may make one of them negative.
        """
        self._met_by(model)
        _, slope = self._linear(model, self._mean)
        spread = self._times(slope)
        parts = {name: slope[i] * spread[i] for name, i in self._index.items() if slope[i]}
        whole = sum(parts.values())
        if whole <= 0:
            return []
        return sorted(((n, p / whole) for n, p in parts.items()), key=lambda item: -item[1])

    def shifted(self, name: str, factor: float) -> Reader:
        """Reads unknowns at their middle, but this one at `factor` times its own."""
        at = list(self._mean)
        at[self._index[name]] += math.log(factor)
        return self._reader(at)

    def reader(self) -> Reader:
        """Reads unknowns at their middle."""
        return self._reader(self._mean)

    def _reader(self, at: list[float]) -> Reader:
        def read(name: str, *, at_device: str = "") -> float:
            value = at[self._index[name]]
            if at_device:
                value += at[self._index[f"{name}@{at_device}"]]
            return math.exp(value)

        def reader(name: str, *, at: str = "") -> float:
            return read(name, at_device=at)

        return reader

    def _met_by(self, model: Callable[[Reader], float]) -> None:
        """Let the model run once to see what it looks up, and hold all of it."""
        met: dict[str, None] = {}

        def probe(name: str, *, at: str = "") -> float:
            keys = [name, f"{name}@{at}"] if at else [name]
            self._meet(keys)
            met.update(dict.fromkeys(keys))
            self.looked_up.update(keys)
            return self._reader(self._mean)(name, at=at)

        model(probe)
        self._used = [self._index[name] for name in met]

    def _meet(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._index:
                self.add(name, *self._first(name))

    def _linear(
        self, model: Callable[[Reader], float], at: list[float]
    ) -> tuple[float, list[float]]:
        """The model's value at a place, and its slope by every unknown it looks up."""
        reader = self._reader(at)
        slope = [0.0] * len(at)
        value = model(reader)
        for i in self._used:
            middle = at[i]
            at[i] = middle + NUDGE
            slope[i] = (model(reader) - value) / NUDGE
            at[i] = middle
        return value, slope

    def _times(self, slope: list[float]) -> list[float]:
        """Covariance × slope."""
        used = [(i, slope[i]) for i in self._used if slope[i]]
        return [sum(row[i] * g for i, g in used) for row in self._covariance]
