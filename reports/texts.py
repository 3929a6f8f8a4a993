"""Every text of a record that a report may show, so that addresses can be numbered once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.model import Run
    from harness.record import Manifest, Record
    from harness.verdict import Judgment


def texts_of(record: Record, judgment: Judgment) -> Iterator[str]:
    """All texts in a fixed order: the manifest's, then each run's, then the judge's."""
    yield from _asked(record.manifest)
    for run in (*record.runs, *record.warmup, *record.rechecks):
        yield from _ran(run)
    yield from record.warnings
    yield record.ending_reason or ""
    yield judgment.reason
    yield from judgment.warnings
    for verdict in judgment.verdicts:
        yield verdict.reason


def _asked(manifest: Manifest) -> Iterator[str]:
    yield from manifest.argv
    yield from manifest.model_flags
    for _, value in (*manifest.env, *manifest.rig.facts):
        yield value
    yield manifest.rig.how
    yield from manifest.rig.notes
    for device in manifest.rig.devices:
        yield f"{device.name} {device.note or ''}"
    yield from manifest.warnings


def _ran(run: Run) -> Iterator[str]:
    yield from run.argv
    for _, value in run.env:
        yield value
    yield run.reason or ""
    yield run.quote or ""
    yield from (*run.lines, *run.tail, *run.warnings, *run.devices)
