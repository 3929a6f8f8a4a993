"""What a run teaches about a rig: cost of a split and effective bandwidths, into the rig file.

The decode speed of every usable variant whose flags say a placement is a measurement. The
estimates are conditioned on all of them together, and what they then say of this rig is written
with its 80 % interval. Runs that drafted are left out, since their speed is not that of a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hetero_test.engines.llama_cpp.loader_log import scan_loader_log
from hetero_test.errors import UsageError
from hetero_test.formats.files import STORED, inside, open_file, read_bytes
from hetero_test.formats.json import JsonError
from hetero_test.rig.facts import EffectiveBandwidth, RigFacts, Workload
from hetero_test.rig.sourced import Origin, Sourced
from hetero_test.triage.answer import read_back
from hetero_test.triage.answer.compare_with_run import measured
from hetero_test.triage.cost.placement import Placement
from hetero_test.triage.cost.token import CPUS, log_ms, weight_gb_s
from hetero_test.triage.learn.fit import SPEED_NOISE
from hetero_test.triage.learn.interval import Z80
from hetero_test.triage.options.from_flags import placement_flags, placement_from_flags

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.cost.priors import Reader
    from hetero_test.triage.learn.estimates import Estimates
    from hetero_test.triage.options.question import TriageQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One variant that something is learned from."""

    variant: str
    tok_s: float
    splits: int | None
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A rig with what was learned from a run, and the variants that it was learned from."""

    rig: RigFacts
    lessons: tuple[Lesson, ...]
    passed_over: tuple[tuple[str, str], ...]
    """Variants that nothing is learned from, and why."""


def calibrate(question: TriageQuestion, estimates: Estimates, rundir: Path) -> Calibration:
    """Fit a rig to a run directory.

    Args:
        question: the model that was run, on the rig to be fitted, at the depth that was decoded.
        estimates: fitted to the points; not changed.
        rundir: holds ``run.json``.

    Raises:
        UsageError: there is no such run, or nothing is learned from any of its variants.
    """
    document = read_run(rundir)
    lessons, passed_over = _lessons(_unfitted(question), document, rundir)
    if not lessons:
        why = "; ".join(f"{variant}: {reason}" for variant, reason in passed_over) or "no variants"
        raise UsageError(
            f"{rundir}: no variant teaches anything of this rig ({why})",
            hint="a variant teaches when its flags place the model on devices of the rig file, "
            "it did not draft, and its decode speed is known",
        )
    own = estimates.copy()
    for lesson in lessons:
        goal = math.log(1e3 / lesson.tok_s)
        own.condition(partial(log_ms, lesson.placement), goal, SPEED_NOISE)
    source = f"hetero-test triage --calibrate {rundir.name}"
    devices = tuple(_device(device, lessons, own, source) for device in question.rig.devices)
    rig = _with_costs(replace(question.rig, devices=devices), lessons, own, source)
    return Calibration(rig=rig, lessons=tuple(lessons), passed_over=tuple(passed_over))


def read_run(rundir: Path) -> Mapping[str, Any]:
    """``run.json`` of a run directory.

    Raises:
        UsageError: it cannot be read, or is not such a document, with the place in it.
    """
    path = rundir / "run.json"
    try:
        return read_back.run(read_bytes(path, most=STORED))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except JsonError as error:
        raise UsageError(f"{path}: {error}") from error


def _unfitted(question: TriageQuestion) -> TriageQuestion:
    """The question without what was fitted before: it is fitted anew."""
    devices = tuple(replace(d, bandwidth_effective=()) for d in question.rig.devices)
    rig = replace(question.rig, devices=devices, sync_us=None, layer_us=None, cpu_layer_us=None)
    return replace(question, rig=rig)


def _lessons(
    question: TriageQuestion, document: Mapping[str, Any], rundir: Path
) -> tuple[list[Lesson], list[tuple[str, str]]]:
    sizes = question.sizes_of(question.model)
    common = [str(flag) for flag in document.get("model_flags") or ()]
    lessons, passed_over = [], []
    for variant in document.get("variants", []):
        name = str(variant.get("id"))
        speed = measured(document.get("runs", []), name, "decode_tok_s")
        flags = placement_flags([*common, *(str(flag) for flag in variant.get("flags") or ())])
        if speed is None:
            passed_over.append((name, "no decode speed"))
            continue
        if flags.drafts or _drafted(document, name):
            passed_over.append((name, "it drafted"))
            continue
        if not flags.says_something:
            passed_over.append((name, "its flags say no placement"))
            continue
        splits = _splits_of(document, name, rundir)
        placement = placement_from_flags(question, sizes, flags, splits)
        if placement is None:
            passed_over.append((name, "its flags name a device that the rig does not have"))
            continue
        lessons.append(Lesson(variant=name, tok_s=speed, splits=splits, placement=placement))
    return lessons, passed_over


def _drafted(document: Mapping[str, Any], variant: str) -> bool:
    return any(
        (run.get("speculation") or {}).get("rounds")
        for run in document.get("runs", [])
        if str(run.get("variant")) == variant
    )


def _splits_of(document: Mapping[str, Any], variant: str, rundir: Path) -> int | None:
    """Splits from the log of a variant's runs; None: no log has them."""
    for run in document.get("runs", []):
        if str(run.get("variant")) != variant:
            continue
        # Its own place, wherever the document says that it lies.
        folder = f"runs/V{variant}/{run.get('probe')}-{run.get('repeat')}"
        for stream in ("stderr", "stdout"):
            try:
                with open_file(inside(rundir, f"{folder}/{stream}"), most=STORED) as log:
                    found = scan_loader_log(log).decode_splits
            except OSError:
                continue
            if found is not None:
                return found
    return None


def _device(
    device: DeviceFacts, lessons: list[Lesson], estimates: Estimates, source: str
) -> DeviceFacts:
    """The device with effective bandwidths, one for each kind of work that was measured on it."""
    kept = {(e.workload, e.quantization): e for e in device.bandwidth_effective}
    for lesson in lessons:
        for part in lesson.placement.reads:
            if part.device != device.id or not part.gb:
                continue
            named = lesson.placement.device(device.id)
            rate, spread = estimates.predict(
                lambda read, named=named, part=part: math.log(weight_gb_s(named, part, read))  # type: ignore[misc]
            )
            workload = Workload.MOE if part.experts else Workload.DENSE
            fact = _fact(math.exp(rate), spread, source)
            kept[(workload, part.quantization)] = EffectiveBandwidth(
                workload=workload, gb_s=fact, quantization=part.quantization
            )
    return replace(device, bandwidth_effective=tuple(kept.values()))


def _with_costs(
    rig: RigFacts, lessons: list[Lesson], estimates: Estimates, source: str
) -> RigFacts:
    """The rig with the costs of splits and layers, where some lesson has them."""

    def fitted(name: str) -> Sourced[float]:
        value, spread = estimates.predict(partial(_log_of, name))
        return _fact(math.exp(value), spread, source)

    placements = [lesson.placement for lesson in lessons]
    mixture = any(placement.shape.mixture for placement in placements)
    split = any(placement.splits for placement in placements)
    on_cpu = any(_on_cpu(placement) for placement in placements)
    return replace(
        rig,
        sync_us=fitted("split") if split else rig.sync_us,
        layer_us=fitted("layer:moe" if mixture else "layer:dense"),
        cpu_layer_us=fitted("layer:cpu_experts") if on_cpu else rig.cpu_layer_us,
    )


def _on_cpu(placement: Placement) -> bool:
    return any(
        part.experts and placement.device(part.device).device_class in CPUS
        for part in placement.reads
    )


def _log_of(name: str, read: Reader) -> float:
    return math.log(read(name, at="rig"))


def _fact(value: float, spread: float, source: str) -> Sourced[float]:
    factor = math.exp(Z80 * spread)
    return Sourced(
        value=round(value, 4),
        origin=Origin.MEASURED,
        source=source,
        low=round(value / factor, 4),
        high=round(value * factor, 4),
    )
