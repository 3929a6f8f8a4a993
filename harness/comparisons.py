"""All comparisons of a matrix, each with its verdict.

A comparison can only come to PASS when two streams were compared, both from OK runs, at an
equal and known residency, against a reference that is identical to itself. Every other way in
which "nothing differed" can be true has a result and a reason of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.anchors import anchor_verdicts
from harness.exact import exact_verdicts
from harness.lineup import Lineup
from harness.repeats import repeat_verdicts
from harness.verdict import Kind, Verdict

if TYPE_CHECKING:
    from harness.record import Record


def comparisons(record: Record) -> tuple[Verdict, ...]:
    """Every comparison that the plan asks for: repeats, then exact, then anchors."""
    found: dict[Kind, list[Verdict]] = {kind: [] for kind in Kind}
    for probe in record.manifest.probes:
        lineup = Lineup(record, probe.name)
        anchors = anchor_verdicts(lineup)
        found[Kind.REPEAT] += repeat_verdicts(lineup)
        found[Kind.EXACT] += exact_verdicts(lineup, anchors)
        found[Kind.ANCHOR] += anchors
    return tuple(verdict for kind in Kind for verdict in found[kind])
