"""What a report shows, in the order of the page, as plain text and frames.

Markdown and HTML differ in how they write it, not in what they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import blocks, facts, sections, tables, times
from .advice import advice
from .memory import memory
from .predicted import predicted
from .splits import splits

if TYPE_CHECKING:
    import pandas as pd

    from .budget import Cuts, Detail
    from .view import View


def parts(view: View, detail: Detail, cuts: Cuts) -> dict[str, object]:
    """Everything that a template names; ``cuts`` is complete when this returns."""
    return {
        "heading": facts.heading(view),
        "partial": facts.partial(view),
        "counts": facts.counts(view),
        "made_of": facts.made_of(view),
        "reason": view.say(view.judgment.reason, 1000),
        "facts": tables.frame(facts.facts(view), ("field", "value")),
        "variants": _variants(view, detail, cuts),
        "legend": sections.legend(view, detail, cuts),
        "anchors": sections.anchors(view),
        "only_anchored": sections.only_anchored(view),
        "without_trace": sections.without_trace(view),
        "clusters": _clusters(view, detail, cuts),
        "splits": splits(view, detail, cuts),
        "times": _times(view, detail, cuts),
        "memory": memory(view, detail, cuts),
        "predicted": predicted(view, detail, cuts),
        "verdicts": sections.open_verdicts(view, detail, cuts),
        "troubles": sections.troubles(view, detail, cuts),
        "not_run": sections.not_run(view, detail, cuts),
        "missing": cuts.take(facts.missing(view), detail.notes, "variants with runs not made"),
        "warnings": sections.warnings(view, detail, cuts),
        "advice": advice(view),
        "runs": _runs(view, detail, cuts),
        "engine_lines": blocks.engine_lines(view, detail, cuts),
        "harness_command": blocks.own_command(view, detail),
        "commands": blocks.commands(view, detail, cuts),
        "rig": blocks.rig_lines(view, detail, cuts),
        "probes": blocks.probe_lines(view, detail, cuts),
        "tails": blocks.tails(view, detail, cuts),
        "limits": facts.limits(view),
        "version": view.record.manifest.harness,
        "cuts": cuts.notes,
    }


def _variants(view: View, detail: Detail, cuts: Cuts) -> pd.DataFrame:
    names = view.telling_first(tuple(view.ran))
    shown = set(cuts.take(names, detail.rows, "variants, those that passed first"))
    rows = [tables.variant_row(view, name) for name in view.ran if name in shown]
    return tables.frame(rows, tables.VARIANTS)


def _clusters(view: View, detail: Detail, cuts: Cuts) -> pd.DataFrame:
    rows = cuts.take(tables.cluster_rows(view), detail.rows, "streams")
    return tables.frame(rows, tables.CLUSTERS)


def _times(view: View, detail: Detail, cuts: Cuts) -> list[dict[str, object]]:
    """One table a probe, since prompts of other lengths have other times."""
    probes = dict.fromkeys(probe for _, probe in view.pairs)
    timed = [pair for pair in view.pairs if times.usable(view, *pair)]
    rows = cuts.take(timed, detail.rows, "rows of times")
    out: list[dict[str, object]] = []
    for probe in probes:
        mine = [times.time_row(view, name, at) for name, at in rows if at == probe]
        if mine:
            title = view.say(probe, 60) if len(probes) > 1 else ""
            out.append({"title": title, "table": tables.frame(mine, times.TIMES)})
    return out


def _runs(view: View, detail: Detail, cuts: Cuts) -> pd.DataFrame:
    record = view.record
    every = [run for runs in view.ran.values() for run in runs]
    every += [*record.warmup, *record.rechecks]
    shown = cuts.take(every, detail.run_rows, "rows of single runs")
    several = len(record.manifest.probes) > 1
    rows = [tables.run_row(view, run, several_probes=several) for run in shown]
    return tables.frame(rows, tables.RUNS)
