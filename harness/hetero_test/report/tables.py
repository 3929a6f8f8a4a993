"""Variants, streams, single runs and memory by device: a view in, tables of plain text out.

No markup, no escaping. ``–`` stands for what is not known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hetero_test.judge.streams import first_difference
from hetero_test.report.escape import UNKNOWN
from hetero_test.report.spread import number
from hetero_test.report.view import place_of
from hetero_test.values.run import Effect, Purpose
from hetero_test.values.verdict import Moved, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hetero_test.report.budget import Cuts, Detail
    from hetero_test.report.view import View
    from hetero_test.values.reading import Row
    from hetero_test.values.run import Run
    from hetero_test.values.verdict import Cluster


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under their headings, as they are printed."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)


def table(rows: Iterable[tuple[str, ...]], columns: tuple[str, ...]) -> Table:
    """A table of these rows."""
    return Table(columns, tuple(rows))


def pipe(table: Table, cell: Callable[[str], str]) -> str:
    """A table in Markdown, each text through ``cell``.

    Columns are padded for reading as text, unless one wide cell would blow up all the others.
    """
    from tabulate import tabulate

    rows = [[cell(text) for text in row] for row in table.rows]
    widest = max((len(text) for row in rows for text in row), default=0)
    align: Literal["left"] | None = None if widest > 48 else "left"
    return tabulate(
        rows,
        headers=table.columns,
        tablefmt="pipe",
        disable_numparse=True,
        stralign=align,
        colglobalalign=align,
    )


# ---- variants ---------------------------------------------------------------------------------

VARIANTS = ("variant", "placement", "effect", "verdict", "residency", "stream")


def variant_row(view: View, name: str) -> tuple[str, ...]:
    """One variant: what was asked, whether it happened, what came of it."""
    runs = view.ran.get(name, ())
    labels = dict.fromkeys(view.residency_text(run) for run in runs if run.usable)
    return (
        view.say(name, 40),
        view.say(view.names.get(name, ""), 80),
        effect_text(view, name),
        verdict_text(view, name),
        "; ".join(labels) or UNKNOWN,
        stream_text(view, name),
    )


def effect_text(view: View, name: str) -> str:
    """The effect in its word, and which part of the placement shows it."""
    if name == view.base:
        return UNKNOWN
    effect = view.effect(name)
    if effect is None:
        return UNKNOWN
    parts = [p for run in view.ran.get(name, ()) for p in run.effect_parts if p.effect is effect]
    said = dict.fromkeys(
        f"{p.part} {p.seen}"
        if effect is Effect.PROVEN
        else f"{p.part}: {p.expected} wanted, {p.seen or 'nothing'} seen"
        for p in parts
        if effect is not Effect.UNOBSERVABLE
    )
    shown = view.say(", ".join(said), 80)
    if effect is Effect.UNOBSERVABLE:
        shown = _untraced(view, name)
    summary = view.summaries.get(name)
    if summary is not None and summary.moved is Moved.SAME:
        # Being where the flags say is not moving.
        shown = f"{shown}; {Moved.SAME}" if shown else Moved.SAME.value
    return f"{effect}: {shown}" if shown else str(effect)


def _untraced(view: View, name: str) -> str:
    """Which part of a placement no line tells of, and which parts are proven all the same."""
    parts = [part for run in view.ran.get(name, ()) for part in run.effect_parts]
    silent = dict.fromkeys(p.part for p in parts if p.effect is Effect.UNOBSERVABLE)
    proven = dict.fromkeys(f"{p.part} {p.seen}" for p in parts if p.effect is Effect.PROVEN)
    if not proven:
        return "leaves no trace"
    return view.say(f"{', '.join(silent)} leaves no trace ({', '.join(proven)} proven)", 120)


def verdict_text(view: View, name: str) -> str:
    """The result that stands for a variant, and the judge's words for it."""
    result = view.result(name)
    summary = view.summaries.get(name)
    text = counts_text(view, name)
    if summary is not None and name != view.base:
        text = view.say(summary.text, 100)
    elif name == view.base and result is Result.PASS:
        text = "repeats itself"
    if result is None:
        return text or UNKNOWN
    effect = view.effect(name)
    if result is Result.PASS and effect is not None and effect.unmoved is not None:
        # Equal streams are no evidence of a placement that did not happen.
        return f"{Result.INCONCLUSIVE.sign} equal, but it {effect.unmoved}"
    word = result.words
    said = text if text.startswith(str(result)) else f"{word}: {text}" if text else word
    return f"{result.sign} {said}".strip()


def counts_text(view: View, name: str) -> str:
    """Verdicts with the result that stands for one id, by kind."""
    counts: dict[str, int] = {}
    for verdict in view.verdicts.get(name, ()):
        if verdict.result is not view.result(name):
            continue
        counts[verdict.kind] = counts.get(verdict.kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def stream_text(view: View, name: str) -> str:
    """Cluster letters in order of repeat, and the md5 where there is only one stream."""
    probes = dict.fromkeys(run.probe for run in view.ran.get(name, ()))
    letters = [view.letters(name, probe) for probe in probes]
    found = {view.cluster_of[r.key].md5 for r in view.ran.get(name, ()) if r.key in view.cluster_of}
    text = " / ".join(letter or UNKNOWN for letter in letters)
    if len(found) == 1:
        return f"{text} {next(iter(found))[:12]}"
    return text if found else UNKNOWN


# ---- clusters ---------------------------------------------------------------------------------

CLUSTERS = ("residency", "stream", "md5", "runs", "first split")


def cluster_rows(view: View) -> list[tuple[str, ...]]:
    """Every cluster once per residency it was seen in, grouped by probe and residency."""
    rows: list[tuple[str, ...]] = []
    placed = placed_clusters(view)
    several = len({runs[0].probe for _, runs in placed}) > 1
    heads: dict[object, Cluster] = {}
    for cluster, runs in placed:
        run = runs[0]
        base = heads.setdefault(run.probe, cluster)
        first = heads.setdefault((run.probe, place_of(run)), cluster)
        label = run.residency.label
        roman = view.numerals.get(place_of(run))
        numbered = f"{roman}: " if roman else ""
        rows.append(
            (
                view.say(f"{numbered}{label}{f' (probe {run.probe})' if several else ''}", 120),
                cluster.letter,
                cluster.md5[:12],
                members_text(view, runs),
                split_text(view, run, cluster, first, base),
            )
        )
    return rows


def placed_clusters(view: View) -> list[tuple[Cluster, tuple[Run, ...]]]:
    """Each cluster and its usable runs of one residency; the baseline's residency first."""
    found: dict[object, dict[str, tuple[Cluster, list[Run]]]] = {}
    for runs in view.ran.values():
        for run in runs:
            cluster = view.cluster_of.get(run.key)
            if cluster is not None and run.usable:
                place = found.setdefault((run.probe, place_of(run)), {})
                place.setdefault(cluster.letter, (cluster, []))[1].append(run)
    return [
        (cluster, tuple(members))
        for clusters in found.values()
        for cluster, members in clusters.values()
    ]


def members_text(view: View, runs: Iterable[Run]) -> str:
    """``0 ×2, 2 ×2, 1f ×2``."""
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.variant] = counts.get(run.variant, 0) + 1
    return view.say(", ".join(f"{name} ×{count}" for name, count in counts.items()), 160)


def split_text(view: View, run: Run, cluster: Cluster, first: Cluster, base: Cluster) -> str:
    """Where a cluster parts from its residency's first, or that residency's from the baseline's."""
    if cluster is base:
        return UNKNOWN
    if not run.residency.known:
        return "not compared: the residency is unknown"
    inside = cluster is not first
    other = first if inside else base
    theirs = view.run_of[other.runs[0]]
    difference = first_difference(run.stream or (), theirs.stream or ())
    if difference is None:
        return UNKNOWN
    why = "the same residency" if inside else "another residency, may be rounding"
    return f"token {difference.index} against {other.letter}: {why}"


# ---- every run --------------------------------------------------------------------------------

RUNS = (
    "variant",
    "run",
    "state",
    "tokens",
    "accepted / offered",
    "tokens / round",
    "drafting ms / round",
    "decode tok/s",
    "residency",
    "md5",
    "exit, errors",
)


def run_row(view: View, run: Run, *, several_probes: bool) -> tuple[str, ...]:
    """One run with all that its log tells; an extra one with what it was made for."""
    drafts = run.speculation if run.usable else None
    which = [view.say(run.probe, 40)] if several_probes else []
    which.append(str(run.repeat))
    if run.purpose is not Purpose.ROUND:
        which.append(f"({run.purpose})")
    exit_text = run.outcome.signal or (
        UNKNOWN if run.outcome.exit_code is None else str(run.outcome.exit_code)
    )
    if run.reason and not run.usable:
        exit_text += f", {view.say(run.reason, 80)}"
    return (
        view.say(run.variant, 40),
        " ".join(which),
        str(run.state),
        UNKNOWN if run.stream is None else str(len(run.stream)),
        UNKNOWN if drafts is None else f"{_known(drafts.accepted)} / {_known(drafts.offered)}",
        UNKNOWN if drafts is None else _known(drafts.tokens_per_round),
        _known(run.timings.draft_ms_per_round if run.usable else None),
        _known(run.timings.decode_tok_s if run.usable else None),
        view.residency_text(run),
        UNKNOWN if run.md5 is None else run.md5[:12],
        view.say(exit_text, 120),
    )


def _known(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, int):
        return str(value)
    return number(value) if math.isfinite(value) else UNKNOWN


def memory(view: View, detail: Detail, cuts: Cuts) -> Table | None:
    """A row for each variant of which an engine tells more; None where it does of none."""
    told = {
        name: run
        for name, runs in view.ran.items()
        if (run := next((r for r in runs if r.usable and r.reading.rows), None)) is not None
    }
    if not told:
        return None
    labels = dict.fromkeys(row.label for run in told.values() for row in run.reading.rows)
    columns = ("variant", *labels, "accepted / offered", "against its reference")
    shown = cuts.take(list(told), detail.rows, "rows on memory and graphs")
    return table([_row(view, name, told[name], labels) for name in shown], columns)


def _row(view: View, name: str, run: Run, labels: Iterable[str]) -> tuple[str, ...]:
    texts = {row.label: _measured(row) for row in run.reading.rows}
    drafts = run.speculation
    counted = drafts is not None and None not in (drafts.accepted, drafts.offered)
    return (
        view.say(name, 40),
        *(view.say(texts.get(label, UNKNOWN), 240) for label in labels),
        f"{drafts.accepted} / {drafts.offered}" if drafts is not None and counted else UNKNOWN,
        _explained(view, name),
    )


def _measured(row: Row) -> str:
    text = row.value if isinstance(row.value, str) else _known(row.value)
    return f"{text} {row.unit}" if row.unit and text != UNKNOWN else text


def _explained(view: View, name: str) -> str:
    """What log-probabilities tell of this variant; each sentence once."""
    texts = dict.fromkeys(
        verdict.explanation.text
        for verdict in view.judgment.verdicts
        if verdict.variant == name
        and verdict.against is not None
        and verdict.explanation is not None
    )
    return "; ".join(view.say(text, 160) for text in texts) or UNKNOWN
