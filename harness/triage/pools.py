"""Is the memory of an AMD device a pool of its own? Only then does it add to the system's.

amdgpu names two sizes: ``mem_info_vram_total``, the chips of a card or the carve-out of an APU,
and ``mem_info_gtt_total``, a window onto system memory that every device has, cards as well.
A large window is the system's memory under the same controller. So the sizes alone do not
tell a card from an APU, except in the extreme; the chip's id and name do.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from harness.triage.rigfile import SYSTEM_POOL, DeviceClass
from harness.triage.sourced import Sourced, assumed, measured, specified

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.triage.amd import AmdDevice

GIB = 2**30
RAISED_GTT_SHARE = 0.8
"""The driver gives a window of half of the system's memory, older ones three quarters. More is
set by hand (``amdgpu.gttsize``, ``ttm.pages_limit``), which is of use on an APU alone."""
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
    """`SYSTEM_POOL` or the device's own id; None: nothing tells."""
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
        device: what sysfs and rocm-smi told.
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
    text = resources.files("harness.triage").joinpath("data/amd_apus.toml").read_text("utf-8")
    return {chip["id"]: chip["name"] for chip in tomllib.loads(text)["chip"]}


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.1f} GiB"
