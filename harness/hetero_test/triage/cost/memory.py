"""Whether a placement fits: what fills each device, against what is free there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from hetero_test.rig.facts import SYSTEM_POOL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hetero_test.rig.facts import DeviceFacts, RigFacts
    from hetero_test.triage.model.facts import ModelFacts

CONTEXT_BYTES = 400 * 2**20
"""What a driver's context and fragmentation take on a card: 300 to 500 MiB."""
TOLERANCE_BYTES = 2**20
"""Less than this is not missing: sums of shares are rounded."""
HOST_SPARE_BYTES = 2 * 2**30
"""What a host needs beside the model."""


class Fit(StrEnum):
    """Whether it fits."""

    YES = "fits"
    NO = "does not fit"
    UNKNOWN = "memory not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """What a placement puts on one device, bytes."""

    device: str
    pool: str
    parts: Mapping[str, float]
    capacity: float | None
    """Free where that is known, else all of it; None: unknown."""

    @property
    def used(self) -> float:
        """Sum of the parts."""
        return sum(self.parts.values())

    @property
    def missing(self) -> float:
        """Bytes that are missing; 0 where it fits or the capacity is unknown."""
        lacks = 0.0 if self.capacity is None else self.used - self.capacity
        return lacks if lacks > TOLERANCE_BYTES else 0.0


def compute_buffer_bytes(model: ModelFacts, ubatch: int) -> float:
    """Estimate of a compute buffer: 4 × batch × max(vocabulary, 20 × n_embd) + 64 MiB.

    The logits of a batch in f32 are what reserves most of it in llama.cpp (its log's
    ``compute buffer size``).
    """
    return 4.0 * ubatch * max(model.vocab or 0, 20 * model.n_embd) + 64 * 2**20


def capacity(device: DeviceFacts, rig: RigFacts) -> float | None:
    """Bytes that a placement can use on a device: what is free, less what the host needs itself."""
    told = device.free_bytes or device.memory_bytes
    own = None if told is None else float(told.value)
    if not in_system_memory(device):
        return own
    host = rig.memory_available_bytes or rig.memory_bytes
    limits = [own] if own is not None and device.id != "CPU" else []
    if host is not None:
        limits.append(float(host.value) - HOST_SPARE_BYTES)
    if rig.memory_limit_bytes is not None:
        limits.append(float(rig.memory_limit_bytes.value) - HOST_SPARE_BYTES)
    if not limits:
        return own
    return max(0.0, min(limits))


def in_system_memory(device: DeviceFacts) -> bool:
    """Whether its memory is the host's; a CPU's is, and an integrated GPU's."""
    return device.id == "CPU" or device.own_pool is False


def fill(device: DeviceFacts, rig: RigFacts, parts: Mapping[str, float]) -> Fill:
    """What a placement puts on a device; parts of zero bytes are left out."""
    return Fill(
        device=device.id,
        pool=SYSTEM_POOL if in_system_memory(device) else device.id,
        parts={name: size for name, size in parts.items() if size},
        capacity=capacity(device, rig),
    )


def fits(fills: Iterable[Fill]) -> Fit:
    """Whether all of it fits; devices of one pool share what is free there."""
    pools: dict[str, list[Fill]] = defaultdict(list)
    for one in fills:
        pools[one.pool].append(one)
    known = True
    for listed in pools.values():
        if any(one.missing for one in listed):
            return Fit.NO
        limits = [one.capacity for one in listed if one.capacity is not None]
        if not limits:
            known = False
        elif sum(one.used for one in listed) > max(limits) + TOLERANCE_BYTES:
            return Fit.NO
    return Fit.YES if known else Fit.UNKNOWN
