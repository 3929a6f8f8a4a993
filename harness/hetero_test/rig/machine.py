"""What a probe may touch of the machine, and how it watches devices, idle or under a load.

Probes are given a :class:`Machine`, so that a test can give them one that it made up.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetero_test.launch.query import Runner, run_tool
from hetero_test.rig.facts import DeviceFacts, LinkFacts, LinkState, PairFacts
from hetero_test.rig.links import Port, Topology, best_of, link_facts
from hetero_test.rig.sourced import Sourced, measured

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The outside world of the probes; the defaults are this machine."""

    sysfs: Path = Path("/sys")
    proc: Path = Path("/proc")
    os_release: Path = Path("/etc/os-release")
    run: Runner = run_tool
    nvml: Any | None = None
    """The module ``pynvml``, or something like it; None: not installed."""
    kernel: str = field(default_factory=platform.release)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    read_test: Callable[[int, int], Any] | None = None
    """The test of `hetero_test.rig.probe_cpu`: bytes, threads; None: do not measure."""
    loads: Callable[[], tuple[float, float, float]] = os.getloadavg
    """Load averages, to say when other work ran beside a measurement."""

    @cached_property
    def topology(self) -> Topology:
        """The PCI ports; read once."""
        return Topology(self.sysfs, self.run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one probe found."""

    devices: tuple[DeviceFacts, ...] = ()
    pairs: tuple[PairFacts, ...] = ()
    driver: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How long devices are watched.

    Idle, one sample. Under load, many: of the link the fastest is kept, since a link that was
    fast once can be fast, and of the utilization the mean.
    """

    under_load: bool = False
    seconds: float = 10.0
    interval_s: float = 0.5

    @property
    def looks(self) -> int:
        """Number of samples."""
        return max(2, round(self.seconds / self.interval_s)) if self.under_load else 1


def join(parts: Sequence[Found]) -> Found:
    """All that several probes found, in order."""
    drivers = [part.driver for part in parts if part.driver]
    return Found(
        devices=tuple(device for part in parts for device in part.devices),
        pairs=tuple(pair for part in parts for pair in part.pairs),
        driver="; ".join(drivers) or None,
        notes=tuple(note for part in parts for note in part.notes),
    )


BUSY_PERCENT = 10.0
"""A device that was never this busy was not under load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSample:
    """A device at one moment."""

    path: tuple[Port, ...] = ()
    utilization_percent: float | None = None
    source: str = "sysfs"
    """Where the link was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedDevice:
    """The samples of a device, summed up."""

    link: LinkFacts | None
    utilization_percent: Sourced[float] | None
    """Idle; None when it was watched under load."""
    utilization_under_load_percent: Sourced[float] | None
    loaded: bool
    """Whether it was seen under load."""


def watch(
    machine: Machine,
    sampling: Sampling,
    look: Callable[[], Mapping[str, DeviceSample]],
) -> dict[str, WatchedDevice]:
    """Sample the devices as often as asked; the result is by device id.

    Args:
        machine: for the pauses between.
        sampling: how often.
        look: reads all devices once.
    """
    looks: dict[str, list[DeviceSample]] = {}
    for number in range(sampling.looks):
        if number:
            machine.sleep(sampling.interval_s)
        for device, seen in look().items():
            looks.setdefault(device, []).append(seen)
    return {device: _summary(seen, sampling) for device, seen in looks.items()}


def _summary(looks: Sequence[DeviceSample], sampling: Sampling) -> WatchedDevice:
    busy = [seen.utilization_percent for seen in looks if seen.utilization_percent is not None]
    loaded = sampling.under_load and max(busy, default=0.0) >= BUSY_PERCENT
    state = LinkState.UNDER_LOAD if loaded else LinkState.IDLE
    source = looks[0].source
    if sampling.under_load:
        source += f", best of {len(looks)} looks"
    return WatchedDevice(
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
