"""What to run next, given what has been run: a record comes in, the next cell goes out.

In this order: a question after a hang whether the rig still works, warm-ups, rounds, then the
extra runs that logs ask for: those that tie residency groups to the baseline (anchors, pairs,
home baselines), and those that look at a difference again.

A pure function of the record, so a matrix that was interrupted goes on where it stopped, with
the same cells in the same order. Ids of extra runs: ``1f`` forces the baseline's residency on
variant 1; ``0s`` and ``1s`` share one smaller size; ``0-home-2`` is the baseline alone on the
device to which variant 2 went; ``1p`` is pinned, ``1c`` confirms; ``0w`` is the question after
a hang.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.engines.base import SizedCache
from hetero_test.judge.groups import (
    Bond,
    first_baseline,
    groups,
    strayed,
    unreached,
)
from hetero_test.judge.rules import comparisons
from hetero_test.plan.plan import (
    base_flags,
    cell,
    round_count,
    round_keys,
    rounds,
    sizing_count,
    variant_by_id,
)
from hetero_test.plan.visible_devices import alone
from hetero_test.values.record import Ending, Record
from hetero_test.values.run import Purpose, RunState
from hetero_test.values.run_ids import (
    Question,
    after_hang_id,
    recheck_id,
    shared_baseline_id,
    shared_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hetero_test.engines.base import Engine
    from hetero_test.judge.groups import Group
    from hetero_test.values.record import Manifest
    from hetero_test.values.run import Cell, Run
    from hetero_test.values.variant import Variant


def next_cell(record: Record, engine: Engine) -> Cell | None:
    """The next cell to launch, or None when the matrix is complete or the rig is wedged."""
    if wedged(record) is not None or no_baseline(record) is not None:
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


def no_baseline(record: Record) -> tuple[Ending, str] | None:
    """That nothing could be compared, since the baseline's first launch came to nothing; and why.

    Every variant adds to the baseline's flags, so each would fail as it did. One that ended
    badly after its first tokens has started.
    """
    base = record.manifest.variants[0].variant.id
    mine = [run for run in (*record.warmup, *record.runs) if run.variant == base]
    if not mine or any(run.usable for run in mine):
        return None
    first = min(mine, key=lambda run: run.cell.order)
    crashed = first.state is RunState.CRASHED and first.stream is None
    if not (first.state.never_started or crashed):
        return None
    refused = first.state is RunState.REFUSED
    quote = f": {first.quote}" if first.quote else ""
    why = f"variant {base} is {first.state}, {first.reason}{quote}"
    return (Ending.REFUSED_BASELINE if refused else Ending.NO_BASELINE), why


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
    hangs = sum(run.state.hung for run in everything)
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
    manifest, index = record.manifest, record.index
    done, given_up, hung = index.by_key, index.given_up, index.hung_before
    for order, variant, key in round_keys(manifest):
        if key in done or key[:2] in given_up or variant.id in hung:
            continue
        found = cell(manifest, engine, variant, key, order=order, purpose=Purpose.ROUND)
        yield _fixed(found, manifest, engine, record.warmup) if manifest.pinned.asked else found


def _fixed(found: Cell, manifest: Manifest, engine: Engine, runs: Iterable[Run]) -> Cell:
    """A pinned cell with the expert cache fixed at the smallest size that was seen."""
    if not isinstance(engine, SizedCache):
        return found
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
    given_up = {run.key[:2] for run in record.rechecks if run.state.not_repeated}
    for verdict in comparisons(record):
        if verdict.recheck is None:
            continue
        question = Question(verdict.recheck)
        sides = [] if verdict.against is None else [verdict.against[0]]
        for name in (*sides, verdict.variant):
            extra = recheck_id(name, question)
            made = record.index.by_command.get((name, verdict.probe))
            if (extra, verdict.probe) in given_up or made is None:
                continue
            run = made[0]
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
        return replace(found, flags=run.cell.flags, env=run.cell.env)
    first_round = [r for r in record.runs if r.repeat == 1 and r.purpose is Purpose.ROUND]
    found = _fixed(found, manifest, engine, first_round)
    return replace(found, env=(*run.cell.env, *manifest.pinned.env))


def tie_cells(record: Record, engine: Engine, *, order: int) -> Iterator[Cell]:
    """What is still to be run; all anchors of a prompt before its first pair.

    Args:
        record: what has been run.
        engine: forces sizes.
        order: of the next one.
    """
    for probe in record.manifest.probes:
        baseline = first_baseline(record, probe.name)
        if baseline is not None:
            ties = _Ties(record, engine, baseline, order)
            yield from ties.anchors()
            yield from ties.homes()
            yield from ties.pairs()


class _Ties:
    """The ties of one prompt's groups to its baseline."""

    def __init__(self, record: Record, engine: Engine, baseline: Run, order: int) -> None:
        self.order = order
        self.record = record
        self.manifest = record.manifest
        self.engine = engine
        self.sized = engine if isinstance(engine, SizedCache) else None
        self.baseline = baseline
        self.probe = baseline.probe
        self.flags = base_flags(self.manifest, pinned=self.manifest.pinned.asked)
        self.forced = None if self.sized is None else self.sized.force(self.flags, baseline)
        found = groups(record, self.probe)
        # Two groups with one first variant share their anchor.
        first = {group.tie: group for group in reversed(found) if group.bond is Bond.ANCHOR}
        self.anchored = tuple(group for group in found if first.get(group.tie) is group)
        self.home_groups = tuple(group for group in found if group.bond is Bond.HOME)

    def anchors(self) -> Iterator[Cell]:
        """Variants with the baseline's residency forced; one that strays is not gone on with."""
        if self.forced is None:
            return
        for group in self.anchored:
            if self._stray(group) is None:
                variant = variant_by_id(self.manifest, group.first)
                yield from self._repeats(group.tie, variant, self.forced, Purpose.ANCHOR)

    def pairs(self) -> Iterator[Cell]:
        """The baseline and a variant with one size that both can hold, for each failed anchor."""
        base = self.manifest.variants[0].variant
        sides: dict[Sequence[str], str] = {}
        for group in self.anchored:
            flags = self._shared(group)
            if flags is None:
                continue
            own = shared_baseline_id(base.id, group.first) if sides else shared_id(base.id)
            side = sides.setdefault(flags, own)
            yield from self._repeats(side, base, flags, Purpose.SHARED)
            variant = variant_by_id(self.manifest, group.first)
            yield from self._repeats(shared_id(variant.id), variant, flags, Purpose.SHARED)

    def homes(self) -> Iterator[Cell]:
        """The baseline alone on the device to which a variant moved, at the variant's residency."""
        for group in self.home_groups:
            flags: tuple[str, ...] | None = self.flags  # without a size, nothing is to be forced
            if self.sized is not None:
                flags = self.sized.force(self.flags, group.lead)
            if flags is None:
                continue
            device = group.lead.reading.main.device
            mask = alone(self.manifest.on_device, str(device), dict(self.manifest.env))
            base = self.manifest.variants[0].variant
            for found in self._repeats(group.tie, base, flags, Purpose.HOME):
                yield replace(found, env=(*found.env, *mask))

    def _shared(self, group: Group) -> tuple[str, ...] | None:
        """Flags with a size that both sides of a group's failed anchor can hold, if any."""
        if self.sized is None:
            return None
        if (stray := self._stray(group)) is not None:
            return self.sized.share(self.flags, self.baseline, stray)
        if not unreached(self._of(group.tie)):
            return None
        # The engine named no smaller size; what the variant opened by itself, it can hold.
        flags = self.sized.share(self.flags, self.baseline, group.lead)
        return None if flags == self.forced else flags

    def _stray(self, group: Group) -> Run | None:
        return next((run for run in self._of(group.tie) if strayed(run, self.baseline)), None)

    def _of(self, name: str) -> list[Run]:
        mine = self.record.index.by_command.get((name, self.probe), ())
        return sorted(mine, key=lambda run: run.repeat)

    def _repeats(
        self, name: str, variant: Variant, base: tuple[str, ...], purpose: Purpose
    ) -> Iterator[Cell]:
        """The repeats of an extra run that are still to be made."""
        made = {run.repeat: run.state for run in self._of(name)}
        if any(state.not_repeated for state in made.values()):
            return
        for repeat in range(1, self.manifest.repeats + 1):
            if repeat not in made:
                yield cell(
                    self.manifest,
                    self.engine,
                    variant,
                    (name, self.probe, repeat),
                    order=self.order,
                    purpose=purpose,
                    base=base,
                )
