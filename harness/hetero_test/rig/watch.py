"""Watches links and utilization, idle or while the user's load runs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.rig.facts import LinkFacts, LinkState
from hetero_test.rig.links import Port, best_of, link_facts
from hetero_test.rig.sourced import Sourced, measured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hetero_test.rig.machine import Machine, Sampling

BUSY_PERCENT = 10.0
"""A device that was never this busy was not under load, whatever the user meant to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A device at one moment."""

    path: tuple[Port, ...] = ()
    utilization_percent: float | None = None
    source: str = "sysfs"
    """Where the link was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A device over all moments."""

    link: LinkFacts | None
    utilization_percent: Sourced[float] | None
    """Idle; None when it was watched under load."""
    utilization_under_load_percent: Sourced[float] | None
    loaded: bool
    """Whether a load was seen on it."""


def watch(
    machine: Machine,
    sampling: Sampling,
    look: Callable[[], Mapping[str, Look]],
) -> dict[str, Watched]:
    """Look at the devices as often as asked; by device id.

    Args:
        machine: for the pauses between.
        sampling: how often.
        look: reads all devices once.
    """
    looks: dict[str, list[Look]] = {}
    for number in range(sampling.looks):
        if number:
            machine.sleep(sampling.interval_s)
        for device, seen in look().items():
            looks.setdefault(device, []).append(seen)
    return {device: _summary(seen, sampling) for device, seen in looks.items()}


def _summary(looks: Sequence[Look], sampling: Sampling) -> Watched:
    busy = [seen.utilization_percent for seen in looks if seen.utilization_percent is not None]
    loaded = sampling.under_load and max(busy, default=0.0) >= BUSY_PERCENT
    state = LinkState.UNDER_LOAD if loaded else LinkState.IDLE
    source = looks[0].source
    if sampling.under_load:
        source += f", best of {len(looks)} looks"
    return Watched(
        link=link_facts(best_of([seen.path for seen in looks]), state=state, source=source),
        utilization_percent=None if loaded else _utilization(busy, "idle"),
        utilization_under_load_percent=_utilization(busy, "under load") if loaded else None,
        loaded=loaded,
    )


def _utilization(busy: Sequence[float], when: str) -> Sourced[float] | None:
    if not busy:
        return None
    mean = round(statistics.fmean(busy), 1)
    return measured(mean, f"driver's utilization, {when}, mean of {len(busy)} looks")
