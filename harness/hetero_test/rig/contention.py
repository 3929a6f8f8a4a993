"""Who else uses the devices while a matrix runs, and how fast their links really are.

Neither changes a verdict, and both explain a time. A device's link slows down when it is idle, so
it is read once a second while engines run, and the fastest reading counts.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable

PERIOD_S = 1.0
PATIENCE_S = 5.0
"""How long to wait at the end for a query that has begun."""
DISPLAY_CLASS = "0x03"
"""PCI class of display and 3D controllers, as sysfs writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """One device at one moment.

    Attributes:
        name: for people, with its PCI address or index.
        link_gb_s: one direction, now; None: unknown.
        capable_gb_s: what device and slot can do.
        link: the same in words, such as ``Gen4 x4``; ``capable`` likewise.
        holders: pid to (name, bytes) of the processes that hold memory on it.
    """

    name: str
    link_gb_s: float | None = None
    capable_gb_s: float | None = None
    link: str = ""
    capable: str = ""
    holders: Mapping[int, tuple[str, int | None]] | None = None


class UseQuery(Protocol):
    """Reads the state of all devices once."""

    def __call__(self) -> tuple[DeviceUse, ...]:
        """The devices as they are now; empty where none can be seen."""


def nvidia() -> tuple[DeviceUse, ...]:
    """What the NVIDIA driver reports; nothing without its library (extra ``gpu``)."""
    from hetero_test.rig.nvidia import import_nvml, query_nvml

    return tuple(
        DeviceUse(
            name=f"device {device.index} ({device.name or 'unknown'})",
            link_gb_s=device.now.gb_s if device.now else None,
            capable_gb_s=device.capable.gb_s if device.capable else None,
            link=str(device.now or ""),
            capable=str(device.capable or ""),
            holders=None
            if device.holders is None
            else {held.pid: (_name(held.pid), held.memory_bytes) for held in device.holders},
        )
        for device in query_nvml(import_nvml()).devices
    )


def amd(proc: Path = Path("/proc")) -> tuple[DeviceUse, ...]:
    """Who holds memory on devices of the kernel's own drivers."""
    from hetero_test.rig.holders import drm_holders

    return tuple(
        DeviceUse(
            name=f"device {address}",
            holders={holder.pid: (holder.name, holder.memory_bytes) for holder in holders},
        )
        for address, holders in (drm_holders(proc) or {}).items()
    )


def looks(sysfs: Path = Path("/sys"), dev: Path = Path("/dev")) -> tuple[UseQuery, ...]:
    """The queries that can see a device on this machine."""
    found: list[UseQuery] = []
    if (dev / "nvidiactl").exists():
        found.append(nvidia)
    classes = (sysfs / "bus/pci/devices").glob("*/class")
    with suppress(OSError):
        if (dev / "dri").exists() and any(_is_display(path) for path in classes):
            found.append(amd)
    return tuple(found)


def _is_display(path: Path) -> bool:
    return path.read_text(encoding="ascii", errors="replace").startswith(DISPLAY_CLASS)


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return "unknown"


class ContentionWatch:
    """Queries the devices once a second while it is entered; starts nothing without queries."""

    def __init__(self, looks: Iterable[UseQuery], *, period_s: float = PERIOD_S) -> None:
        self._looks = tuple(looks)
        self._period_s = period_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._best: dict[str, DeviceUse] = {}
        self._strangers: dict[tuple[str, str], int | None] = {}
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._looks:
            self.look()
            self._thread = threading.Thread(target=self._watch, name="bystanders", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def _watch(self) -> None:
        while not self._stop.wait(self._period_s):
            self.look()

    def look(self) -> None:
        """Query all devices once; what a failing driver would say is left out."""
        for look in self._looks:
            with suppress(Exception):
                for seen in look():
                    self._note(seen)

    def _note(self, seen: DeviceUse) -> None:
        ours = _family()
        with self._lock:
            best = self._best.get(seen.name)
            if best is None or (seen.link_gb_s or 0.0) > (best.link_gb_s or 0.0):
                self._best[seen.name] = seen
            for pid, (name, held) in (seen.holders or {}).items():
                if pid not in ours:
                    key = (seen.name, name)
                    self._strangers[key] = max(held or 0, self._strangers.get(key) or 0) or None

    def told(self) -> tuple[str, ...]:
        """What a reader of the times should know, each a sentence."""
        with self._lock:
            found = [
                f"{name} was also held by another process, {process}"
                + ("" if held is None else f" ({held / 2**20:.0f} MiB)")
                for (name, process), held in sorted(self._strangers.items())
            ]
            found += [
                f"the link of {seen.name} ran at {seen.link} at best while engines ran, "
                f"below its maximum of {seen.capable}"
                for seen in self._best.values()
                if seen.link_gb_s and seen.capable_gb_s and seen.link_gb_s < seen.capable_gb_s
            ]
        return tuple(found)


def _family() -> set[int]:
    """Our own process and everything it started."""
    me = psutil.Process()
    with suppress(psutil.Error):
        return {me.pid, *(child.pid for child in me.children(recursive=True))}
    return {me.pid}
