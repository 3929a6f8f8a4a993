"""Hazards that a rig brings: links, memory pools, other work, devices never measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.rig.facts import LinkState
from hetero_test.triage.answer.hazard import Hazard, absent, not_checked, present
from hetero_test.triage.cost.memory import in_system_memory
from hetero_test.triage.options.devices import accelerators, is_cpu

if TYPE_CHECKING:
    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.options.question import TriageQuestion

GIB = 2**30
BUSY_PERCENT = 5.0


def rig_hazards(question: TriageQuestion) -> list[Hazard]:
    """One check per device and kind, in the order of the devices."""
    found = [_alone(question, device) for device in question.rig.devices]
    for device in accelerators(question.rig):
        found.append(_other_work(device))
        found.append(_services(device))
        found.append(_pool(question, device))
        if not in_system_memory(device):
            found += [_link_state(device), _link_width(device)]
        found.append(_memory_told(device))
    return [*found, *_peers(question)]


def _alone(question: TriageQuestion, device: DeviceFacts) -> Hazard:
    name = f"{device.id} alone has not been measured"
    if device.id in question.baselines:
        speed = question.baselines[device.id].decode_tok_s
        return absent(name, f"--baseline says {speed:g} tok/s")
    for baseline in device.baselines:
        if baseline.decode_tok_s is not None:
            return absent(name, f"{baseline.model}: {baseline.decode_tok_s.value:g} tok/s")
    return present(name, "no baseline is given", f"--baseline {device.id}=TOK_S")


def _other_work(device: DeviceFacts) -> Hazard:
    name = f"{device.id} serves something else"
    if device.held_by:
        who = ", ".join(f"{holder.name} ({holder.pid})" for holder in device.held_by[:5])
        return present(name, who, "a split takes the device whole: see what it served")
    busy = device.utilization_percent
    if busy is not None and float(busy.value) > BUSY_PERCENT:
        return present(name, f"{busy.value:g} % busy without a load of ours")
    if device.held_by is None:
        return not_checked(name, "the processes on it could not be seen")
    return absent(name, "no process holds memory on it")


def _services(device: DeviceFacts) -> Hazard:
    name = f"a service would start again on {device.id}"
    if device.held_by is None:
        return not_checked(name, "the processes on it could not be seen")
    units = sorted({holder.unit for holder in device.held_by if holder.unit})
    if units:
        return present(name, ", ".join(units), f"systemctl stop and mask {' '.join(units)}")
    return absent(name, "no process of a unit holds it")


def _pool(question: TriageQuestion, device: DeviceFacts) -> Hazard:
    name = f"{device.id} has no memory of its own"
    if device.pool is None:
        return not_checked(name, "whether its memory is the host's is not known")
    if not in_system_memory(device):
        return absent(name, f"its pool is its own ({device.pool.source})")
    parts = []
    if device.carve_out_bytes is not None:
        parts.append(f"carve-out {float(device.carve_out_bytes.value) / GIB:.1f} GiB")
    if device.gtt_bytes is not None:
        parts.append(f"GTT {float(device.gtt_bytes.value) / GIB:.1f} GiB, an aperture")
    if question.rig.memory_bytes is not None:
        parts.append(f"system {float(question.rig.memory_bytes.value) / GIB:.1f} GiB")
    return present(
        name,
        "; ".join(parts) or "its pool is the system's",
        "a stage there adds compute, neither capacity nor bandwidth; fencing more of it off "
        "only takes bytes from the CPU",
    )


def _link_state(device: DeviceFacts) -> Hazard:
    name = f"the link of {device.id} was read while idle"
    if device.link is None or device.link.state is None:
        return not_checked(name, "hetero-test rig --under-load reads it under load")
    if device.link.state.value is LinkState.IDLE and device.link.measured_gb_s is None:
        return present(name, "links downshift when idle", "hetero-test rig --under-load")
    return absent(name, "read under load or measured by a copy")


def _link_width(device: DeviceFacts) -> Hazard:
    name = f"the link of {device.id} is narrower than the card"
    link = device.link
    if link is None or link.width is None or link.gen is None:
        return not_checked(name, "generation and width of the path are not known")
    told = f"Gen{link.gen.value} x{link.width.value}"
    if link.bottleneck is not None:
        told += f" at {link.bottleneck.value}"
    wide = link.max_width
    if wide is not None and link.width.value < wide.value:
        return present(name, f"{told}, the path could do x{wide.value}")
    return absent(name, f"{told}, the minimum over {len(link.path) or 1} ports")


def _memory_told(device: DeviceFacts) -> Hazard:
    name = f"{device.id} does not tell its memory"
    told = device.free_bytes or device.memory_bytes
    if told is None or not told.value:
        return present(name, "memory is N/A or 0", "give memory_bytes in the rig file")
    return absent(name, f"{float(told.value) / GIB:.1f} GiB ({told.source})")


def _peers(question: TriageQuestion) -> list[Hazard]:
    cards = [d for d in accelerators(question.rig) if not in_system_memory(d) and not is_cpu(d)]
    found = []
    for index, first in enumerate(cards):
        for second in cards[index + 1 :]:
            name = f"{first.id} and {second.id} have no peer access"
            pair = question.rig.pair(first.id, second.id)
            if pair is None or pair.peer_access is None:
                found.append(not_checked(name, "p2pBandwidthLatencyTest shows it"))
            elif pair.peer_access.value:
                found.append(absent(name, pair.peer_access.source))
            else:
                found.append(
                    present(name, pair.peer_access.source, "each copy goes through the host")
                )
    return found
