"""``report.md``: what is pasted into an issue. Deterministic: no clock, no locale, no globals."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from . import facts, sections, tables
from .budget import LIMIT, Cuts, Detail, fit
from .escape import cell, code, fence, inline, summary
from .view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from jinja2 import Environment

    from harness.model import Judgment
    from harness.record import Record
    from harness.redact import Redactor


def build(record: Record, judgment: Judgment, *, redactor: Redactor) -> str:
    """The Markdown report of a judged record, at most 60,000 characters and bytes."""
    view = View.of(record, judgment, redactor)
    return fit(lambda detail: render(view, detail))


def render(view: View, detail: Detail) -> str:
    """The report with so much of each part."""
    cuts = Cuts()
    text = _environment().get_template("report.md.j2").render(_parts(view, detail, cuts))
    # A blank line is a blank line, however many conditions left one behind.
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _parts(view: View, detail: Detail, cuts: Cuts) -> dict[str, object]:
    """Everything that the template names."""
    return {
        "heading": facts.heading(view),
        "partial": facts.partial(view),
        "counts": facts.counts(view),
        "made_of": facts.made_of(view),
        "reason": view.say(view.judgment.reason, 1000),
        "facts": _table(tables.frame(facts.facts(view), ("field", "value"))),
        "variants": _variants(view, detail, cuts),
        "anchors": sections.anchors(view),
        "only_anchored": sections.only_anchored(view),
        "without_trace": sections.without_trace(view),
        "clusters": _clusters(view, detail, cuts),
        "splits": sections.splits(view, detail, cuts),
        "times": _times(view, detail, cuts),
        "verdicts": sections.open_verdicts(view, detail, cuts),
        "troubles": sections.troubles(view, detail, cuts),
        "not_run": sections.not_run(view, detail, cuts),
        "missing": cuts.take(facts.missing(view), detail.notes, "variants with runs not made"),
        "warnings": sections.warnings(view, detail, cuts),
        "runs": _runs(view, detail, cuts),
        "engine_lines": sections.engine_lines(view, detail, cuts),
        "harness_command": sections.clip_command(view.command(view.record.manifest.argv)),
        "commands": sections.commands(view, detail, cuts),
        "rig": sections.rig_lines(view, detail, cuts),
        "probes": sections.probe_lines(view, detail, cuts),
        "tails": sections.tails(view, detail, cuts),
        "limits": facts.limits(view),
        "version": view.record.manifest.harness,
        "cuts": cuts.notes,
        "limit": LIMIT,
    }


def _table(table: pd.DataFrame) -> str:
    return tables.pipe(table.map(cell))


def _variants(view: View, detail: Detail, cuts: Cuts) -> str:
    names = view.telling_first(tuple(view.ran))
    shown = set(cuts.take(names, detail.rows, "variants, all of which passed or come later"))
    rows = [tables.variant_row(view, name) for name in view.ran if name in shown]
    return _table(tables.frame(rows, tables.VARIANTS)) if rows else "No variant was planned."


def _clusters(view: View, detail: Detail, cuts: Cuts) -> str:
    rows = cuts.take(tables.cluster_rows(view), detail.rows, "streams")
    return _table(tables.frame(rows, tables.CLUSTERS)) if rows else ""


def _times(view: View, detail: Detail, cuts: Cuts) -> list[dict[str, str]]:
    """One table a probe, since prompts of other lengths have other times."""
    probes = dict.fromkeys(probe for _, probe in view.pairs)
    timed = [pair for pair in view.pairs if tables.usable(view, *pair)]
    rows = cuts.take(timed, detail.rows, "rows of times")
    out = []
    for probe in probes:
        mine = [tables.time_row(view, name, at) for name, at in rows if at == probe]
        if mine:
            title = view.say(probe, 60) if len(probes) > 1 else ""
            out.append({"title": title, "text": _table(tables.frame(mine, tables.TIMES))})
    return out


def _runs(view: View, detail: Detail, cuts: Cuts) -> str:
    every = [run for runs in view.ran.values() for run in runs]
    shown = cuts.take(every, detail.run_rows, "rows of single runs")
    several = len(view.record.manifest.probes) > 1
    rows = [tables.run_row(view, run, several_probes=several) for run in shown]
    return _table(tables.frame(rows, tables.RUNS)) if rows else ""


def sentence(text: str) -> str:
    """:func:`inline`, capitalized and ended like a sentence."""
    shown = inline(text[:1].upper() + text[1:])
    return shown if shown.endswith((".", "!", "?", ".`")) else f"{shown}."


def fenced(lines: Sequence[str], info: str) -> str:
    """:func:`fence` as a filter."""
    return fence(lines, info)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("harness.reports"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - Markdown; every text goes through a filter of escape.py
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        inline=inline, code=code, fence=fenced, summary=summary, sentence=sentence
    )
    return environment
