"""The host: its processor as a device, its memory and how fast it reads, and what else runs on it.

In the read test every thread sums its own slice of a large array of int64: one pass over memory
with no more arithmetic than the vector units do meanwhile, as decoding reads weights. One thread
cannot fill many channels, so all cores take part; numpy releases the interpreter lock.
"""

from __future__ import annotations

import re
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hetero_test.rig.bandwidth import soldered_bandwidth
from hetero_test.rig.cpu import (
    Processor,
    meminfo,
    memory_bandwidth,
    memory_limit,
    processor_class,
    read_modules,
    read_processor,
)
from hetero_test.rig.facts import SYSTEM_POOL, CpuFacts, DeviceFacts, Holder
from hetero_test.rig.links import read_text
from hetero_test.rig.sourced import Origin, Sourced, measured, measured_if_known

if TYPE_CHECKING:
    from collections.abc import Callable

    from hetero_test.rig.machine import Machine

HEAVY_SHARE = 0.05
"""Share of the memory from which a process is named."""
MOST_HEAVY = 8
BUSY = 0.25
"""Load per core from which other work ran beside a read test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What belongs to the machine as a whole."""

    device: DeviceFacts
    cpu: CpuFacts
    memory_bytes: Sourced[int] | None
    memory_available_bytes: Sourced[int] | None
    memory_limit_bytes: Sourced[int] | None
    memory_configuration: Sourced[str] | None
    swap_bytes: Sourced[int] | None
    os: Sourced[str]
    notes: tuple[str, ...]


def probe_host(machine: Machine) -> HostFacts:
    """The processor and its memory."""
    processor = read_processor(machine.run)
    cpu = processor.cpu
    modules, without = read_modules(machine.run)
    memory = meminfo(machine.proc)
    notes = [processor.trouble] if processor.trouble else []
    if without:
        notes.append(f"memory modules: {without}")
    total = measured_if_known(memory.get("MemTotal"), "/proc/meminfo")
    available = measured_if_known(memory.get("MemAvailable"), "/proc/meminfo")
    if total is None:
        notes.append("the size of the memory could not be read")
    limit = memory_limit(machine.proc, machine.sysfs)
    told = soldered_bandwidth(cpu.name.value) if cpu.name else None
    if told is None:
        told, remark = memory_bandwidth(modules, cpu)
        notes += [remark] if remark else []
    read, remark = _read(machine, processor, available, limit, told)
    notes += [remark] if remark else []
    return HostFacts(
        device=DeviceFacts(
            id="CPU",
            device_class=processor_class(cpu),
            name=cpu.name,
            memory_bytes=total,
            free_bytes=available,
            bandwidth_specified_gb_s=told,
            bandwidth_measured_gb_s=read,
            pool=measured(SYSTEM_POOL, "the processor's memory is the system's"),
            held_by=_heavy(machine, total),
        ),
        cpu=cpu,
        memory_bytes=total,
        memory_available_bytes=available,
        memory_limit_bytes=limit,
        memory_configuration=measured(str(modules), "dmidecode -t memory") if modules else None,
        swap_bytes=measured_if_known(memory.get("SwapTotal"), "/proc/meminfo"),
        os=_os(machine),
        notes=tuple(notes),
    )


def _read(
    machine: Machine,
    processor: Processor,
    available: Sourced[int] | None,
    limit: Sourced[int] | None,
    told: Sourced[float] | None,
) -> tuple[Sourced[float] | None, str | None]:
    """The read test, and a remark where it did not run or other work ran beside it."""
    if machine.read_test is None:
        return None, "the bandwidth of the system's memory was not measured (--no-read-test)"
    free = min(fact.value for fact in (available, limit) if fact) if available else None
    size = size_for(free, processor.cache_bytes) if free is not None else None
    if size is None:
        return None, "too little memory is free to measure its bandwidth"
    cores = processor.cpu.cores.value if processor.cpu.cores else 1
    load = machine.loads()[0]
    fact: Sourced[float] = machine.read_test(size, cores)
    if load > cores * BUSY:
        busy = f"beside other work (load {load:.1f} on {cores} cores)"
        return _widened(fact, 1 + load / cores, busy, told), (
            f"the memory's bandwidth was measured {busy} and may be too low"
        )
    return fact, None


def _widened(
    fact: Sourced[float], factor: float, why: str, told: Sourced[float] | None
) -> Sourced[float]:
    """What was measured beside other work, with its upper end raised.

    Other work takes cores in proportion to its load, so the end rises by that share, at most to
    the data sheet.
    """
    high = fact.value if fact.high is None else fact.high
    most = fact.value * factor if told is None else min(fact.value * factor, told.value)
    return replace(
        fact,
        source=f"{fact.source}, {why}: may be too low",
        low=fact.value if fact.low is None else fact.low,
        high=max(high, round(most, 2)),
    )


def _heavy(machine: Machine, total: Sourced[int] | None) -> tuple[Holder, ...] | None:
    """Processes with much of the memory, largest first; None where none can be read."""
    if total is None or not machine.proc.is_dir():
        return None
    from hetero_test.rig.holders import name_holders
    from hetero_test.rig.nvidia import Holding

    found = []
    for folder in machine.proc.iterdir():
        if not folder.name.isdecimal():
            continue
        status = read_text(folder / "status") or ""
        resident = re.search(r"^VmRSS:\s+(\d{1,12}) kB$", status, re.MULTILINE)
        if resident and int(resident[1]) * 1024 >= HEAVY_SHARE * total.value:
            found.append(Holding(pid=int(folder.name), memory_bytes=int(resident[1]) * 1024))
    found.sort(key=lambda holding: -(holding.memory_bytes or 0))
    return name_holders(found[:MOST_HEAVY], machine.proc, "VmRSS in /proc")


def _os(machine: Machine) -> Sourced[str]:
    text = read_text(machine.os_release) or ""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', text, re.MULTILINE)
    name = found[1] if found else "Linux"
    return measured(f"{name}, kernel {machine.kernel}".strip(), "os-release, uname")


GIB = 2**30
USUAL_BYTES = GIB // 2
MOST_BYTES = 4 * GIB
CACHES = 4
"""Size of the array in last-level caches: a smaller one would partly be read from the cache."""
SHARE_OF_FREE = 8
"""The array takes at most this fraction of the free memory, as 1/n."""


def size_for(available_bytes: int, cache_bytes: int = 0) -> int | None:
    """How much memory the test takes; None where too little is free for a result.

    Args:
        available_bytes: what is free.
        cache_bytes: size of the last level of caches, all of them together; 0: unknown.
    """
    least = CACHES * cache_bytes
    size = min(max(USUAL_BYTES, least), MOST_BYTES, available_bytes // SHARE_OF_FREE)
    return size if size >= max(least, USUAL_BYTES // 8) else None


def read_bandwidth(
    size_bytes: int,
    threads: int,
    *,
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Sourced[float]:
    """GB/s that the threads read together: median of the repeats, interval from their spread.

    Args:
        size_bytes: how much is read in one repeat; see `size_for`.
        threads: how many read at once, each its own part.
        repeats: how often, after one pass that is not counted.
        clock: seconds.
    """
    import numpy as np

    elements = size_bytes // 8 // threads * threads
    array = np.zeros(elements, dtype=np.int64)
    array += 1  # touch every page: untouched zeros share one page
    slices = np.split(array, threads)
    speeds = []
    with ThreadPoolExecutor(threads) as pool:
        for repeat in range(repeats + 1):
            start = clock()
            list(pool.map(np.add.reduce, slices))
            elapsed = clock() - start
            if repeat and elapsed > 0:
                speeds.append(array.nbytes / elapsed / 1e9)
    speeds.sort()
    tenth = len(speeds) // 10
    return Sourced(
        value=round(statistics.median(speeds), 2),
        origin=Origin.MEASURED,
        source=(
            f"read test: {array.nbytes / GIB:.2f} GiB, {threads} threads, "
            f"median of {len(speeds)} passes"
        ),
        low=min(round(speeds[tenth], 2), round(statistics.median(speeds), 2)),
        high=max(round(speeds[-1 - tenth], 2), round(statistics.median(speeds), 2)),
    )
