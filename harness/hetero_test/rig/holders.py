"""Who holds memory on a device: processes with their names, sizes and systemd units.

A split occupies the fast device, so it matters what else that device serves. Processes of other
users cannot be read without root; then the holders are unknown, which does not mean none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hetero_test.rig.facts import Holder
from hetero_test.rig.links import full_address, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from hetero_test.rig.nvidia import Holding

DRM_MAJOR_PREFIX = "/dev/dri/"
MAX_DESCRIPTORS = 4096
"""Descriptors looked at for one process; a drawing or computing one opens its device early."""

_UNIT = re.compile(r"/([^/]+\.(?:service|scope))(?:/|\Z)")
_MEMORY = re.compile(r"drm-(?:total|resident|memory)-vram\d?:\s*(\d{1,15})\s*(KiB|MiB)?")


def name_holders(holdings: Iterable[Holding], proc: Path, source: str) -> tuple[Holder, ...]:
    """Processes that a driver listed, with their names and units."""
    return tuple(
        Holder(
            pid=holding.pid,
            name=_short(holding.name) or _process_name(proc, holding.pid) or "unknown",
            source=source,
            memory_bytes=holding.memory_bytes,
            unit=_unit(proc, holding.pid),
        )
        for holding in sorted(holdings, key=lambda holding: holding.pid)
    )


def drm_holders(proc: Path) -> Mapping[str, tuple[Holder, ...]] | None:
    """Processes by PCI address of the device, as the kernel's DRM drivers show them in fdinfo.

    Source: the kernel's ``Documentation/gpu/drm-usage-stats.rst``; amdgpu, i915 and xe fill it.

    Args:
        proc: ``/proc``, or a tree like it.

    Returns:
        None where no process could be read.
    """
    try:
        folders = [folder for folder in proc.iterdir() if folder.name.isdecimal()]
    except OSError:
        return None
    found: dict[str, list[Holder]] = {}
    looked = False
    for folder in sorted(folders, key=lambda folder: int(folder.name)):
        used = _drm_use(folder)
        looked = looked or used is not None
        for address, size in (used or {}).items():
            pid = int(folder.name)
            holder = Holder(
                pid=pid,
                name=_process_name(proc, pid) or "unknown",
                source=f"fdinfo of {folder.name}",
                memory_bytes=size,
                unit=_unit(proc, pid),
            )
            found.setdefault(address, []).append(holder)
    return {address: tuple(holders) for address, holders in found.items()} if looked else None


def _drm_use(folder: Path) -> dict[str, int | None] | None:
    """Bytes of VRAM by device of one process; None where it may not be read."""
    try:
        descriptors = sorted((folder / "fd").iterdir())[:MAX_DESCRIPTORS]
    except OSError:
        return None
    clients: dict[tuple[str, str], int | None] = {}
    for descriptor in descriptors:
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue
        if not target.startswith(DRM_MAJOR_PREFIX):
            continue
        text = read_text(folder / "fdinfo" / descriptor.name) or ""
        address = re.search(r"^drm-pdev:\s*(\S+)", text, re.MULTILINE)
        if address is None or not re.fullmatch(r"[0-9a-f:]+\.[0-7]", address[1]):
            continue
        client = re.search(r"^drm-client-id:\s*(\d+)", text, re.MULTILINE)
        memory = _MEMORY.search(text)
        size = _bytes(memory[1], memory[2]) if memory else None
        # Several descriptors may be one client, whose memory is shown in each.
        clients[full_address(address[1]), client[1] if client else descriptor.name] = size
    sums: dict[str, int | None] = {}
    for (device, _), size in clients.items():
        sums[device] = size if sums.get(device) is None else (sums[device] or 0) + (size or 0)
    return sums


def _bytes(number: str, unit: str | None) -> int:
    return int(number) * {None: 1, "KiB": 2**10, "MiB": 2**20}[unit]


def _process_name(proc: Path, pid: int) -> str | None:
    command = read_text(proc / str(pid) / "cmdline")
    program = command.split("\0")[0] if command else read_text(proc / str(pid) / "comm")
    return _short(program) if program else None


def _short(program: str) -> str:
    """The program without its folder: the folder may name a user."""
    return program.rsplit("/", 1)[-1].rsplit("\\", 1)[-1].strip()[:64]


def _unit(proc: Path, pid: int) -> str | None:
    """The systemd service that the process belongs to; a user's session is not a service."""
    units = _UNIT.findall(read_text(proc / str(pid) / "cgroup") or "")
    services = [unit for unit in units if unit.endswith(".service") and "user@" not in unit]
    return services[-1] if services else None
