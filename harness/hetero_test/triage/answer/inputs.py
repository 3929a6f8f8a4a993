"""Every number that the answer rests on, with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.rig.sourced import Origin
from hetero_test.triage.cost.priors import PRIORS
from hetero_test.triage.learn.interval import Z80
from hetero_test.triage.options.devices import assumed_gb_s

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hetero_test.rig.sourced import Sourced
    from hetero_test.triage.learn.estimates import Estimates
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import TriageQuestion

FITTED = "fitted to published points"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One number."""

    name: str
    value: str
    origin: Origin
    source: str


def inputs(question: TriageQuestion, sizes: ModelBytes, estimates: Estimates) -> list[Input]:
    """Of the model, the rig, the command line and the points, in this order."""
    return [
        *_of_model(question, sizes),
        *_of_rig(question),
        *_of_user(question),
        *_of_points(estimates),
    ]


def _of_model(question: TriageQuestion, sizes: ModelBytes) -> list[Input]:
    where = question.model.source.rsplit("/", 1)[-1]
    rows = [
        ("weights", f"{sizes.resident_bytes / 1e9:.2f} GB"),
        ("read for a token, without experts", f"{sizes.trunk_gb:.3f} GB"),
        ("routed experts read for a token", f"{sizes.experts_gb:.3f} GB"),
        (f"KV read at {question.read_depth} positions", f"{sizes.kv_gb:.3f} GB"),
        (f"KV of {question.slots} slots", f"{sizes.kv_bytes / 1e9:.2f} GB"),
        ("one hop", f"{sizes.hidden_bytes / 1024:.1f} KiB"),
    ]
    told = f"{where}, bytes {question.model.completeness}"
    return [
        Input(name=name, value=value, origin=Origin.MEASURED, source=told) for name, value in rows
    ]


def _of_rig(question: TriageQuestion) -> list[Input]:
    found = []
    for device in question.rig.devices:
        link = device.link
        facts: Iterable[tuple[str, Sourced[float] | None, str]] = (
            ("bandwidth, data sheet", device.bandwidth_specified_gb_s, "GB/s"),
            ("bandwidth, copy test", device.bandwidth_measured_gb_s, "GB/s"),
            *(
                (f"bandwidth decoding ({e.workload})", e.gb_s, "GB/s")
                for e in device.bandwidth_effective
            ),
            ("link, measured", None if link is None else link.measured_gb_s, "GB/s"),
            ("link", None if link is None else link.gb_s, "GB/s"),
        )
        found += [_row(f"{device.id}: {name}", fact, unit) for name, fact, unit in facts if fact]
        assumed = assumed_gb_s(device)
        if assumed is not None:
            prior = PRIORS[f"nominal:{device.device_class.value}"]
            found.append(
                Input(
                    name=f"{device.id}: bandwidth",
                    value=f"{assumed:.0f} GB/s (× or ÷ {1 + Z80 * prior.spread:.2f})",
                    origin=Origin.ASSUMED,
                    source=f"{prior.why}: the middle of its class",
                )
            )
        memory = device.free_bytes or device.memory_bytes
        if memory is not None:
            found.append(
                Input(
                    name=f"{device.id}: memory",
                    value=f"{float(memory.value) / 2**30:.1f} GiB",
                    origin=memory.origin,
                    source=memory.source,
                )
            )
    rig = question.rig
    costs = (
        ("cost of a graph split", rig.sync_us),
        ("cost of a layer beside its reads", rig.layer_us),
        ("cost of a layer's experts on the CPU", rig.cpu_layer_us),
    )
    found += [_row(name, fact, "µs") for name, fact in costs if fact is not None]
    return found


def _of_user(question: TriageQuestion) -> list[Input]:
    told = []
    for device, speeds in question.baselines.items():
        told.append((f"{device} alone", f"{speeds.decode_tok_s:g} tok/s", "--baseline"))
        if speeds.prefill_tok_s is not None:
            told.append((f"{device} prefill", f"{speeds.prefill_tok_s:g} tok/s", "--baseline"))
    if question.incumbent is not None:
        told.append(("incumbent", f"{question.incumbent.decode_tok_s:g} tok/s", "--incumbent"))
    if question.link_gb_s is not None:
        told.append(("link", f"{question.link_gb_s:g} GB/s", "--link"))
    if question.splits is not None:
        told.append(("graph splits", str(question.splits.count), question.splits.source))
    return [
        Input(name=name, value=value, origin=Origin.MEASURED, source=source)
        for name, value, source in told
    ]


def _of_points(estimates: Estimates) -> list[Input]:
    """Unknowns that were used, with the 80 % range that the points leave."""
    found = []
    for name in estimates.names:
        told = name.startswith(("told:", "drafting:", "device:", "nominal:"))
        if told or "@" in name or name not in estimates.looked_up:
            continue
        middle, doubt = estimates.known(name)
        moved = abs(doubt - PRIORS[name].sigma) > 1e-6
        found.append(
            Input(
                name=name,
                value=f"{middle:.3g} {PRIORS[name].unit} (× or ÷ {1 + 1.28 * doubt:.2f})",
                origin=Origin.ASSUMED,
                source=f"{FITTED}; {PRIORS[name].why}" if moved else PRIORS[name].why,
            )
        )
    return found


def _row(name: str, fact: Sourced[float], unit: str) -> Input:
    return Input(
        name=name,
        value=f"{float(fact.value):.4g} {unit}",
        origin=fact.origin,
        source=fact.source,
    )
