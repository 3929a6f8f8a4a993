"""A judgment in a few lines of plain text: what a terminal or a CI log shows. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.plain import printable
from harness.verdict import Kind, Result

if TYPE_CHECKING:
    from harness.model import Run
    from harness.record import Record
    from harness.verdict import Judgment

WIDEST = 300
MOST_TROUBLES = 4
"""The report has them all."""
SHOWN_RESULTS = (Result.INCONCLUSIVE, Result.SKIPPED, Result.NOT_CLAIMED)


def verdict_lines(record: Record, judgment: Judgment) -> tuple[str, ...]:
    """Headline, reason, counts, and one line a variant."""
    lines = [judgment.headline, judgment.reason, counts_line(record, judgment)]
    for summary in judgment.summaries[1:]:
        effect = "" if summary.effect is None else f" [{summary.effect}]"
        lines.append(f"variant {summary.id}: {summary.text}{effect}")
    lines += _troubles(record)
    lines += [f"warning: {text}" for text in judgment.warnings]
    return tuple(printable(line, WIDEST) for line in lines if line)


def _troubles(record: Record) -> list[str]:
    """What the log shows of the first run of each variant that is not OK; the baseline's first."""
    first: dict[str, Run] = {}
    for run in sorted(record.runs, key=lambda run: run.order):
        if not run.usable:
            first.setdefault(run.variant, run)
    return [
        f"variant {run.variant}, repeat {run.repeat}: {run.state}: {run.reason}"
        + (f": {run.quote}" if run.quote else "")
        for run in list(first.values())[:MOST_TROUBLES]
    ]


def counts_line(record: Record, judgment: Judgment) -> str:
    """``16 runs, 20 PASS / 0 FAIL (8 repeat, 10 exact, 2 anchor), 1 SKIPPED``."""
    kinds = ", ".join(
        f"{number} {kind}"
        for kind in Kind
        if (number := sum(v.kind is kind and v.result is Result.PASS for v in judgment.verdicts))
    )
    text = f"{len(record.runs)} runs, {judgment.count(Result.PASS)} PASS"
    text += f" / {judgment.count(Result.FAIL)} FAIL"
    text += f" ({kinds})" if kinds else ""
    for result in SHOWN_RESULTS:
        if number := judgment.count(result):
            text += f", {number} {result.value.replace('_', ' ')}"
    return text
