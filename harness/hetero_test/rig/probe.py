"""Everything that can be found out about this machine, as a rig.

Each probe may fail alone; then its facts are missing and a note says why. Nothing is guessed.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from hetero_test.rig.amd import AMD_VENDOR
from hetero_test.rig.bandwidth import gpu_bandwidth
from hetero_test.rig.facts import SYSTEM_POOL, DeviceClass, DeviceFacts, RigFacts
from hetero_test.rig.links import full_address, read_text
from hetero_test.rig.machine import DeviceSample, Found, Machine, Sampling, join, watch
from hetero_test.rig.nvidia import import_nvml
from hetero_test.rig.probe_amd import probe_amd
from hetero_test.rig.probe_cpu import probe_host, read_bandwidth
from hetero_test.rig.probe_nvidia import probe_nvidia
from hetero_test.rig.sourced import assumed, measured, specified

if TYPE_CHECKING:
    from pathlib import Path

    from hetero_test.rig.machine import WatchedDevice


READ_TEST_PASSES = 7
"""Passes of the read test of the memory for ``hetero-test rig``."""


def this_machine(*, passes: int | None = READ_TEST_PASSES) -> Machine:
    """The machine that this program runs on.

    Args:
        passes: passes of the read test of the memory; None: the test is not run.
    """
    read_test = None if passes is None else partial(read_bandwidth, repeats=passes)
    return Machine(nvml=import_nvml(), read_test=read_test)


def probe_rig(machine: Machine, sampling: Sampling, *, uma: bool | None = None) -> RigFacts:
    """The machine as a rig.

    Args:
        machine: where to look.
        sampling: idle, or under the load that the user runs meanwhile.
        uma: whether the memory of the only GPU is the system's, by ggml; None: it did not say.
    """
    host = probe_host(machine)
    total = host.memory_bytes.value if host.memory_bytes else None
    processor = host.cpu.name.value if host.cpu.name else None
    # The host comes first: its read test is over when the accelerators are looked at, idle.
    parts = [
        probe_nvidia(machine, sampling, memory_total=total),
        probe_amd(machine, sampling, memory_total=total, processor=processor, uma=uma),
        probe_other(machine, sampling),
    ]
    found = join([*parts, Found(devices=(host.device,), notes=host.notes)])
    notes = list(found.notes)
    if len(found.devices) == 1:
        notes.insert(0, "no accelerator was found: the CPU is the only device")
    else:
        notes.append("the bandwidth of a GPU's own memory is not measured: that needs its engine")
    if machine.topology.trouble:
        notes.append(f"PCI ports have no names: {machine.topology.trouble}")
    return RigFacts(
        devices=found.devices,
        cpu=host.cpu,
        memory_bytes=host.memory_bytes,
        memory_available_bytes=host.memory_available_bytes,
        memory_limit_bytes=host.memory_limit_bytes,
        memory_configuration=host.memory_configuration,
        swap_bytes=host.swap_bytes,
        links=found.pairs,
        os=host.os,
        driver=measured(found.driver, "the drivers themselves") if found.driver else None,
        taken=machine.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
        notes=tuple(notes),
    )


NVIDIA_VENDOR = "0x10de"
MAKERS = {"0x8086": "Intel"}
"""Makers whose cards compute; server management chips and virtual screens do not."""


def probe_other(machine: Machine, sampling: Sampling) -> Found:
    """Cards that neither the NVIDIA nor the AMD probe looks at, by ``/sys/class/drm``."""
    cards = _cards(machine.sysfs)
    if not cards:
        return Found()
    ids = {f"Vulkan{i}": address for i, address in enumerate(sorted(cards))}

    def look() -> dict[str, DeviceSample]:
        paths = {device: machine.topology.path(address) for device, address in ids.items()}
        return {device: DeviceSample(path=path) for device, path in paths.items()}

    watched = watch(machine, sampling, look)
    devices = tuple(
        _other_facts(machine, device, address, cards[address], watched[device])
        for device, address in ids.items()
    )
    listed = ", ".join(f"{device} is {cards[address]} {address}" for device, address in ids.items())
    return Found(
        devices=devices,
        notes=(
            f"{listed}: the ids are guesses at the engine's numbers, and memory could not be read",
        ),
    )


def _cards(sysfs: Path) -> dict[str, str]:
    """Maker by PCI address."""
    found = {}
    try:
        folders = list((sysfs / "class/drm").iterdir())
    except OSError:
        return {}
    for folder in folders:
        vendor = read_text(folder / "device/vendor")
        if not re.fullmatch(r"card\d{1,3}", folder.name) or vendor in (AMD_VENDOR, NVIDIA_VENDOR):
            continue
        uevent = read_text(folder / "device/uevent") or ""
        slot = re.search(r"^PCI_SLOT_NAME=([0-9a-f:.]+)$", uevent, re.MULTILINE)
        if slot and vendor in MAKERS:
            found[full_address(slot[1])] = MAKERS[vendor]
    return found


def _other_facts(
    machine: Machine, device: str, address: str, maker: str, watched: WatchedDevice
) -> DeviceFacts:
    text = machine.topology.name(address) or maker
    product = re.search(r"\[([^\]/]*)\](?: \(rev \w+\))?\Z", text)
    name = f"{maker} {product[1]}" if product else text
    card = re.search(r"\b(?:Arc|DG[12]|Battlemage|Flex|Max Series)\b", text)
    bandwidth = gpu_bandwidth(name) if card else None
    told = f"lspci: {text}"
    return DeviceFacts(
        id=device,
        device_class=(
            specified(DeviceClass.DISCRETE_GPU, told)
            if card
            else assumed(DeviceClass.APU, f"{told} names no card")
        ),
        name=measured(name, "lspci"),
        address=measured(address, "sysfs"),
        bandwidth_specified_gb_s=bandwidth,
        pool=(specified(device, told) if card else assumed(SYSTEM_POOL, f"{told} names no card")),
        link=watched.link if card else None,
    )
