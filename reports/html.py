"""The report as one HTML page: no script, nothing loaded from anywhere, charts inside."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from harness.plain import visible

from .budget import Cuts, Detail
from .chart import MISSING, decode_chart
from .environment import environment
from .page import parts
from .view import View

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment
    from markupsafe import Markup

    from harness.record import Record
    from harness.redact import Redactor
    from harness.verdict import Judgment

EVERYTHING = Detail(
    ids=64,
    splits=400,
    run_rows=20_000,
    tail_lines=200,
    tails=400,
    lines=200,
    commands=2000,
    rows=2000,
    notes=2000,
    quote=2000,
)
"""A page has no limit but patience."""
MOST_CHARTS = 8


def build(record: Record, judgment: Judgment, *, redactor: Redactor) -> str:
    """The HTML page of a judged record."""
    view = View.of(record, judgment, redactor)
    page = parts(view, EVERYTHING, Cuts())
    charts, missing = _charts(view)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page,
            charts=charts,
            chart_missing=missing,
            conclusion=str(judgment.conclusion).lower(),
        )
    )


def _charts(view: View) -> tuple[list[Markup | None], str | None]:
    """A chart for each probe that was timed, or why there is none."""
    from markupsafe import Markup

    probes = list(dict.fromkeys(probe for _, probe in view.pairs))
    charts: list[Markup | None] = [None] * len(probes)
    try:
        for place, probe in enumerate(probes[:MOST_CHARTS]):
            svg = decode_chart(view, probe)
            # matplotlib escapes every text it writes into an SVG.
            charts[place] = None if svg is None else Markup(svg)  # noqa: S704
    except ImportError:
        return charts, MISSING
    return charts, None


def rows(frame: pd.DataFrame) -> list[list[str]]:
    """The cells of a frame, each made visible, for autoescaping."""
    return [[visible(text) for text in row] for row in frame.to_numpy().tolist()]


def capitalized(text: str) -> str:
    """A sentence's first letter, the rest as it is."""
    return (text[:1].upper() + text[1:]).rstrip(".")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return environment(html=True, rows=rows, shown=visible, capitalized=capitalized)
