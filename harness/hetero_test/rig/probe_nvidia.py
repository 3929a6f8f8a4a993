"""NVIDIA devices of this machine: NVML, else ``nvidia-smi``, with links by sysfs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.launch.query import ToolState
from hetero_test.rig import nvidia
from hetero_test.rig.bandwidth import gpu_bandwidth
from hetero_test.rig.facts import SYSTEM_POOL, DeviceClass, DeviceFacts, PairFacts
from hetero_test.rig.holders import name_holders
from hetero_test.rig.links import Port
from hetero_test.rig.machine import DeviceSample, Found, WatchedDevice, watch
from hetero_test.rig.nvidia import NvidiaDevice
from hetero_test.rig.sourced import assumed, measured, measured_if_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hetero_test.rig.facts import Holder
    from hetero_test.rig.links import LinkSpeed
    from hetero_test.rig.machine import Machine, Sampling

HIDDEN_BYTES = 2**30
"""With more than this in use and no process seen, the processes are hidden from this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What NVML or nvidia-smi said."""

    devices: tuple[NvidiaDevice, ...]
    source: str
    peer_access: dict[tuple[int, int], bool]
    topology: dict[tuple[int, int], str]
    notes: tuple[str, ...]


def probe_nvidia(machine: Machine, sampling: Sampling, *, memory_total: int | None) -> Found:
    """All NVIDIA devices, ids in the driver's order; a note says why there are none."""
    answer = _ask(machine)
    if not answer.devices:
        return Found(notes=answer.notes)
    ids = {_index(device, i): f"CUDA{i}" for i, device in enumerate(answer.devices)}
    watched = watch(machine, sampling, lambda: _look(machine, answer))
    facts = tuple(
        _facts(machine, answer, device, f"CUDA{i}", watched[f"CUDA{i}"], memory_total)
        for i, device in enumerate(answer.devices)
    )
    driver = next((device.driver for device in answer.devices if device.driver), None)
    return Found(
        devices=facts,
        pairs=_pairs(answer, ids),
        driver=f"NVIDIA {driver}" if driver else None,
        notes=(*_order_notes(machine, answer.devices), *_load_notes(watched, sampling)),
    )


def _ask(machine: Machine) -> _Answer:
    told = nvidia.query_nvml(machine.nvml)
    if told.devices:
        return _Answer(
            devices=told.devices,
            source="NVML",
            peer_access=told.peer_access or {},
            topology=told.topology or {},
            notes=(),
        )
    devices, result = nvidia.query(machine.run)
    if not devices:
        why = result.trouble if result.state is not ToolState.ANSWERED else "it names no device"
        trouble = told.trouble or "NVML names no device"
        return _Answer(
            devices=(),
            source="nvidia-smi",
            peer_access={},
            topology={},
            notes=(f"no NVIDIA device: {trouble}; nvidia-smi: {why}",),
        )
    peers = topology = ""
    if len(devices) > 1:
        topology = machine.run(("nvidia-smi", "topo", "-m")).stdout
        peers = machine.run(("nvidia-smi", "topo", "-p2p", "r")).stdout
    return _Answer(
        devices=devices,
        source="nvidia-smi --query-gpu",
        peer_access=nvidia.parse_peer_access(peers),
        topology=nvidia.parse_topology(topology),
        notes=(),
    )


def _look(machine: Machine, first: _Answer) -> Mapping[str, DeviceSample]:
    """Links and utilization now."""
    told = nvidia.query_nvml(machine.nvml).devices if first.source == "NVML" else ()
    now = told or nvidia.query(machine.run)[0] or first.devices
    looks = {}
    for i, device in enumerate(now[: len(first.devices)]):
        path = machine.topology.path(device.address) if device.address else ()
        source = "sysfs"
        if not any(port.now or port.capable for port in path) and (device.now or device.capable):
            # Without sysfs (WSL) or rights only the device's own port is known, by the driver.
            path = (_own_port(device, device.now, device.capable),)
            source = f"{first.source} (the device's own port alone)"
        looks[f"CUDA{i}"] = DeviceSample(
            path=path, utilization_percent=device.utilization_percent, source=source
        )
    return looks


def _own_port(device: NvidiaDevice, now: LinkSpeed | None, capable: LinkSpeed | None) -> Port:
    return Port(address=device.address or "the device", now=now, capable=capable)


def _facts(
    machine: Machine,
    answer: _Answer,
    device: NvidiaDevice,
    device_id: str,
    watched: WatchedDevice,
    memory_total: int | None,
) -> DeviceFacts:
    source = answer.source
    unified = device.unified
    where = f"{source} names no memory of its own"
    memory = measured_if_known(device.memory_bytes, source)
    if memory is None and not unified:
        untold = f"{source} does not tell its memory, and its name is not an integrated one's"
        device_class, pool = assumed(DeviceClass.DISCRETE_GPU, untold), assumed(device_id, untold)
    elif not unified:
        own = f"{source} names memory of its own"
        device_class, pool = measured(DeviceClass.DISCRETE_GPU, own), measured(device_id, own)
    else:
        device_class, pool = measured(DeviceClass.APU, where), measured(SYSTEM_POOL, where)
    if unified and memory_total is not None:
        memory = assumed(memory_total, f"{where}: it shares the system's")
    bandwidth = gpu_bandwidth(device.name, device.memory_bytes) if device.name else None
    return DeviceFacts(
        id=device_id,
        device_class=device_class,
        name=measured(device.name, source) if device.name else None,
        address=measured(device.address, source) if device.address else None,
        uuid=measured(device.uuid, source) if device.uuid else None,
        memory_bytes=memory,
        free_bytes=measured_if_known(device.free_bytes, source),
        bandwidth_specified_gb_s=bandwidth,
        pool=pool,
        link=None if unified else watched.link,
        utilization_percent=watched.utilization_percent,
        utilization_under_load_percent=watched.utilization_under_load_percent,
        power_limit_w=(
            measured(device.power_limit_w, source) if device.power_limit_w is not None else None
        ),
        held_by=_holders(machine, answer, device),
    )


def _holders(machine: Machine, answer: _Answer, device: NvidiaDevice) -> tuple[Holder, ...] | None:
    holdings, source = device.holders, answer.source
    if holdings is None and answer.source != "NVML":
        by_uuid = nvidia.query_holders(machine.run)
        holdings = None if by_uuid is None else by_uuid.get(device.uuid or "", ())
        source = "nvidia-smi --query-compute-apps"
    if holdings is None:
        return None
    used = (device.memory_bytes or 0) - (device.free_bytes or 0)
    if not holdings and device.free_bytes is not None and used > HIDDEN_BYTES:
        return None  # a container sees no processes of the host
    return name_holders(holdings, machine.proc, source)


def _pairs(answer: _Answer, ids: Mapping[int, str]) -> tuple[PairFacts, ...]:
    found = []
    for pair in sorted({*answer.peer_access, *answer.topology}):
        if pair[0] not in ids or pair[1] not in ids:
            continue
        access = answer.peer_access.get(pair)
        word = answer.topology.get(pair)
        found.append(
            PairFacts(
                a=ids[pair[0]],
                b=ids[pair[1]],
                peer_access=None if access is None else measured(access, f"{answer.source}, read"),
                topology=None if word is None else measured(word, answer.source),
            )
        )
    return tuple(found)


def _order_notes(machine: Machine, devices: tuple[NvidiaDevice, ...]) -> tuple[str, ...]:
    notes = []
    order = machine.environment.get("CUDA_DEVICE_ORDER")
    if len({device.name for device in devices}) > 1 and order != "PCI_BUS_ID":
        notes.append(
            "CUDA numbers unlike devices by speed and this file in PCI order: set "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID, or check the ids in the engine's log"
        )
    if mask := machine.environment.get("CUDA_VISIBLE_DEVICES"):
        notes.append(f"CUDA_VISIBLE_DEVICES={mask} is set: the engine numbers what it leaves")
    return tuple(notes)


def _load_notes(watched: Mapping[str, WatchedDevice], sampling: Sampling) -> tuple[str, ...]:
    if not sampling.under_load:
        return ()
    return tuple(
        f"{device}: no load was seen in {sampling.seconds:g} s, so its link counts as idle"
        for device, seen in watched.items()
        if not seen.loaded
    )


def _index(device: NvidiaDevice, position: int) -> int:
    return position if device.index is None else device.index
