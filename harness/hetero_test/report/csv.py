"""One row a run as a pandas frame, and that frame as CSV: what a notebook reads.

Columns have one type each (``Int64``, ``float64`` or text), and what is not known is missing,
never 0. Read hashes as text: ``pandas.read_csv(path, dtype={"md5": str})``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.report.view import View

if TYPE_CHECKING:
    import pandas as pd

    from hetero_test.publish.redact import Redactor
    from hetero_test.values.record import Record
    from hetero_test.values.run import Run
    from hetero_test.values.verdict import Judgment

TYPES = {
    "variant": "string",
    "of": "string",
    "prompt": "string",
    "repeat": "Int64",
    "order": "Int64",
    "purpose": "string",
    "state": "string",
    "result": "string",
    "effect": "string",
    "residency": "string",
    "tokens": "Int64",
    "stream": "string",
    "md5": "string",
    "decode_tok_s": "float64",
    "prefill_tok_s": "float64",
    "ttft_ms": "float64",
    "draft_ms_per_round": "float64",
    "drafts_accepted": "Int64",
    "drafts_offered": "Int64",
    "tokens_per_round": "float64",
    "elapsed_s": "float64",
    "started": "string",
    "exit_code": "Int64",
    "signal": "string",
    "major_faults": "Int64",
    "blocks_read": "Int64",
    "max_rss_bytes": "Int64",
    "reason": "string",
}
"""Columns in their order, each with its pandas type."""


def build(record: Record, judgment: Judgment, *, redactor: Redactor) -> str:
    """A heading and one line a run, redacted."""
    return frame(record, judgment, redactor=redactor).to_csv(index=False, lineterminator="\n")


def frame(record: Record, judgment: Judgment, *, redactor: Redactor) -> pd.DataFrame:
    """One row a run, redacted: all of the rounds and extra runs, warm-ups, re-checks."""
    import pandas as pd

    view = View.of(record, judgment, redactor)
    runs = (*record.runs, *record.warmup, *record.rechecks)
    rows = [_row(view, run, compared=place < len(record.runs)) for place, run in enumerate(runs)]
    # Every text is one line of what may be published; numbers are as they were measured.
    said = [[view.say(v, 1000) if isinstance(v, str) else v for v in row] for row in rows]
    return pd.DataFrame(said, columns=list(TYPES), dtype=object).astype(TYPES)


def _row(view: View, run: Run, *, compared: bool) -> tuple[str | float | None, ...]:
    """One run's cells in the order of :data:`TYPES`; ``compared``: it is one of the judged runs."""
    drafts, times = run.speculation, run.timings
    cluster = view.cluster_of.get(run.key) if compared else None
    result = view.result_of(run) if compared else None
    return (
        run.variant,
        run.of,
        run.probe,
        run.repeat,
        run.order,
        run.purpose.value,
        run.state.value,
        None if result is None else result.value,
        None if run.effect is None else run.effect.value,
        run.residency.label,
        None if run.stream is None else len(run.stream),
        None if cluster is None else cluster.letter,
        run.md5,
        times.decode_tok_s,
        times.prefill_tok_s,
        times.ttft_ms,
        times.draft_ms_per_round,
        None if drafts is None else drafts.accepted,
        None if drafts is None else drafts.offered,
        None if drafts is None else drafts.tokens_per_round,
        run.outcome.elapsed_s,
        run.outcome.started,
        run.outcome.exit_code,
        run.outcome.signal,
        run.outcome.major_faults,
        run.outcome.blocks_read,
        run.outcome.max_rss_bytes,
        run.reason,
    )
