"""AMD devices: what ``rocm-smi`` prints in its three forms, and what amdgpu shows in sysfs.

``rocm-smi --showmeminfo all`` prints blocks (``GPU[0] : VRAM Total Memory (B): …``), a table or
JSON, in upper or lower case by release; a call for several pools does not always give them all.
sysfs needs no tool and no root, so it comes first, and rocm-smi only fills what it lacks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from harness.json_text import JsonError, parse
from harness.triage.link_paths import read_count, read_text
from harness.triage.links import full_address

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

AMD_VENDOR = "0x1002"

_BLOCK = re.compile(r"\s*GPU\[(\d{1,3})\]\s*:\s*(.+?)\s*:\s*(.*?)\s*\Z")
_CARD = re.compile(r"card(\d{1,3})\Z", re.IGNORECASE)
_MEMORY = re.compile(r"(vis_vram|vram|gtt) Total (Used )?Memory \(B\)\Z", re.IGNORECASE)
_UNKNOWN = {"", "n/a", "none", "unknown", "0x0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AmdDevice:
    """One device, by what names it: the card's number in rocm-smi or its PCI address."""

    index: int | None = None
    """Number in rocm-smi, which is HIP's unless devices are hidden."""
    address: str | None = None
    device_id: str | None = None
    """PCI id of the chip, ``0x1586``."""
    name: str | None = None
    vram_bytes: int | None = None
    """VRAM of a card, the carve-out of an APU."""
    vram_used_bytes: int | None = None
    gtt_bytes: int | None = None
    gtt_used_bytes: int | None = None
    vram_vendor: str | None = None
    """Maker of the memory chips; none on an APU, which has no chips of its own."""
    utilization_percent: float | None = None
    driver: str | None = None


def parse_rocm_smi(text: str) -> tuple[AmdDevice, ...]:
    """The devices in the output of ``rocm-smi``, in any of its forms; by number."""
    devices: dict[int, AmdDevice] = {}
    for index, key, value in _pairs(text):
        devices[index] = _with(devices.get(index, AmdDevice(index=index)), key, value)
    return tuple(devices[index] for index in sorted(devices))


def read_sysfs(sysfs: Path) -> tuple[AmdDevice, ...]:
    """The devices that amdgpu shows below ``/sys/class/drm``, by PCI address.

    Args:
        sysfs: ``/sys``, or a tree like it.
    """
    found: dict[str, AmdDevice] = {}
    try:
        cards = sorted((sysfs / "class/drm").iterdir())
    except OSError:
        return ()
    for card in cards:
        device = card / "device"
        if not _CARD.match(card.name) or read_text(device / "vendor") != AMD_VENDOR:
            continue
        address = _slot(device)
        found[address or card.name] = AmdDevice(
            address=address,
            device_id=read_text(device / "device"),
            name=_known(read_text(device / "product_name")),
            vram_bytes=read_count(device / "mem_info_vram_total"),
            vram_used_bytes=read_count(device / "mem_info_vram_used"),
            gtt_bytes=read_count(device / "mem_info_gtt_total"),
            gtt_used_bytes=read_count(device / "mem_info_gtt_used"),
            vram_vendor=_known(read_text(device / "mem_info_vram_vendor")),
            utilization_percent=_percent(read_text(device / "gpu_busy_percent")),
            driver=read_text(sysfs / "module/amdgpu/version"),
        )
    return tuple(found[key] for key in sorted(found))


def merge(shown: Iterable[AmdDevice], told: Iterable[AmdDevice]) -> tuple[AmdDevice, ...]:
    """Devices of sysfs with what rocm-smi adds, matched by address, else in order if as many."""
    shown, told = list(shown), list(told)
    if not shown:
        return tuple(told)
    by_address = {device.address: device for device in told if device.address}
    merged = []
    for position, device in enumerate(shown):
        other = by_address.get(device.address or "")
        if other is None and not by_address and len(shown) == len(told):
            other = told[position]
        merged.append(fill(device, other) if other else device)
    return tuple(merged)


def fill(device: AmdDevice, other: AmdDevice) -> AmdDevice:
    """The first device's facts, and the second's where it has none."""
    missing = {
        field.name: getattr(other, field.name)
        for field in fields(device)
        if getattr(device, field.name) is None
    }
    return replace(device, **missing)


def _pairs(text: str) -> Iterable[tuple[int, str, str]]:
    """Card number, key and value, from whichever form the text has."""
    start = text.find("{")
    if start >= 0 and (table := _json(text[start:])) is not None:
        for card, values in table.items():
            found = _CARD.match(card)
            if found and isinstance(values, dict):
                yield from ((int(found[1]), str(key), str(val)) for key, val in values.items())
        return
    columns: list[str] = []
    for line in text.splitlines():
        if found := _BLOCK.match(line):
            yield int(found[1]), found[2], found[3]
        elif re.match(r"\s*Device\s+Node\s", line):
            columns = re.split(r"\s{2,}|\t+", line.strip())
        elif columns and (cells := line.split()) and cells[0].isdecimal():
            if len(cells) == len(columns):
                for key, value in zip(columns[1:], cells[1:], strict=True):
                    yield int(cells[0]), key, value
        elif line.strip() and not line.startswith("="):
            columns = []


def _json(text: str) -> dict[str, Any] | None:
    try:
        found = parse(text, lax_numbers=True, more_follows=True)
    except JsonError:
        return None
    return found if isinstance(found, dict) else None


def _with(device: AmdDevice, key: str, value: str) -> AmdDevice:
    """The device with one more fact; keys that do not matter change nothing."""
    if found := _MEMORY.match(key):
        pool = found[1].lower()
        if pool == "vis_vram" or not value.isdecimal() or len(value) > 18:
            return device
        return _with_memory(device, pool, int(value), used=bool(found[2]))
    match key.lower():
        case "card series" | "product name" | "card model" | "device name":
            return replace(device, name=device.name or _product(value))
        case "pci bus":
            return replace(device, address=_address(value))
        case "gpu use (%)":
            return replace(device, utilization_percent=_percent(value))
        case "driver version":
            return replace(device, driver=_known(value))
        case _:
            return device


def _with_memory(device: AmdDevice, pool: str, size: int, *, used: bool) -> AmdDevice:
    match pool, used:
        case "vram", False:
            return replace(device, vram_bytes=size)
        case "vram", True:
            return replace(device, vram_used_bytes=size)
        case "gtt", False:
            return replace(device, gtt_bytes=size)
        case _:
            return replace(device, gtt_used_bytes=size)


def _known(text: str | None) -> str | None:
    return text if text is not None and text.lower() not in _UNKNOWN else None


def _product(text: str) -> str | None:
    """A name; a bare PCI id is none."""
    return None if re.fullmatch(r"0x[0-9a-f]+", text, re.IGNORECASE) else _known(text)


def _percent(text: str | None) -> float | None:
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,3})?)%?", text) if text else None
    return float(found[1]) if found else None


def _slot(device: Path) -> str | None:
    found = re.search(r"^PCI_SLOT_NAME=(\S+)$", read_text(device / "uevent") or "", re.MULTILINE)
    return _address(found[1]) if found else _address(device.resolve().name)


def _address(text: str) -> str | None:
    sound = re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", text, re.IGNORECASE)
    return full_address(text) if sound else None
