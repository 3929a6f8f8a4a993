"""Bandwidths of devices that a rig file only names, from the table that is shipped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.triage.bandwidth import named_bandwidth, soldered_bandwidth
from harness.triage.rigfile import DeviceClass

if TYPE_CHECKING:
    from harness.triage.rigfile import DeviceFacts, RigFacts
    from harness.triage.sourced import Sourced


def with_named_bandwidths(rig: RigFacts) -> RigFacts:
    """The rig with the specified bandwidth of every device whose name the table knows.

    What the rig tells itself is left as it is.
    """
    devices = tuple(
        device
        if device.bandwidth_specified_gb_s is not None
        else replace(device, bandwidth_specified_gb_s=_by_name(device, rig))
        for device in rig.devices
    )
    return replace(rig, devices=devices)


def _by_name(device: DeviceFacts, rig: RigFacts) -> Sourced[float] | None:
    if device.device_class.value is DeviceClass.DISCRETE_GPU:
        if device.name is None:
            return None
        memory = None if device.memory_bytes is None else int(device.memory_bytes.value)
        return named_bandwidth(device.name.value, memory)
    # A chip with fixed memory is known by its processor, whose memory its GPU shares.
    cpu = None if rig.cpu is None else rig.cpu.name
    for name in (device.name, cpu):
        found = None if name is None else soldered_bandwidth(name.value)
        if found is not None:
            return found
    return None
