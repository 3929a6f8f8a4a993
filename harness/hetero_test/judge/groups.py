"""Residency groups: which runs may be compared, with what, and what ties them to the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from hetero_test.values.reading import Residency
from hetero_test.values.run import Run, RunState
from hetero_test.values.run_ids import anchor_id, home_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hetero_test.values.record import Manifest, Record

MOST_ANCHORED = 3
"""Anchors that are made; more of them means that the automatic size moves between repeats."""


class Bond(StrEnum):
    """What ties a group to the baseline."""

    BASELINE = "the baseline is in it"
    ANCHOR = "an anchor at the baseline's residency"
    HOME = "the baseline on that device alone"
    UNCLAIMED = "nothing: another kind of device, not claimed to be equal"
    EXCESS = "nothing: more groups than are anchored"
    NONE = "nothing: the baseline has no usable run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Comparable runs of one probe with one residency.

    Attributes:
        runs: in matrix order, then by repeat.
        first: the id of the first variant among them.
        bond: what ties the group to the baseline.
        tie: id of the extra runs that make the bond (``1f``, ``0-home-2``); empty without any.
    """

    residency: Residency
    runs: tuple[Run, ...]
    first: str
    bond: Bond
    tie: str

    @property
    def lead(self) -> Run:
        """The run that the others are compared with: the first of the first variant."""
        return self.runs[0]


# ---- runs that can be compared ------------------------------------------------------------


def baseline_id(manifest: Manifest) -> str:
    """The id of variant 0, which always comes first."""
    return manifest.variants[0].variant.id


def comparable(run: Run) -> bool:
    """Whether a run can stand in a comparison that passes: usable, at a known residency.

    An OK run without a single token is no evidence of anything, whoever stored it.
    """
    return run.usable and bool(run.stream) and run.residency.known


def strayed(run: Run, baseline: Run) -> bool:
    """Whether the log of a run that was to have the baseline's residency shows another one."""
    ran = run.usable or run.state.wrong_output
    return ran and run.residency.known and not run.residency.equals(baseline.residency)


def unreached(runs: Iterable[Run]) -> bool:
    """Whether an anchor's forced size is more than the placement can hold."""
    return any(run.state is RunState.NO_MEMORY for run in runs)


def of_rounds(record: Record, probe: str) -> tuple[Run, ...]:
    """The runs of the rounds of one probe, in matrix order, then by repeat."""
    return record.index.rounds.get(probe, ())


def first_baseline(record: Record, probe: str) -> Run | None:
    """The baseline's first usable run with a known residency."""
    base = baseline_id(record.manifest)
    mine = (run for run in of_rounds(record, probe) if run.variant == base and comparable(run))
    return next(mine, None)


def groups(record: Record, probe: str) -> tuple[Group, ...]:
    """All residency groups of one probe, in matrix order of their first variants."""
    claiming = {e.variant.id for e in record.manifest.variants if e.planned and e.variant.claims}
    members: dict[object, list[Run]] = {}
    for run in of_rounds(record, probe):
        if comparable(run) and run.variant in claiming:
            members.setdefault(run.residency.key, []).append(run)
    baseline = first_baseline(record, probe)
    anchored: set[str] = set()
    found = []
    for runs in members.values():
        bond, tie = _bond(record.manifest, runs, baseline)
        # Two groups with one first variant share their anchor.
        if bond is Bond.ANCHOR and tie not in anchored and len(anchored) == MOST_ANCHORED:
            bond, tie = Bond.EXCESS, ""
        if bond is Bond.ANCHOR:
            anchored.add(tie)
        first = runs[0]
        found.append(
            Group(
                residency=first.residency,
                runs=tuple(runs),
                first=first.variant,
                bond=bond,
                tie=tie,
            )
        )
    return tuple(found)


def _bond(manifest: Manifest, runs: list[Run], baseline: Run | None) -> tuple[Bond, str]:
    base, first = baseline_id(manifest), runs[0]
    if first.variant == base:  # it comes before every other in matrix order
        return Bond.BASELINE, ""
    if baseline is None:
        return Bond.NONE, ""
    if first.residency.main_kind == baseline.residency.main_kind:
        return Bond.ANCHOR, anchor_id(first.variant)
    moved_to, moved_from = first.reading.main.device, baseline.reading.main.device
    if manifest.on_device and moved_to is not None and moved_to != moved_from:
        return Bond.HOME, home_id(base, first.variant)
    return Bond.UNCLAIMED, ""
