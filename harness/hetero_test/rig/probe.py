"""Everything that can be found out about this machine, as a rig.

Each probe may fail alone; then its facts are missing and a note says why. Nothing is guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.rig.facts import RigFacts
from hetero_test.rig.machine import Found, Machine, Sampling, join
from hetero_test.rig.probe_amd import probe_amd
from hetero_test.rig.probe_cpu import probe_host
from hetero_test.rig.probe_nvidia import probe_nvidia
from hetero_test.rig.probe_other import probe_apple, probe_other
from hetero_test.rig.sourced import measured

if TYPE_CHECKING:
    from hetero_test.engines.llama_cpp.loader_log import LoaderLog


def probe_rig(machine: Machine, sampling: Sampling, *, log: LoaderLog | None = None) -> RigFacts:
    """The machine as a rig.

    Args:
        machine: where to look.
        sampling: idle, or under the load that the user runs meanwhile.
        log: a loader's log, for what ggml says of unified memory.
    """
    host = probe_host(machine)
    total = host.memory_bytes.value if host.memory_bytes else None
    processor = host.cpu.name.value if host.cpu.name else None
    # The accelerators go first: the host's read test has run, and they are to be seen idle.
    parts = [
        probe_nvidia(machine, sampling, memory_total=total),
        probe_amd(machine, sampling, memory_total=total, processor=processor, uma=_uma(log)),
        probe_apple(host),
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


def _uma(log: LoaderLog | None) -> bool | None:
    """What ggml says of the one device it lists; of several the numbers cannot be matched."""
    if log is None or len({device for device, _ in log.uma}) != 1:
        return None
    return log.uma[0][1]
