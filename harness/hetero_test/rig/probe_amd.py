"""AMD devices of this machine: amdgpu's sysfs, and what ``rocm-smi`` adds."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.launch.query import ToolState
from hetero_test.rig import amd
from hetero_test.rig.amd import amd_pool
from hetero_test.rig.bandwidth import gpu_bandwidth, soldered_bandwidth
from hetero_test.rig.facts import DeviceFacts
from hetero_test.rig.holders import drm_holders
from hetero_test.rig.machine import DeviceSample, Found, watch
from hetero_test.rig.sourced import Sourced, measured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hetero_test.rig.amd import AmdDevice, Pool
    from hetero_test.rig.facts import Holder
    from hetero_test.rig.machine import Machine, Sampling, WatchedDevice

ROCM_SMI = (
    ("--showmeminfo", "vram", "--json"),
    ("--showmeminfo", "gtt", "--json"),
    ("--showproductname", "--showbus", "--showuse", "--showdriverversion", "--json"),
)
"""One call for each pool: a call for both does not always give both."""


def probe_amd(
    machine: Machine,
    sampling: Sampling,
    *,
    memory_total: int | None,
    processor: str | None,
    uma: bool | None = None,
) -> Found:
    """All AMD devices, ids as HIP numbers them; a note says why there are none.

    Args:
        machine: where to look.
        sampling: how often.
        memory_total: bytes of system memory as the operating system sees them.
        processor: name of the CPU, by which an APU's bandwidth is known.
        uma: what ggml printed of the one AMD device there is.
    """
    shown = amd.read_sysfs(machine.sysfs)
    told, trouble = _rocm_smi(machine)
    devices = amd.merge(shown, told)
    if not devices:
        return Found(notes=(f"no AMD device: no amdgpu card in sysfs; {trouble}",))
    devices = tuple(_named(machine, device) for device in devices)
    watched = watch(machine, sampling, lambda: _look(machine, devices))
    holders = drm_holders(machine.proc)
    facts: list[DeviceFacts] = []
    notes: list[str] = []
    for i, device in enumerate(devices):
        device_id = f"ROCm{i}"
        pool = amd_pool(
            device, device_id, memory_total=memory_total, uma=uma if len(devices) == 1 else None
        )
        held = None if holders is None else holders.get(device.address or "", ())
        facts.append(_facts(device, device_id, pool, watched[device_id], held, processor))
        notes += pool.notes
        if sampling.under_load and not watched[device_id].loaded:
            notes.append(
                f"{device_id}: no load was seen in {sampling.seconds:g} s, so its link is idle"
            )
    if trouble:
        notes.append(f"{trouble}: AMD devices are known by sysfs alone")
    notes.append("AMD devices are named as a ROCm build does; a Vulkan build has its own numbers")
    driver = next((device.driver for device in devices if device.driver), None)
    return Found(
        devices=tuple(facts), driver=f"amdgpu {driver}" if driver else None, notes=tuple(notes)
    )


def _rocm_smi(machine: Machine) -> tuple[tuple[amd.AmdDevice, ...], str | None]:
    """Devices by rocm-smi, and why it named none."""
    found: dict[int, AmdDevice] = {}
    trouble: str | None = None
    for arguments in ROCM_SMI:
        result = machine.run(("rocm-smi", *arguments))
        if result.state in (ToolState.MISSING, ToolState.TIMED_OUT):
            return (), result.trouble
        if result.state is ToolState.FAILED:
            trouble = result.trouble
        for device in amd.parse_rocm_smi(result.stdout):
            known = found.get(device.index or 0, device)
            found[device.index or 0] = amd.fill(known, device)
    devices = tuple(found[index] for index in sorted(found))
    return devices, trouble if not devices else None


def _named(machine: Machine, device: AmdDevice) -> AmdDevice:
    """With lspci's name where neither driver nor rocm-smi has one."""
    if device.name is not None or device.address is None:
        return device
    name = machine.topology.name(device.address)
    if name is None:
        return device
    # "… [AMD/ATI] Navi 21 [Radeon RX 6900 XT] (rev c0)": one product in the last brackets.
    found = re.search(r"\[((?:Radeon|Instinct)[^\]/]+)\](?: \(rev \w+\))?\Z", name)
    return replace(device, name=found[1].strip() if found else name)


def _look(machine: Machine, devices: tuple[AmdDevice, ...]) -> Mapping[str, DeviceSample]:
    busy = {d.address: d.utilization_percent for d in amd.read_sysfs(machine.sysfs)}
    looks = {}
    for i, device in enumerate(devices):
        path = machine.topology.path(device.address) if device.address else ()
        use = busy.get(device.address, device.utilization_percent)
        looks[f"ROCm{i}"] = DeviceSample(path=path, utilization_percent=use)
    return looks


def _facts(
    device: AmdDevice,
    device_id: str,
    pool: Pool,
    watched: WatchedDevice,
    held: tuple[Holder, ...] | None,
    processor: str | None,
) -> DeviceFacts:
    shared = pool.shared
    vram, used = device.vram_bytes, device.vram_used_bytes
    free = vram - used if vram is not None and used is not None and vram >= used else None
    bandwidth: Sourced[float] | None = None
    if shared and processor:
        bandwidth = soldered_bandwidth(processor)
    elif not shared and device.name:
        bandwidth = gpu_bandwidth(device.name, vram)
    return DeviceFacts(
        id=device_id,
        device_class=pool.device_class,
        name=measured(device.name, "driver, rocm-smi or lspci") if device.name else None,
        address=measured(device.address, "sysfs or rocm-smi") if device.address else None,
        memory_bytes=pool.memory_bytes,
        free_bytes=None if free is None or shared else measured(free, "mem_info_vram_used"),
        bandwidth_specified_gb_s=bandwidth,
        pool=pool.pool,
        carve_out_bytes=measured(vram, "mem_info_vram_total") if shared and vram else None,
        gtt_bytes=(
            measured(device.gtt_bytes, "mem_info_gtt_total")
            if device.gtt_bytes is not None
            else None
        ),
        # An APU reports 16 GT/s x16 for a link that it does not have.
        link=None if shared else watched.link,
        utilization_percent=watched.utilization_percent,
        utilization_under_load_percent=watched.utilization_under_load_percent,
        held_by=held,
    )
