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

from harness.comparisons import comparisons
from harness.groups import after_hang_id
from harness.model import Purpose, RunState
from harness.plan import base_flags, cell, round_count, rounds, sizing_count, variant_by_id
from harness.recheck import Question, recheck_id
from harness.record import Record
from harness.ties import NOT_REPEATED, tie_cells

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.engines.base import Engine
    from harness.model import Cell, Run
    from harness.record import Manifest


def next_cell(record: Record, engine: Engine) -> Cell | None:
    """The next cell to launch, or None when the matrix is complete or the rig is wedged."""
    if wedged(record) is not None:
        return None
    for source in (_after_hang, _warmups, _rounds, _ties, _rechecks):
        for found in source(record, engine):
            return found
    return None


def planned_cells(manifest: Manifest, engine: Engine) -> tuple[Cell, ...]:
    """Every launch that is certain, in order: warm-ups, then rounds."""
    return (*_warmups(Record(manifest=manifest), engine), *rounds(manifest, engine))


def wedged(record: Record) -> str | None:
    """Why going on would only produce failures, or None."""
    for run in record.rechecks:
        if run.purpose is Purpose.AFTER_HANG and not run.usable:
            return f"after a hang the baseline was {run.state} too: {run.reason}"
    return None


def launches(manifest: Manifest) -> int:
    """How many launches are certain: warm-ups and rounds; extra runs depend on the logs."""
    return manifest.warmup + sizing_count(manifest) + round_count(manifest)


def _behind(record: Record) -> int:
    """The order of the next extra run: behind all that was planned, and those already made."""
    made = sum(run.purpose is not Purpose.ROUND for run in record.runs) + len(record.rechecks)
    return launches(record.manifest) + made


def _after_hang(record: Record, engine: Engine) -> Iterator[Cell]:
    """The baseline once more after every hang, to see whether the rig still runs it."""
    everything = (*record.warmup, *record.runs, *record.rechecks)
    checks = sum(run.purpose is Purpose.AFTER_HANG for run in everything)
    hangs = sum(run.state is RunState.TIMED_OUT for run in everything)
    if checks < hangs:
        manifest = record.manifest
        base = manifest.variants[0].variant
        yield cell(
            manifest,
            engine,
            base,
            (after_hang_id(base.id), manifest.probes[0].name, checks + 1),
            order=_behind(record),
            purpose=Purpose.AFTER_HANG,
        )


# ---- warm-up and rounds -------------------------------------------------------------------


def _warmups(record: Record, engine: Engine) -> Iterator[Cell]:
    """Warm-ups of the baseline; under ``--pinned`` one of each variant, to learn its size."""
    manifest = record.manifest
    done = {run.key for run in record.warmup}
    base = manifest.variants[0].variant
    wanted = [(base, repeat) for repeat in range(1, manifest.warmup + 1)]
    if manifest.pinned.asked:
        sizing = manifest.warmup + 1
        wanted += [(entry.variant, sizing) for entry in manifest.variants if entry.planned]
    for order, (variant, repeat) in enumerate(wanted):
        key = (variant.id, manifest.probes[0].name, repeat)
        if key not in done:
            yield cell(manifest, engine, variant, key, order=order, purpose=Purpose.WARMUP)


def _rounds(record: Record, engine: Engine) -> Iterator[Cell]:
    manifest = record.manifest
    done = {run.key for run in record.runs}
    given_up = {run.key[:2] for run in record.runs if run.state in NOT_REPEATED}
    hung = {run.variant for run in record.warmup if run.state is RunState.TIMED_OUT}
    hung.discard(manifest.variants[0].variant.id)  # that it ran after the hang is known
    for found in rounds(manifest, engine):
        if found.key in done or found.key[:2] in given_up or found.variant in hung:
            continue
        yield _fixed(found, manifest, engine, record.warmup) if manifest.pinned.asked else found


def _fixed(found: Cell, manifest: Manifest, engine: Engine, runs: Iterable[Run]) -> Cell:
    """A pinned cell with the expert cache fixed at the smallest size that was seen."""
    sizes = [
        (size, run.key, run)
        for run in runs
        if run.usable and (size := engine.size(run)) is not None
    ]
    if not sizes:
        return found
    base = engine.force(base_flags(manifest, pinned=True), min(sizes)[2])
    variant = variant_by_id(manifest, found.of)
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


# ---- extra runs -----------------------------------------------------------------------------


def _ties(record: Record, engine: Engine) -> Iterator[Cell]:
    """What ties residency groups to the baseline."""
    return tie_cells(record, engine, order=_behind(record))


def _rechecks(record: Record, engine: Engine) -> Iterator[Cell]:
    """Further runs of both sides of a difference that may have another cause."""
    done = {run.key for run in record.rechecks}
    given_up = {run.key[:2] for run in record.rechecks if run.state in NOT_REPEATED}
    for verdict in comparisons(record):
        if verdict.recheck is None:
            continue
        question = Question(verdict.recheck)
        sides = [] if verdict.against is None else [verdict.against[0]]
        for name in (*sides, verdict.variant):
            extra = recheck_id(name, question)
            if (extra, verdict.probe) in given_up:
                continue
            run = next(run for run in record.runs if run.key[:2] == (name, verdict.probe))
            for repeat in range(1, record.manifest.repeats + 1):
                if (extra, verdict.probe, repeat) not in done:
                    yield _again(record, engine, run, question, repeat)


def _again(record: Record, engine: Engine, run: Run, question: Question, repeat: int) -> Cell:
    """The command of a run once more, as it was or with the pinned recipe."""
    manifest = record.manifest
    found = cell(
        manifest,
        engine,
        variant_by_id(manifest, run.of),
        (recheck_id(run.variant, question), run.probe, repeat),
        order=_behind(record),
        purpose=Purpose.RECHECK,
        pinned=question is Question.PINNED,
    )
    if question is Question.CONFIRM:
        return replace(found, flags=run.flags, env=run.env)
    first_round = [r for r in record.runs if r.repeat == 1 and r.purpose is Purpose.ROUND]
    found = _fixed(found, manifest, engine, first_round)
    return replace(found, env=(*run.env, *manifest.pinned.env))
