"""Decode speeds as a small chart in SVG, the same bytes each time; needs matplotlib.

A bar is the range over the usable runs, the dot is the median; as in the table, a variant
whose stream is not comparable with the baseline's is drawn hollow.
"""

from __future__ import annotations

import io
import logging
import re
from typing import TYPE_CHECKING, Any

from .times import decode_of, usable

if TYPE_CHECKING:
    from .spread import Spread
    from .view import View

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
