"""Extra runs that tie residency groups to the baseline: anchors, pairs, home baselines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.groups import (
    Bond,
    first_baseline,
    groups,
    shared_baseline_id,
    shared_id,
    strayed,
    unreached,
)
from harness.masks import alone
from harness.model import Purpose, RunState
from harness.plan import base_flags, cell, variant_by_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.engines.base import Engine
    from harness.groups import Group
    from harness.model import Cell, Run, Variant
    from harness.record import Record

NOT_REPEATED = (RunState.TIMED_OUT, RunState.REFUSED, RunState.NO_MEMORY)
"""States after which the same command is not launched again."""


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
        self.baseline = baseline
        self.probe = baseline.probe
        self.flags = base_flags(self.manifest, pinned=self.manifest.pinned.asked)
        self.forced = engine.force(self.flags, baseline)
        found = groups(record, self.probe)
        # Two groups with one first variant share their anchor.
        first = {group.tie: group for group in reversed(found) if group.bond is Bond.ANCHOR}
        self.anchored = tuple(group for group in found if first.get(group.tie) is group)
        self.moved = tuple(group for group in found if group.bond is Bond.HOME)

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
        for group in self.moved:
            flags = self.engine.force(self.flags, group.lead)
            device = group.lead.context.get("main_device")
            if flags is None:
                continue
            mask = alone(self.manifest.on_device, str(device), dict(self.manifest.env))
            base = self.manifest.variants[0].variant
            for found in self._repeats(group.tie, base, flags, Purpose.HOME):
                yield replace(found, env=(*found.env, *mask))

    def _shared(self, group: Group) -> tuple[str, ...] | None:
        """Flags with a size that both sides of a group's failed anchor can hold, if any."""
        if (stray := self._stray(group)) is not None:
            return self.engine.share(self.flags, self.baseline, stray)
        if not unreached(self._of(group.tie)):
            return None
        # The engine named no smaller size; what the variant opened by itself, it can hold.
        flags = self.engine.share(self.flags, self.baseline, group.lead)
        return None if flags == self.forced else flags

    def _stray(self, group: Group) -> Run | None:
        return next((run for run in self._of(group.tie) if strayed(run, self.baseline)), None)

    def _of(self, name: str) -> list[Run]:
        mine = [run for run in self.record.runs if run.key[:2] == (name, self.probe)]
        return sorted(mine, key=lambda run: run.repeat)

    def _repeats(
        self, name: str, variant: Variant, base: tuple[str, ...], purpose: Purpose
    ) -> Iterator[Cell]:
        """The repeats of an extra run that are still to be made."""
        made = {run.repeat: run.state for run in self._of(name)}
        if any(state in NOT_REPEATED for state in made.values()):
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
