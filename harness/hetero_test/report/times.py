"""What each variant cost in time: a view comes in, cells and tables of plain text go out.

A speed is compared beside an equal stream only, and no number is taken from a run that is not OK.
:func:`predicted` sets what triage predicted beside what was measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.errors import StoreError
from hetero_test.formats.json import JsonError
from hetero_test.report import tables
from hetero_test.report.escape import UNKNOWN
from hetero_test.report.spread import Spread, change, number
from hetero_test.store.run_json import document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hetero_test.report.budget import Cuts, Detail
    from hetero_test.report.view import View
    from hetero_test.triage.answer.compare_with_run import Compared
    from hetero_test.values.run import Run

TIMES = (
    "variant (n)",
    "decode tok/s",
    "Δ decode",
    "prefill tok/s",
    "drafting ms/round",
    "page faults, blocks read",
)


def time_row(view: View, name: str, probe: str) -> tuple[str, ...]:
    """Times of one variant over its usable runs of one probe."""
    runs = usable(view, name, probe)
    drafting = Spread.of(run.timings.draft_ms_per_round for run in runs)
    prefill = Spread.of(run.timings.prefill_tok_s for run in runs)
    decode = decode_of(runs)
    return (
        f"{view.say(name, 40)} ({len(runs)})",
        str(decode or UNKNOWN),
        delta_text(view, name, probe),
        str(prefill or UNKNOWN),
        str(drafting or UNKNOWN),
        reads_text(runs),
    )


def usable(view: View, name: str, probe: str) -> tuple[Run, ...]:
    """The OK runs of a variant, in the order in which they ran."""
    mine = (run for run in view.ran.get(name, ()) if run.usable and run.probe == probe)
    return tuple(sorted(mine, key=lambda run: run.order))


def decode_of(runs: Iterable[Run]) -> Spread | None:
    """Decode speeds in tokens per second."""
    return Spread.of(run.timings.decode_tok_s for run in runs)


def reads_text(runs: Sequence[Run]) -> str:
    """Major page faults and blocks read, since a cold run is not a slow placement."""
    faults = [run.outcome.major_faults for run in runs if run.outcome.major_faults is not None]
    blocks = [run.outcome.blocks_read for run in runs if run.outcome.blocks_read is not None]
    if not faults and not blocks:
        return UNKNOWN
    return f"{_range(faults)}, {_range(blocks)}"


def _range(values: Sequence[int]) -> str:
    if not values:
        return UNKNOWN
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}-{high}"


def delta_text(view: View, name: str, probe: str) -> str:
    """The change of decode speed against an earlier variant with the very same stream.

    That is the baseline where the streams are equal, else the first variant of the same
    stream: a speed beside another text says nothing.
    """
    if name == view.base:
        return "baseline"
    runs = usable(view, name, probe)
    mine, streams = decode_of(runs), {run.stream for run in runs}
    if mine is None:
        return UNKNOWN
    if len(streams) == 1:
        for other in view.ran:
            if other == name:
                break
            theirs = usable(view, other, probe)
            reference = decode_of(theirs)
            if reference is not None and {run.stream for run in theirs} == streams:
                text = change(mine, reference)
                return text if other == view.base or text == UNKNOWN else f"{text} (vs {other})"
    return "not comparable: other stream"


COLUMNS = ("variant", "speed", "predicted tok/s (80 %)", "measured tok/s", "gap", "in interval")


def predicted(view: View, detail: Detail, cuts: Cuts) -> tables.Table | None:
    """One row a speed of a variant; None where nothing was predicted.

    Raises:
        StoreError: what is stored as the prediction is none.
    """
    text = view.record.manifest.prediction
    if text is None:
        return None
    # Loaded here: most reports hold no prediction, and triage is half as much code again.
    from hetero_test.triage.answer import read_back
    from hetero_test.triage.answer.compare_with_run import predicted_vs_measured

    try:
        told = read_back.prediction(text)
    except JsonError as error:
        raise StoreError(f"the prediction in manifest.json: {error}") from error
    rows = predicted_vs_measured(told, document(view.record, view.judgment, {}))
    kept = cuts.take(rows, detail.rows, "rows of prediction beside measurement")
    return tables.table([_row(view, row) for row in kept], COLUMNS)


def _row(view: View, row: Compared) -> tuple[str, ...]:
    span = "–"
    if row.predicted is not None:
        span = number(row.predicted)
        if row.low is not None and row.high is not None:
            span += f" ({number(row.low)}–{number(row.high)})"
    inside = "–" if row.inside is None else ("yes" if row.inside else "no")
    return (
        f"{row.variant}: {view.say(row.option or row.name, 60)}",
        row.speed,
        span,
        "–" if row.measured is None else number(row.measured),
        "–" if row.gap is None else f"{row.gap:+.0%}",
        inside,
    )
