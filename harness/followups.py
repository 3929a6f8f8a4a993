"""What to run next, given what has been run: rounds first, then what their logs ask for.

A pure function of the record, so a matrix that was interrupted goes on where it stopped, with
the same cells in the same order. Ids of extra runs: ``1f`` forces the baseline's residency on
variant 1; ``0s`` and ``1s`` share one smaller size; ``0-home-2`` is the baseline alone on the
device to which variant 2 moved; ``1p`` is pinned, ``1c`` confirms; ``0w`` asks after a hang
whether the rig still works.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.groups import Bond, first_baseline, groups, shared_id
from harness.judge import verdicts
from harness.masks import alone
from harness.model import Purpose, RunState
from harness.plan import base_flags, cell, rounds
from harness.recheck import Question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.engines.base import Engine
    from harness.groups import Group
    from harness.model import Cell, Run, Variant
    from harness.record import Manifest, Record

NOT_REPEATED = (RunState.TIMED_OUT, RunState.REFUSED, RunState.NO_MEMORY)
"""States after which the same command is not launched again."""
DEAD = (RunState.TIMED_OUT, RunState.CRASHED, RunState.NO_MEMORY, RunState.NO_STREAM)
"""States of the baseline after a hang that tell of a wedged rig."""


def next_cell(record: Record, engine: Engine) -> Cell | None:
    """The next cell to launch, or None when the matrix is complete or the rig is wedged."""
    if wedged(record) is not None:
        return None
    for source in (_after_hang, _warmups, _rounds, _ties, _rechecks):
        found = next(source(record, engine), None)
        if found is not None:
            return found
    return None


def wedged(record: Record) -> str | None:
    """Why going on would only produce failures, or None."""
    for run in record.rechecks:
        if run.purpose is Purpose.AFTER_HANG and run.state in DEAD:
            return f"after a hang the baseline was {run.state} too: {run.reason}"
    return None


def launches(manifest: Manifest) -> int:
    """How many launches are certain: warm-ups and rounds; extra runs depend on the logs."""
    planned = sum(entry.planned for entry in manifest.variants)
    sizing = planned if manifest.pinned.asked else 0
    return manifest.warmup + sizing + _round_count(manifest)


def _round_count(manifest: Manifest) -> int:
    planned = sum(entry.planned for entry in manifest.variants)
    return planned * len(manifest.probes) * manifest.repeats


def _baseline(manifest: Manifest) -> Variant:
    return manifest.variants[0].variant


def _variant(manifest: Manifest, name: str) -> Variant:
    return next(e.variant for e in manifest.variants if e.variant.id == name)


def _after(record: Record) -> int:
    """The order of the next extra run: behind the rounds, and behind those already made."""
    made = sum(run.purpose is not Purpose.ROUND for run in record.runs) + len(record.rechecks)
    return _round_count(record.manifest) + made


# ---- after a hang -------------------------------------------------------------------------


def _after_hang(record: Record, engine: Engine) -> Iterator[Cell]:
    """Once after every hang, to see whether the rig still runs the baseline."""
    everything = (*record.warmup, *record.runs, *record.rechecks)
    checks = sum(run.purpose is Purpose.AFTER_HANG for run in record.rechecks)
    hangs = sum(
        run.state is RunState.TIMED_OUT and run.purpose is not Purpose.AFTER_HANG
        for run in everything
    )
    if checks < hangs:
        manifest = record.manifest
        base = _baseline(manifest)
        key = (f"{base.id}w", manifest.probes[0].name, checks + 1)
        order = _after(record)
        yield cell(manifest, engine, base, key, order=order, purpose=Purpose.AFTER_HANG)


# ---- warm-up and rounds -------------------------------------------------------------------


def _warmups(record: Record, engine: Engine) -> Iterator[Cell]:
    """Warm-ups of the baseline; under ``--pinned`` one of each variant, to learn its size."""
    manifest = record.manifest
    done = {run.key for run in record.warmup}
    wanted = [(_baseline(manifest), repeat) for repeat in range(1, manifest.warmup + 1)]
    if manifest.pinned.asked:
        first = manifest.warmup + 1
        wanted += [(entry.variant, first) for entry in manifest.variants if entry.planned]
    for order, (variant, repeat) in enumerate(wanted):
        key = (variant.id, manifest.probes[0].name, repeat)
        if key not in done:
            yield cell(manifest, engine, variant, key, order=order, purpose=Purpose.WARMUP)


def _rounds(record: Record, engine: Engine) -> Iterator[Cell]:
    manifest = record.manifest
    done = {run.key for run in record.runs}
    given_up = {
        (run.variant, run.probe)
        for run in record.runs
        if run.purpose is Purpose.ROUND and run.state in NOT_REPEATED
    }
    for found in rounds(manifest, engine):
        if found.key in done or (found.variant, found.probe) in given_up:
            continue
        if manifest.pinned.asked:
            yield _fixed(found, manifest, engine, record.warmup)
        else:
            yield found


def _fixed(found: Cell, manifest: Manifest, engine: Engine, sizes: tuple[Run, ...]) -> Cell:
    """A pinned cell with the expert cache fixed at the smallest size that was seen."""
    sized = [run for run in sizes if run.usable and engine.size(run) is not None]
    if not sized:
        return found
    smallest = min(sized, key=lambda run: engine.size(run) or 0)
    base = engine.force(base_flags(manifest, pinned=True), smallest)
    if base is None:
        return found
    variant = _variant(manifest, found.of)
    return cell(
        manifest,
        engine,
        variant,
        found.key,
        order=found.order,
        purpose=found.purpose,
        pinned=True,
        base=base,
    )


# ---- ties to the baseline -----------------------------------------------------------------


def _ties(record: Record, engine: Engine) -> Iterator[Cell]:
    """Anchors, pairs with a shared size, and home baselines, group by group."""
    for probe in record.manifest.probes:
        baseline = first_baseline(record, probe.name)
        seen: set[str] = set()
        for group in groups(record, probe.name):
            if baseline is None or group.tie is None or group.tie in seen:
                continue
            seen.add(group.tie)
            if group.bond is Bond.ANCHOR:
                yield from _anchor(record, engine, group, baseline)
            elif group.bond is Bond.HOME:
                yield from _home(record, engine, group)


def _anchor(record: Record, engine: Engine, group: Group, baseline: Run) -> Iterator[Cell]:
    manifest = record.manifest
    base = engine.force(base_flags(manifest, pinned=manifest.pinned.asked), baseline)
    if base is None or group.tie is None:
        return
    runs = [r for r in record.runs if r.variant == group.tie and r.probe == baseline.probe]
    missed = [r for r in runs if r.usable and not r.residency.equals(baseline.residency)]
    if missed:
        yield from _shared(record, engine, group, baseline, missed[0])
        return
    variant = _variant(manifest, group.first)
    key = (group.tie, baseline.probe)
    yield from _repeats(record, engine, variant, key, base=base, purpose=Purpose.ANCHOR)


def _shared(
    record: Record, engine: Engine, group: Group, baseline: Run, got: Run
) -> Iterator[Cell]:
    """The baseline and the variant as a pair, with one size that both can hold."""
    manifest = record.manifest
    base = engine.share(base_flags(manifest, pinned=manifest.pinned.asked), baseline, got)
    if base is None:
        return
    for variant in (_baseline(manifest), _variant(manifest, group.first)):
        key = (shared_id(variant.id), baseline.probe)
        yield from _repeats(record, engine, variant, key, base=base, purpose=Purpose.SHARED)


def _home(record: Record, engine: Engine, group: Group) -> Iterator[Cell]:
    """The baseline alone on the device to which a variant moved, at the variant's residency."""
    manifest = record.manifest
    device = group.runs[0].context.get("main_device")
    base = engine.force(base_flags(manifest, pinned=manifest.pinned.asked), group.runs[0])
    if base is None or group.tie is None or device is None:
        return
    mask = alone(manifest.on_device, str(device), dict(manifest.env))
    key = (group.tie, group.runs[0].probe)
    variant = _baseline(manifest)
    for found in _repeats(record, engine, variant, key, base=base, purpose=Purpose.HOME):
        yield replace(found, env=(*found.env, *mask))


def _repeats(
    record: Record,
    engine: Engine,
    variant: Variant,
    key: tuple[str, str],
    *,
    base: tuple[str, ...],
    purpose: Purpose,
) -> Iterator[Cell]:
    """The repeats of an extra run that are still to be made."""
    mine = {run.repeat: run for run in record.runs if run.key[:2] == key}
    if any(run.state in NOT_REPEATED for run in mine.values()):
        return
    for repeat in range(1, record.manifest.repeats + 1):
        if repeat not in mine:
            yield cell(
                record.manifest,
                engine,
                variant,
                (*key, repeat),
                order=_after(record),
                purpose=purpose,
                base=base,
            )


# ---- rechecks -----------------------------------------------------------------------------


def _rechecks(record: Record, engine: Engine) -> Iterator[Cell]:
    """Further runs of both sides of a difference that may have another cause."""
    done = {run.key for run in record.rechecks}
    given_up = {run.variant for run in record.rechecks if run.state in NOT_REPEATED}
    for verdict in verdicts(record):
        if verdict.recheck is None:
            continue
        question = Question(verdict.recheck)
        repeats = record.manifest.repeats if question is Question.PINNED else 1
        names = [verdict.against[0]] if verdict.against is not None else []
        for name in dict.fromkeys((*names, verdict.variant)):
            run = next((r for r in record.runs if r.key[:2] == (name, verdict.probe)), None)
            extra = f"{name}{question}"
            if run is None or extra in given_up:
                continue
            for repeat in range(1, repeats + 1):
                if (extra, verdict.probe, repeat) not in done:
                    yield _again(record, engine, run, question, repeat)


def _again(record: Record, engine: Engine, run: Run, question: Question, repeat: int) -> Cell:
    """The command of a run once more, as it was or with the pinned recipe."""
    manifest = record.manifest
    found = cell(
        manifest,
        engine,
        _variant(manifest, run.of),
        (f"{run.variant}{question}", run.probe, repeat),
        order=_after(record),
        purpose=Purpose.RECHECK,
        pinned=question is Question.PINNED,
    )
    if question is Question.CONFIRM:
        return replace(found, flags=run.flags, env=run.env)
    first_round = tuple(r for r in record.runs if r.repeat == 1 and r.purpose is Purpose.ROUND)
    found = _fixed(found, manifest, engine, first_round)
    return replace(found, env=(*run.env, *manifest.pinned.env))
