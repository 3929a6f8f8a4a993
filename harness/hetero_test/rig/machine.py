"""Everything of the machine that a probe may touch, so that a test can pass another machine."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from hetero_test.launch.query import Runner, run_tool
from hetero_test.rig.facts import DeviceFacts, PairFacts
from hetero_test.rig.links import Topology


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The outside world of the probes; the defaults are this machine."""

    sysfs: Path = Path("/sys")
    proc: Path = Path("/proc")
    os_release: Path = Path("/etc/os-release")
    run: Runner = run_tool
    nvml: Any | None = None
    """The module ``pynvml``, or something like it; None: not installed."""
    system: str = field(default_factory=platform.system)
    """``Linux``, ``Darwin`` …"""
    kernel: str = field(default_factory=platform.release)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    read_test: Callable[[int, int], Any] | None = None
    """The test of `hetero_test.rig.probe_cpu`: bytes, threads; None: do not measure."""
    loads: Callable[[], tuple[float, float, float]] = os.getloadavg
    """Load averages, to say when a measurement was not alone."""

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

    Idle is one look. Under load the best of many is kept, since a link that is seen fast once
    is fast, and the mean of the utilization.
    """

    under_load: bool = False
    seconds: float = 10.0
    interval_s: float = 0.5

    @property
    def looks(self) -> int:
        """How many times."""
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
