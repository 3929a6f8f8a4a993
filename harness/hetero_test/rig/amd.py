"""AMD devices: what amdgpu shows in sysfs, what ``rocm-smi`` adds, and whose memory they use.

sysfs needs no tool and no root, so it comes first, and rocm-smi only fills what it lacks. Asked
for JSON, rocm-smi prints JSON or, in some releases, blocks (``GPU[0] : VRAM Total Memory (B):
…``), in upper or lower case; a call for several pools does not always give them all.

Only memory that is a pool of its own adds to the system's. amdgpu names two sizes:
``mem_info_vram_total``, the chips of a card or the carve-out of an APU, and
``mem_info_gtt_total``, a window onto system memory that every device has, cards as well. So the
sizes alone seldom distinguish a card from an APU; the chip's id and name do.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hetero_test.formats.json import JsonError, parse
from hetero_test.rig.facts import SYSTEM_POOL, DeviceClass
from hetero_test.rig.links import full_address, read_count, read_text
from hetero_test.rig.sourced import Sourced, assumed, measured, specified

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
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
    vram_vendor: str | None = None
    """Maker of the memory chips; None on an APU, which has no chips of its own."""
    utilization_percent: float | None = None
    driver: str | None = None


def parse_rocm_smi(text: str) -> tuple[AmdDevice, ...]:
    """The devices in the output of ``rocm-smi``, JSON or blocks; by number."""
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
    """Card number, key and value, from either form."""
    start = text.find("{")
    if start >= 0 and (table := _json(text[start:])) is not None:
        for card, values in table.items():
            found = _CARD.match(card)
            if found and isinstance(values, dict):
                yield from ((int(found[1]), str(key), str(val)) for key, val in values.items())
        return
    for line in text.splitlines():
        if found := _BLOCK.match(line):
            yield int(found[1]), found[2], found[3]


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
            return device


def _known(text: str | None) -> str | None:
    return text if text is not None and text.lower() not in _UNKNOWN else None


def _product(text: str) -> str | None:
    """A name; a bare PCI id is not a name."""
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


GIB = 2**30
RAISED_GTT_SHARE = 0.8
"""The driver gives a window of half of the system's memory, older ones three quarters. A larger
one is set by hand (``amdgpu.gttsize``, ``ttm.pages_limit``), which is of use on an APU alone."""
_APU_NAME = re.compile(
    r"\b(?:Strix|Phoenix|Hawk Point|Krackan|Rembrandt|Cezanne|Renoir|Lucienne|Barcelo|Raphael|"
    r"Picasso|Raven|Mendocino|Van Gogh|Granite Ridge)\b|"
    r"Radeon(?:\(TM\))? (?:\d{3}M|80[456]0S|Vega \d{1,2})\b|MI300A\b",
    re.IGNORECASE,
)
_CARD_NAME = re.compile(
    r"\bRadeon(?:\(TM\))? (?:RX|Pro|AI Pro|VII)\b|\bInstinct\b|\bFirePro\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Whose memory it is, and what follows."""

    pool: Sourced[str] | None
    """`SYSTEM_POOL` or the device's own id; None: unknown."""
    device_class: Sourced[DeviceClass]
    memory_bytes: Sourced[int] | None
    notes: tuple[str, ...] = ()

    @property
    def shared(self) -> bool:
        """Whether it is known to be the system's memory."""
        return self.pool is not None and self.pool.value == SYSTEM_POOL


def amd_pool(
    device: AmdDevice, device_id: str, *, memory_total: int | None, uma: bool | None = None
) -> Pool:
    """Whose memory an AMD device uses.

    Args:
        device: what sysfs and rocm-smi say.
        device_id: its id in the rig.
        memory_total: bytes of system memory as the operating system sees them.
        uma: what ggml printed of the device (``uma: 1``), if anything.
    """
    shared = _shared(device, memory_total, uma)
    if shared is None:
        vram = device.vram_bytes
        return Pool(
            pool=None,
            device_class=assumed(DeviceClass.DISCRETE_GPU, "nothing tells a card from an APU"),
            memory_bytes=measured(vram, "mem_info_vram_total") if vram else None,
            notes=(
                (
                    f"{device_id}: nothing tells whether its memory is its own; "
                    "start a Vulkan build, which prints uma: 0 or 1"
                ),
            ),
        )
    source = shared.source
    kind = DeviceClass.APU if shared.value else DeviceClass.DISCRETE_GPU
    pool = SYSTEM_POOL if shared.value else device_id
    memory, notes = (
        _apu_memory(device, device_id, memory_total)
        if shared.value
        else _card_memory(device, device_id)
    )
    return Pool(
        pool=Sourced(value=pool, origin=shared.origin, source=source),
        device_class=Sourced(value=kind, origin=shared.origin, source=source),
        memory_bytes=memory,
        notes=notes,
    )


def _shared(device: AmdDevice, total: int | None, uma: bool | None) -> Sourced[bool] | None:
    """Whether the memory is the system's, by the best evidence there is."""
    if uma is not None:
        return measured(uma, f"ggml prints uma: {int(uma)}")
    chip = apu_chips().get((device.device_id or "").lower())
    if chip is not None:
        return specified(value=True, source=f"PCI id {device.device_id} is the APU {chip}")
    if device.name and _APU_NAME.search(device.name):
        return specified(value=True, source=f"{device.name!r} is an APU's name")
    if device.name and _CARD_NAME.search(device.name):
        return specified(value=False, source=f"{device.name!r} is a card's name")
    if device.vram_vendor:
        return measured(value=False, source=f"mem_info_vram_vendor names {device.vram_vendor}")
    return _shared_by_size(device.vram_bytes, device.gtt_bytes, total)


def _shared_by_size(vram: int | None, gtt: int | None, total: int | None) -> Sourced[bool] | None:
    """What the sizes alone suggest, where nothing names the device."""
    if vram is None or gtt is None or total is None:
        return None
    sizes = f"VRAM {_gib(vram)}, GTT {_gib(gtt)}, system {_gib(total)}"
    if vram == gtt:
        return assumed(value=False, source=f"GTT as large as VRAM, as drivers give cards ({sizes})")
    if gtt > RAISED_GTT_SHARE * total:
        return assumed(value=True, source=f"a GTT window that only APUs are given ({sizes})")
    if vram + gtt > total:
        return assumed(value=True, source=f"both are more than the system has ({sizes})")
    return None


def _apu_memory(
    device: AmdDevice, device_id: str, total: int | None
) -> tuple[Sourced[int] | None, tuple[str, ...]]:
    """What an APU can hold: the larger of carve-out and window, which do not add."""
    carve, gtt = device.vram_bytes, device.gtt_bytes
    if carve is None and gtt is None:
        return None, (f"{device_id}: neither carve-out nor GTT could be read",)
    window = min(gtt or 0, total) if total is not None else gtt or 0
    larger = max(carve or 0, window)
    which = "carve-out" if larger == (carve or 0) else "GTT window"
    notes = [
        (
            f"{device_id} shares the system's memory under one controller: a stage there adds "
            "compute, neither capacity nor bandwidth"
        )
    ]
    if carve is not None and total is not None:
        notes.append(
            f"{device_id}: {_gib(carve)} are carved out and {_gib(total)} are left to the system, "
            f"{_gib(carve + total)} in all; a larger carve-out in the BIOS would only take bytes "
            "from the CPU"
        )
    if gtt is not None:
        notes.append(
            f"{device_id}: the GTT window of {_gib(gtt)} is system memory, not added to it; "
            "raising amdgpu.gttsize would only let the GPU take more of what the CPU has"
        )
    return assumed(larger, f"the {which}, the larger of the two"), tuple(notes)


def _card_memory(device: AmdDevice, device_id: str) -> tuple[Sourced[int] | None, tuple[str, ...]]:
    vram, gtt = device.vram_bytes, device.gtt_bytes
    if vram is None:
        return None, (f"{device_id}: its memory could not be read",)
    notes: tuple[str, ...] = ()
    if vram == gtt:
        notes = (
            (
                f"{device_id}: the driver gives GTT the size of VRAM ({_gib(vram)}); GTT is system "
                "memory all the same and is not counted"
            ),
        )
    return measured(vram, "mem_info_vram_total"), notes


@cache
def apu_chips() -> Mapping[str, str]:
    """Names of AMD's APUs by PCI id, from ``data/amd_apus.toml``."""
    text = files("hetero_test.rig").joinpath("data/amd_apus.toml").read_text("utf-8")
    return {chip["id"]: chip["name"] for chip in tomllib.loads(text)["chip"]}


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.1f} GiB"
