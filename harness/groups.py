"""Residency groups: which runs may be compared, with what, and what ties them to the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.model import Purpose, Residency, Run

if TYPE_CHECKING:
    from harness.record import Manifest, Record

MOST_ANCHORED = 3
"""Groups that get an anchor; more of them means that the automatic size moves between repeats."""


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
    """Usable runs of one probe with one known residency.

    Attributes:
        runs: in matrix order, then by repeat.
        first: the id of the first variant among them.
        bond: what ties the group to the baseline.
        tie: id of the extra runs that make the bond (``1f``, ``0h2``), if any.
    """

    residency: Residency
    runs: tuple[Run, ...]
    first: str
    bond: Bond
    tie: str | None

    def runs_of(self, variant: str) -> tuple[Run, ...]:
        """The members that are runs of one variant."""
        return tuple(run for run in self.runs if run.variant == variant)


def anchor_id(variant: str) -> str:
    """Id of the extra runs that force the baseline's residency on a variant."""
    return f"{variant}f"


def shared_id(variant: str) -> str:
    """Id of the extra runs that share one smaller size with the baseline."""
    return f"{variant}s"


def home_id(baseline: str, variant: str) -> str:
    """Id of the baseline's runs on the device to which a variant moved the main model."""
    return f"{baseline}-home-{variant}"


def baseline_id(manifest: Manifest) -> str:
    """The id of variant 0, which always comes first."""
    return manifest.variants[0].variant.id


def first_baseline(record: Record, probe: str) -> Run | None:
    """The baseline's first usable run with a known residency."""
    base = baseline_id(record.manifest)
    mine = [
        run
        for run in record.runs
        if run.variant == base and run.probe == probe and run.usable and run.residency.known
    ]
    return min(mine, key=lambda run: run.repeat, default=None)


def groups(record: Record, probe: str) -> tuple[Group, ...]:
    """All residency groups of one probe, in matrix order of their first variants."""
    rank = {entry.variant.id: place for place, entry in enumerate(record.manifest.variants)}
    claiming = {entry.variant.id for entry in record.manifest.variants if entry.variant.claims}
    usable = sorted(
        (
            run
            for run in record.runs
            if run.purpose is Purpose.ROUND
            and run.probe == probe
            and run.usable
            and run.residency.known
            and run.variant in claiming
        ),
        key=lambda run: (rank[run.variant], run.repeat),
    )
    members: dict[object, list[Run]] = {}
    for run in usable:
        members.setdefault(run.residency.key, []).append(run)
    baseline = first_baseline(record, probe)
    anchored: set[str] = set()
    return tuple(
        _group(record.manifest, tuple(runs), baseline, anchored) for runs in members.values()
    )


def _group(
    manifest: Manifest, runs: tuple[Run, ...], baseline: Run | None, anchored: set[str]
) -> Group:
    first = runs[0].variant
    bond, tie = _bond(manifest, runs, baseline)
    if tie is not None:
        # Two groups with one first variant share their anchor.
        if tie not in anchored and len(anchored) >= MOST_ANCHORED:
            bond, tie = Bond.EXCESS, None
        else:
            anchored.add(tie)
    return Group(residency=runs[0].residency, runs=runs, first=first, bond=bond, tie=tie)


def _bond(
    manifest: Manifest, runs: tuple[Run, ...], baseline: Run | None
) -> tuple[Bond, str | None]:
    base, first = baseline_id(manifest), runs[0]
    if any(run.variant == base for run in runs):
        return Bond.BASELINE, None
    if baseline is None:
        return Bond.NONE, None
    if first.residency.main_kind == baseline.residency.main_kind:
        return Bond.ANCHOR, anchor_id(first.variant)
    moved_to = first.context.get("main_device")
    moved_from = baseline.context.get("main_device")
    if manifest.on_device and moved_to is not None and moved_to != moved_from:
        return Bond.HOME, home_id(base, first.variant)
    return Bond.UNCLAIMED, None
