"""The report's tables as pandas frames of plain text; no markup, no escaping.

``–`` stands for what is not known. No number is taken from a run that is not OK.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from harness.model import Effect, Result
from harness.streams import first_difference

from .escape import UNKNOWN
from .spread import Spread, change, number
from .view import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from harness.model import Cluster, Run

    from .view import View

SIGNS = {
    Result.PASS: "✅",
    Result.FAIL: "❌",
    Result.INCONCLUSIVE: "⚠️",
}
"""Beside the word, never instead of it."""


def frame(rows: Iterable[Sequence[str]], columns: Sequence[str]) -> pd.DataFrame:
    """Rows of text under their headings."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(columns), dtype=object)


def pipe(table: pd.DataFrame) -> str:
    """A frame whose cells are Markdown already, as a table.

    Columns are padded for reading as text, unless one wide cell would blow up all the others.
    """
    from tabulate import tabulate

    widest = max((len(text) for row in table.to_numpy() for text in row), default=0)
    align: Literal["left"] | None = None if widest > 48 else "left"
    return tabulate(
        table.to_numpy().tolist(),
        headers=list(table.columns),
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
        shown = "leaves no trace"
    return f"{effect}: {shown}" if shown else str(effect)


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
    word = str(result).replace("_", " ")
    said = text if text.startswith(str(result)) else f"{word}: {text}" if text else word
    return f"{SIGNS.get(result, '')} {said}".strip()


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


# ---- times ------------------------------------------------------------------------------------

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
    faults = [run.major_faults for run in runs if run.major_faults is not None]
    blocks = [run.blocks_read for run in runs if run.blocks_read is not None]
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


# ---- every run --------------------------------------------------------------------------------

RUNS = (
    "variant",
    "run",
    "state",
    "tokens",
    "accepted / offered",
    "tokens / round",
    "drafting ms / round",
    "residency",
    "md5",
    "exit, errors",
)


def run_row(view: View, run: Run, *, several_probes: bool) -> tuple[str, ...]:
    """One run with all that its log tells."""
    drafts = run.speculation if run.usable else None
    exit_text = run.signal or (UNKNOWN if run.exit_code is None else str(run.exit_code))
    if run.reason and not run.usable:
        exit_text += f", {view.say(run.reason, 80)}"
    return (
        view.say(run.variant, 40),
        f"{view.say(run.probe, 40)} {run.repeat}" if several_probes else str(run.repeat),
        str(run.state),
        UNKNOWN if run.stream is None else str(len(run.stream)),
        UNKNOWN if drafts is None else f"{_known(drafts.accepted)} / {_known(drafts.offered)}",
        UNKNOWN if drafts is None else _known(drafts.tokens_per_round),
        _known(run.timings.draft_ms_per_round if run.usable else None),
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
