"""The report as one HTML page: no script, nothing loaded from anywhere, charts inside.

A judged record comes in, the page goes out. :func:`decode_chart` draws the decode speeds in SVG,
the same bytes each time; it needs matplotlib. A bar is the range over the usable runs, the dot is
the median; as in the table, a variant whose stream is not comparable with the baseline's is drawn
hollow.
"""

from __future__ import annotations

import io
import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hetero_test.publish.printable import visible
from hetero_test.report.budget import Cuts, Detail
from hetero_test.report.page import parts
from hetero_test.report.templates import environment
from hetero_test.report.times import decode_of, usable
from hetero_test.report.view import View

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from hetero_test.publish.redact import Redactor
    from hetero_test.report.spread import Spread
    from hetero_test.report.tables import Table
    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Judgment

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


def rows(table: Table) -> list[list[str]]:
    """The cells of a table, each made visible, for autoescaping."""
    return [[visible(text) for text in row] for row in table.rows]


def capitalized(text: str) -> str:
    """A sentence's first letter, the rest as it is."""
    return (text[:1].upper() + text[1:]).rstrip(".")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return environment(html=True, rows=rows, shown=visible, capitalized=capitalized)


HASH_SALT = "hetero-test"
"""matplotlib derives the ids inside an SVG from it, instead of from a random number."""
MOST_ROWS = 40
WIDTH_IN, ROW_IN, EDGE_IN = 7.6, 0.27, 0.9
LEFT_IN, RIGHT_IN = 1.0, 0.3
INK, RANGE = "#1f2328", "#8c959f"

MISSING = "No chart: matplotlib is not installed (pip install 'hetero-test[html]')."


def decode_chart(view: View, probe: str) -> str | None:
    """An ``<svg>`` element, or None when nothing was timed.

    Raises:
        ImportError: matplotlib is not there; see :data:`MISSING`.
    """
    rows = _rows(view, probe)
    return _drawn(rows) if rows else None


def _rows(view: View, probe: str) -> list[tuple[str, Spread, bool]]:
    """(label, speeds, comparable) of each variant that was timed."""
    base = {run.stream for run in usable(view, view.base, probe)}
    rows = []
    for name in view.ran:
        runs = usable(view, name, probe)
        speeds = decode_of(runs)
        if speeds is not None:
            rows.append((view.say(name, 16), speeds, {run.stream for run in runs} == base))
    return rows[:MOST_ROWS]


def _drawn(rows: list[tuple[str, Spread, bool]]) -> str:
    # The first import on a machine may tell of its font cache, which is no warning of ours.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "svg.hashsalt": HASH_SALT,
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "text.parse_math": False,
    }
    height = EDGE_IN + ROW_IN * len(rows)
    with rc_context(settings):
        figure = Figure(figsize=(WIDTH_IN, height))
        FigureCanvasSVG(figure)
        top, bottom = 0.15 / height, 0.6 / height
        axes = figure.add_axes(
            (LEFT_IN / WIDTH_IN, bottom, 1 - (LEFT_IN + RIGHT_IN) / WIDTH_IN, 1 - top - bottom)
        )
        for place, (_, speeds, comparable) in enumerate(rows):
            axes.plot([speeds.low, speeds.high], [place, place], color=RANGE, linewidth=3)
            face = INK if comparable else "white"
            axes.plot([speeds.median], [place], "o", color=INK, markerfacecolor=face)
        axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("decode tok/s, higher is faster")
        axes.grid(visible=True, axis="x", color="#d1d9e0", linewidth=0.5)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        out = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=nothing)
    return _inline(out.getvalue())


def _inline(svg: str) -> str:
    """The element alone, without the prologue of a file of its own, and with a name."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    return body.replace(
        "<svg", '<svg role="img" aria-label="decode speed of each variant"', 1
    ).strip()
