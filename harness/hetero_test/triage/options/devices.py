"""Devices of a rig as the arithmetic takes them, and their order by speed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hetero_test.rig.facts import Workload
from hetero_test.triage.cost.memory import in_system_memory
from hetero_test.triage.cost.placement import DeviceSpeeds
from hetero_test.triage.cost.priors import PRIORS
from hetero_test.triage.cost.token import COPY_SIGMA, CPUS
from hetero_test.triage.learn.interval import Z80

if TYPE_CHECKING:
    from hetero_test.rig.facts import DeviceFacts, RigFacts
    from hetero_test.rig.sourced import Sourced
    from hetero_test.triage.options.question import TriageQuestion

COPY_LIMIT = 1.1
"""A copy test above this multiple of the data sheet is not believed."""


def device_of(facts: DeviceFacts, quantization: str | None = None) -> DeviceSpeeds:
    """A device's speeds as the arithmetic takes them: fitted, else measured, else specified."""
    effective = {}
    for work in Workload:
        fitted = facts.effective_gb_s(work, quantization)
        if fitted is not None:
            effective[work.value] = float(fitted.value)
    told, copied = facts.bandwidth_specified_gb_s, facts.bandwidth_measured_gb_s
    nominal = None if told is None else float(told.value)
    copy, doubt = (None, 0.0) if copied is None else _read_test(copied)
    if nominal is not None and copied is not None and copied.value > COPY_LIMIT * nominal:
        copy = None
    return DeviceSpeeds(
        id=facts.id,
        device_class=facts.device_class.value,
        nominal_gb_s=nominal,
        copy_gb_s=copy,
        copy_sigma=doubt,
        effective_gb_s=effective,
    )


def _read_test(fact: Sourced[float]) -> tuple[float, float]:
    """Middle of a measured bandwidth in the logarithm, GB/s, and its standard deviation there.

    Where the fact has ends they decide: a measurement beside other work has a high upper end.
    """
    if not fact.low or not fact.high:
        return float(fact.value), COPY_SIGMA
    doubt = math.log(fact.high / fact.low) / (2 * Z80)
    return math.sqrt(fact.low * fact.high), max(COPY_SIGMA, doubt)


def is_cpu(facts: DeviceFacts) -> bool:
    """Whether it is the host processor."""
    return facts.device_class.value in CPUS


def bandwidth_known(facts: DeviceFacts) -> bool:
    """Whether the speed of its memory is known in any way."""
    return bool(
        facts.bandwidth_specified_gb_s
        or facts.bandwidth_measured_gb_s
        or facts.bandwidth_effective
        or any(b.decode_tok_s for b in facts.baselines)
    )


def bandwidth_told(facts: DeviceFacts) -> bool:
    """Whether the speed of its memory is known by anything but a baseline."""
    return bool(
        facts.bandwidth_specified_gb_s or facts.bandwidth_measured_gb_s or facts.bandwidth_effective
    )


def counted_bandwidth(facts: DeviceFacts) -> Sourced[float] | None:
    """The fact that counts: fitted, else measured if believable, else specified."""
    if facts.bandwidth_effective:
        return facts.bandwidth_effective[0].gb_s
    told, read = facts.bandwidth_specified_gb_s, facts.bandwidth_measured_gb_s
    if read is not None and (told is None or read.value <= COPY_LIMIT * told.value):
        return read
    return told


def assumed_gb_s(facts: DeviceFacts) -> float | None:
    """Nominal GB/s that is assumed where no figure is known; None: one is known."""
    if bandwidth_told(facts):
        return None
    return PRIORS[f"nominal:{facts.device_class.value}"].middle


def nominal(facts: DeviceFacts) -> float:
    """GB/s by which devices are put in order; 0 where nothing is known."""
    told = facts.bandwidth_specified_gb_s or facts.bandwidth_measured_gb_s
    return 0.0 if told is None else float(told.value)


def accelerators(rig: RigFacts) -> list[DeviceFacts]:
    """All but the CPU, fastest memory first, discrete before integrated where equal."""
    found = [device for device in rig.devices if not is_cpu(device)]
    return sorted(found, key=lambda d: (-nominal(d), in_system_memory(d), d.id))


def host(rig: RigFacts) -> DeviceFacts | None:
    """The CPU; None: the rig has none listed."""
    return next((device for device in rig.devices if is_cpu(device)), None)


def link_gb_s(question: TriageQuestion, *devices: DeviceFacts) -> tuple[float, bool] | None:
    """GB/s of the narrowest link among devices, and whether a copy reached it; None: unknown.

    A link that the user gave counts as measured.
    """
    if question.link_gb_s is not None:
        return question.link_gb_s, True
    found: list[tuple[float, bool]] = []
    for device in devices:
        if device.link is None:
            continue
        if device.link.measured_gb_s is not None:
            found.append((float(device.link.measured_gb_s.value), True))
        elif device.link.gb_s is not None:
            found.append((float(device.link.gb_s.value), False))
    return min(found) if found else None


def peer_access(question: TriageQuestion, first: DeviceFacts, second: DeviceFacts) -> bool:
    """Whether one reaches the other's memory, as far as the rig says."""
    pair = question.rig.pair(first.id, second.id)
    return bool(pair and pair.peer_access and pair.peer_access.value)


def told_us(fact: Sourced[float] | None) -> float | None:
    """A fitted cost as a placement takes it, µs; None: by class."""
    return None if fact is None else float(fact.value)


def pair_sync_us(question: TriageQuestion, first: DeviceFacts, second: DeviceFacts) -> float | None:
    """What a split between two devices costs on this rig, µs; None: not fitted."""
    pair = question.rig.pair(first.id, second.id)
    return told_us((pair and pair.sync_us) or question.rig.sync_us)
