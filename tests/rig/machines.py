"""Machines that a test makes up: sysfs and procfs trees, and tools that answer from a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hetero_test.launch.query import ToolResult, ToolState
from hetero_test.rig.machine import Machine

GIB = 2**30
Answer = str | ToolResult


def answered(argv: Sequence[str], stdout: str) -> ToolResult:
    """A tool that ended well."""
    return ToolResult(argv=tuple(argv), state=ToolState.ANSWERED, stdout=stdout, exit_code=0)


def failed(stderr: str, code: int = 1) -> ToolResult:
    """A tool that failed."""
    return ToolResult(argv=("tool",), state=ToolState.FAILED, stderr=stderr, exit_code=code)


class Tools:
    """Answers by the beginning of the command line; what is not there is not installed."""

    def __init__(self, answers: Mapping[str, Answer | list[Answer]]) -> None:
        self.answers = {
            key: list(value) if isinstance(value, list) else value for key, value in answers.items()
        }
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str]) -> ToolResult:
        """Run the tool."""
        line = " ".join(argv)
        self.asked.append(line)
        fits = [key for key in self.answers if line.startswith(key)]
        if not fits:
            return ToolResult(argv=tuple(argv), state=ToolState.MISSING)
        found = self.answers[max(fits, key=len)]
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        return answered(argv, found) if isinstance(found, str) else found


def put(path: Path, text: str) -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def pci(sysfs: Path, chain: Sequence[str], links: Mapping[str, tuple[str, int, str, int]]) -> None:
    """PCI functions below each other, root port first; links are (now, width, max, width)."""
    folder = sysfs / "devices/pci0000:00"
    for address in chain:
        folder /= address
        folder.mkdir(parents=True, exist_ok=True)
        if address in links:
            speed, width, top, widest = links[address]
            put(folder / "current_link_speed", f"{speed} GT/s PCIe\n")
            put(folder / "current_link_width", f"{width}\n")
            put(folder / "max_link_speed", f"{top} GT/s PCIe\n")
            put(folder / "max_link_width", f"{widest}\n")
        entry = sysfs / "bus/pci/devices" / address
        entry.parent.mkdir(parents=True, exist_ok=True)
        if not entry.exists():
            entry.symlink_to(folder)


def drm(sysfs: Path, card: int, address: str, files: Mapping[str, str]) -> None:
    """A card below /sys/class/drm that belongs to a PCI function."""
    device = sysfs / "bus/pci/devices" / address
    if not device.exists():
        pci(sysfs, [address], {})
    for name, text in {"uevent": f"PCI_SLOT_NAME={address}\n", **files}.items():
        put(device / name, text + "\n")
    link = sysfs / f"class/drm/card{card}/device"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(device.resolve())


def lscpu(**fields: object) -> str:
    """Output of lscpu -J; a double underscore stands for a blank."""
    entries = [
        {"field": key.replace("__", " ") + ":", "data": str(value)} for key, value in fields.items()
    ]
    return json.dumps({"lscpu": entries})


def machine(folder: Path, answers: Mapping[str, Any] | None = None, **changes: Any) -> Machine:
    """A Linux machine of 64 GiB without devices, with tools that answer as told."""
    proc = folder / "proc"
    if not (proc / "meminfo").exists():
        size = changes.pop("memory", 64 * GIB)
        put(proc / "meminfo", f"MemTotal: {size // 1024} kB\nMemAvailable: {size // 2048} kB\n")
    changes.pop("memory", None)
    put(folder / "os-release", 'PRETTY_NAME="Some Linux 1"\n')
    (folder / "sys").mkdir(exist_ok=True)
    run: Callable[[Sequence[str]], ToolResult] = Tools(answers or {})
    defaults: dict[str, Any] = {
        "sysfs": folder / "sys",
        "proc": proc,
        "os_release": folder / "os-release",
        "run": run,
        "kernel": "6.1.0",
        "environment": {},
        "sleep": lambda _: None,
        "now": lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "loads": lambda: (0.0, 0.0, 0.0),
    }
    return Machine(**{**defaults, **changes})
