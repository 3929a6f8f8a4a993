"""The report's lists as plain text: what is not OK, what stayed open, what has to be said.

What to run next where a question stayed open, as commands to paste.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.engines import ENGINES, engine
from hetero_test.engines.base import SizedCache
from hetero_test.judge.evidence import MOST_SHOWN
from hetero_test.judge.groups import Bond, groups
from hetero_test.report.view import folder, place_of
from hetero_test.values.run import Effect, Purpose, RunState
from hetero_test.values.verdict import Result, Tie

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hetero_test.report.budget import Cuts, Detail
    from hetero_test.report.view import View
    from hetero_test.values.run import Run
    from hetero_test.values.verdict import Doubt, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One entry of a list.

    Attributes:
        mark: the word in front, such as a state or a result.
        text: one sentence.
        quote: the log line that shows it.
        where: the file or folder that holds the whole.
    """

    mark: str
    text: str
    quote: str | None = None
    where: str | None = None


# ---- what is not OK ---------------------------------------------------------------------------


def troubles(view: View, detail: Detail, cuts: Cuts) -> tuple[Note, ...]:
    """Every run that is not OK, repeats with one and the same reason together."""
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in view.troubled:
        key = (run.variant, run.probe, run.purpose, run.state, run.reason or "", run.quote or "")
        found.setdefault(key, []).append(run)
    shown = cuts.take(list(found.values()), detail.notes, "runs that are not OK")
    return tuple(_trouble(view, runs, detail) for runs in shown)


def _trouble(view: View, runs: list[Run], detail: Detail) -> Note:
    run = runs[0]
    repeats = ", ".join(str(r.repeat) for r in runs)
    what = f"variant {run.variant}, run {repeats}"
    if run.purpose in {Purpose.WARMUP, Purpose.RECHECK, Purpose.AFTER_HANG}:
        what += f" ({run.purpose})"
    ended = run.outcome.signal or (
        None if run.outcome.exit_code is None else f"exit code {run.outcome.exit_code}"
    )
    said = f"{what}: {run.reason or 'no reason recorded'}"
    if ended is not None and ended not in said:
        said += f" ({ended})"
    return Note(
        mark=str(run.state),
        text=view.say(said, detail.quote),
        quote=None if not run.quote else view.say(run.quote, detail.quote),
        where=view.say(folder(run), 120),
    )


def open_verdicts(view: View, detail: Detail, cuts: Cuts) -> tuple[Note, ...]:
    """Every comparison that is not a PASS: one entry a variant, or all that say the same."""
    said: dict[tuple[Result, str], list[str]] = {}
    for verdict in view.judgment.verdicts:
        if verdict.result is not Result.PASS:
            reasons = said.setdefault((verdict.result, verdict.variant), [])
            reasons.append(_said(verdict))
    found: dict[tuple[Result, str], list[str]] = {}
    for (result, name), reasons in said.items():
        found.setdefault((result, _joined(reasons)), []).append(name)
    order = (Result.FAIL, Result.INCONCLUSIVE, Result.NOT_CLAIMED, Result.SKIPPED)
    ranked = sorted(found.items(), key=lambda item: order.index(item[0][0]))
    shown = cuts.take(ranked, detail.notes, "reasons of comparisons that did not pass")
    return tuple(
        Note(
            mark=result.words,
            text=view.say(f"{many(names)}: {text}", detail.quote),
        )
        for (result, text), names in shown
    )


def many(names: list[str]) -> str:
    """``variant 1``, or ``variants 1, 3``."""
    return f"variant{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _said(verdict: Verdict) -> str:
    against = "" if verdict.against is None else f" against {verdict.against[0]}"
    cause = f" (cause: {verdict.cause})" if verdict.cause else ""
    return f"{verdict.kind}{against}: {verdict.reason}{cause}"


def _joined(reasons: list[str]) -> str:
    """Each reason once, with the number of runs it is true of."""
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return "; ".join(
        reason if count == 1 else f"{reason} ({count} runs)" for reason, count in counts.items()
    )


def not_run(view: View, detail: Detail, cuts: Cuts) -> tuple[Note, ...]:
    """Variants of the matrix that were not planned, with the reason."""
    entries = [entry for entry in view.record.manifest.variants if not entry.planned]
    return tuple(
        Note(
            mark="REFUSED" if entry.refused else "SKIPPED",
            text=view.say(
                f"variant {entry.variant.id} ({entry.variant.name}): "
                f"{entry.why_not or 'no reason recorded'}",
                detail.quote,
            ),
        )
        for entry in cuts.take(entries, detail.notes, "variants that were not run")
    )


# ---- what has to be said of the variants ------------------------------------------------------


def without_trace(view: View) -> str | None:
    """Names of the variants whose effect no line of the log can show."""
    names = [n for n in view.ran if n != view.base and view.effect(n) is Effect.UNOBSERVABLE]
    return _listed(view, names)


def only_anchored(view: View) -> str | None:
    """Names of the variants that were never compared at their own residency."""
    return _listed(
        view,
        [
            summary.id
            for summary in view.judgment.summaries
            if summary.exact and summary.baseline_residency and not summary.own_residency
        ],
    )


def legend(view: View, detail: Detail, cuts: Cuts) -> str | None:
    """What the Roman numbers of residencies stand for."""
    labels = {place_of(run): run.residency.label for runs in view.ran.values() for run in runs}
    named = [f"{n}: {view.say(labels[place], 160)}" for place, n in view.numerals.items()]
    return "; ".join(cuts.take(named, detail.notes, "names of residencies")) or None


def anchors(view: View) -> str | None:
    """Ids of the anchor runs, with what was forced and what the engine opened of it."""
    return _listed(
        view,
        [
            name + _forced(runs[0])
            for name, runs in view.ran.items()
            if runs and runs[0].purpose is Purpose.ANCHOR
        ],
    )


def _forced(run: Run) -> str:
    """On a native pack a forced size is a budget: what comes of it is another number."""
    cache = run.reading.cache
    if cache is None or cache.forced is None or cache.opened is None:
        return ""
    return f": {cache.forced} forced, {cache.opened} opened"


def _listed(view: View, names: list[str]) -> str | None:
    return view.say(", ".join(names), 300) if names else None


def evidence(view: View, detail: Detail, cuts: Cuts) -> tuple[str, ...]:
    """What the logs say against each other: doubts first, lines that only some print last."""
    told = view.judgment.evidence
    every = [
        *_lines(view, told.doubts, "speaks against the placement of variant {}"),
        *(f"printed by the baseline too: {line}" for line in told.everywhere),
        *(f"acknowledged as harmless by the matrix file: {line}" for line in told.acknowledged),
        *_lines(view, told.only, "only variant {} printed"),
        *_lines(view, told.missing, "the baseline printed, variant {} never"),
    ]
    shown = cuts.take(every, detail.notes, "lines that no reader knows")
    return tuple(view.say(text, detail.quote) for text in shown)


def _lines(view: View, told: Mapping[str, Sequence[Doubt | str]], what: str) -> list[str]:
    """A few lines of each variant, in matrix order; the rest is counted."""
    found = []
    for name in sorted(told, key=lambda name: view.record.index.rank.get(name, 0)):
        said = what.format(name)
        lines = [each if isinstance(each, str) else each.line for each in told[name]]
        found += [f"{said}: {line}" for line in lines[:MOST_SHOWN]]
        if len(lines) > MOST_SHOWN:
            found.append(f"{said}: {len(lines) - MOST_SHOWN} more lines, see run.json")
    return found


def warnings(view: View, detail: Detail, cuts: Cuts) -> tuple[str, ...]:
    """The judge's warnings and those of the record, each once."""
    record = view.record
    every = (*view.judgment.warnings, *record.manifest.warnings, *record.warnings)
    shown = cuts.take(list(dict.fromkeys(every)), detail.notes, "warnings")
    return tuple(view.say(text, detail.quote) for text in shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A sentence, and the command line that follows it."""

    text: str
    command: str


def advice(view: View) -> tuple[Advice, ...]:
    """At most one piece of advice a cause."""
    if not view.record.manifest.variants:
        return ()
    found = (_pinned(view), _one_size(view), _other_probe(view))
    return tuple(item for item in found if item is not None)


def _pinned(view: View) -> Advice | None:
    """A known cause of a difference can be taken away by the matrix's recipe."""
    pinned = view.record.manifest.pinned
    causes = dict.fromkeys(
        verdict.cause
        for verdict in view.judgment.verdicts
        if verdict.cause
        and (
            verdict.result is Result.INCONCLUSIVE
            # A near tie is nothing that a recipe could hold still.
            or (verdict.result is Result.FAIL and verdict.cause != Tie.NEAR_TIE)
        )
    )
    if not causes or not pinned.exists or pinned.asked:
        return None
    why = view.say("; ".join(filter(None, causes)), 300)
    return Advice(
        text=f"a known cause of a difference was seen ({why}); run with the pinned recipe",
        command=_command(view, extra=("--pinned",)),
    )


def _one_size(view: View) -> Advice | None:
    """Automatic sizes that move between repeats make more residencies than can be anchored."""
    manifest = view.record.manifest
    excess = any(
        group.bond is Bond.EXCESS
        for probe in manifest.probes
        for group in groups(view.record, probe.name)
    )
    smallest = _smallest(view) if excess else None
    if smallest is None or manifest.engine.name not in ENGINES:
        return None
    sized = engine(manifest.engine.name)
    if not isinstance(sized, SizedCache):
        return None
    if (flags := sized.force(manifest.model_flags, smallest)) is None:
        return None
    return Advice(
        text="the runs have more residencies than are anchored; give all of them one size",
        command=_command(view, flags=flags),
    )


def _smallest(view: View) -> Run | None:
    """The usable run with the smallest cache, which every other one can hold."""
    sized = [
        (cache.opened, run)
        for run in view.record.runs
        if run.usable and (cache := run.reading.cache) is not None and cache.opened is not None
    ]
    return min(sized, key=lambda pair: pair[0])[1] if sized else None


def _other_probe(view: View) -> Advice | None:
    """Equal garbage is no exactness."""
    if not any(run.state is RunState.DEGENERATE for run in view.record.runs):
        return None
    return Advice(
        text="a stream only repeats itself, which shows nothing; "
        "try another prompt, or real text as token ids with --tokens-file",
        command=_command(view, extra=("--seed", "8")),
    )


def _command(view: View, *, extra: Sequence[str] = (), flags: Sequence[str] | None = None) -> str:
    """The harness's own command with something added before, or put after, the first ``--``."""
    argv = view.record.manifest.argv
    place = argv.index("--") if "--" in argv else len(argv)
    after = argv[place + 1 :] if flags is None else flags
    tail = ("--", *after) if after else ()
    return view.command((*_without_out(argv[:place]), *extra, *tail))


def _without_out(argv: Sequence[str]) -> tuple[str, ...]:
    """The output folder is taken by now; another run gets one of its own."""
    kept: list[str] = []
    skip = False
    for arg in argv:
        if not (skip or arg == "--out" or arg.startswith("--out=")):
            kept.append(arg)
        skip = arg == "--out" and not skip
    return tuple(kept)
