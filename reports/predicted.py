"""What triage predicted, beside what the run measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.document import document
from harness.errors import StoreError
from harness.json_text import JsonError

from . import tables
from .spread import number

if TYPE_CHECKING:
    import pandas as pd

    from harness.triage.beside import Compared

    from .budget import Cuts, Detail
    from .view import View

COLUMNS = ("variant", "speed", "predicted tok/s (80 %)", "measured tok/s", "gap", "in interval")


def predicted(view: View, detail: Detail, cuts: Cuts) -> pd.DataFrame | None:
    """One row a speed of a variant; None where nothing was predicted.

    Raises:
        StoreError: what is stored as the prediction is none.
    """
    text = view.record.manifest.prediction
    if text is None:
        return None
    # Loaded here: most reports hold no prediction, and triage is half as much code again.
    from harness.triage import documents
    from harness.triage.beside import beside

    try:
        told = documents.prediction(text)
    except JsonError as error:
        raise StoreError(f"the prediction in manifest.json: {error}") from error
    rows = beside(told, document(view.record, view.judgment, {}))
    kept = cuts.take(rows, detail.rows, "rows of prediction beside measurement")
    return tables.frame([_row(view, row) for row in kept], COLUMNS)


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
