"""The triage answer as a page, with the time of a token as stacked bars.

The picture is inline SVG by matplotlib (extra ``html``), the same bytes for the same document:
its ids come from a fixed salt, and it carries no date.
"""

from __future__ import annotations

import io
import re
import textwrap
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hetero_test.errors import UsageError
from hetero_test.report import triage
from hetero_test.report.templates import environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment
    from matplotlib.axes import Axes

COLORS = {
    "weights": "#4c78a8",
    "KV": "#72b7b2",
    "sync": "#e45756",
    "link": "#f58518",
    "layers": "#9d9d9d",
    "draft": "#b279a2",
    "verify": "#54a24b",
}
"""Color by kind of term; kinds are stacked in this order."""
TITLE_WIDTH = 46
"""Characters of a title beside its bar."""
LONGEST = 2.5
"""Bars longer than so many times what runs today are cut, and say so."""


def build(document: Mapping[str, Any]) -> str:
    """The page of a document of schema ``hetero-test/triage/1``.

    Raises:
        UsageError: matplotlib is not installed.
    """
    template = _environment().get_template("triage.html.j2")
    hazards = sorted(
        document["hazards"],
        key=lambda h: ("present", "not checked", "absent").index(h["state"]),
    )
    return template.render(
        document=document,
        mark=triage.MARKS[document["verdict"]["call"]],
        headline=triage.headline(document),
        facts=triage.facts(document),
        hazards=hazards,
        picture=token_bars(document),
    )


def token_bars(document: Mapping[str, Any]) -> str:
    """Stacked bars of ms a token, one bar an option, as an ``<svg>`` element.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "the picture is drawn with matplotlib, which is not installed",
            hint="pip install 'hetero-test[html]'",
        ) from error
    options = [option for option in document["options"] if option["decode_tok_s"]]
    with mpl.rc_context({"svg.hashsalt": "hetero-test", "svg.fonttype": "none"}):
        figure = Figure(figsize=(9.6, 1.1 + 0.42 * max(1, len(options))), layout="constrained")
        _draw(figure.add_subplot(), options, _limit(document, options))
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(out.getvalue())


def _draw(axes: Axes, options: Sequence[Mapping[str, Any]], limit: float) -> None:
    """All bars, the first option on top."""
    seen: set[str] = set()
    for row, option in enumerate(options):
        left = 0.0
        for term in sorted(option["terms"], key=lambda t: list(COLORS).index(t["kind"])):
            kind = term["kind"]
            label = "_" if kind in seen else kind
            seen.add(kind)
            axes.barh(
                row, term["ms"], left=left, height=0.62, color=COLORS[kind], label=label,
                edgecolor="white", linewidth=0.4,
            )  # fmt: skip
            left += term["ms"]
        fits = "" if option["fit"] == "fits" else f", {option['fit']}"
        told = f"{option['decode_tok_s']['value']:.1f} tok/s{fits}"
        if left > limit:
            told = f"{left:.0f} ms, {told} →"
        inside = left > 0.75 * limit
        axes.text(
            min(left, limit) - 0.01 * limit if inside else left + 0.01 * limit,
            row,
            told,
            va="center",
            ha="right" if inside else "left",
            fontsize=8,
            color="white" if inside else "black",
        )
    axes.set_yticks(
        range(len(options)), [_wrapped(option["title"]) for option in options], fontsize=8
    )
    axes.set_ylim(len(options) - 0.4, -0.6)
    axes.set_xlim(0, limit)
    axes.set_xlabel("ms a token (middle of the prediction)", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    if seen:
        handles, labels = axes.get_legend_handles_labels()
        ordered = sorted(zip(labels, handles, strict=True), key=lambda h: list(COLORS).index(h[0]))
        legend = axes.legend(
            [handle for _, handle in ordered],
            [label for label, _ in ordered],
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=len(seen),
        )
        legend.set_frame_on(False)


def _limit(document: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> float:
    """End of the axis, ms: the longest bar, but not many times what runs today."""
    bars = [float(sum(t["ms"] for t in option["terms"])) for option in options]
    longest = max(bars, default=1.0)
    kept = document["incumbent"]
    if kept is None:
        return longest * 1.05
    return min(longest * 1.05, LONGEST * 1e3 / float(kept["decode_tok_s"]))


def _wrapped(title: str) -> str:
    """A title on two lines at the most."""
    return "\n".join(textwrap.wrap(title, TITLE_WIDTH, max_lines=2, placeholder=" …"))


def _inline(svg: str) -> str:
    """The element alone, without the file's prologue and fixed size."""
    element = svg[svg.index("<svg") :]
    return re.sub(
        r'<svg ([^>]*?)width="[^"]*"', r'<svg role="img" \1width="100%"', element, count=1
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return environment(
        html=True, fill=triage.fill, term=triage.term, call=triage.call, speed=triage.speed
    )
