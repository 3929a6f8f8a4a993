"""What a report shows verbatim, redacted and not reworded: a view in, blocks of lines out.

Log lines, command lines, rig and probes; and, where two streams part, both continuations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.report.sections import many
from hetero_test.report.view import folder
from hetero_test.values.verdict import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hetero_test.report.budget import Cuts, Detail
    from hetero_test.report.view import View
    from hetero_test.values.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbatimBlock:
    """A titled block of lines, shown verbatim.

    Attributes:
        info: what the lines are: ``text``, ``diff`` or ``console``.
        remarks: sentences below the lines.
    """

    title: str
    lines: tuple[str, ...]
    info: str = "text"
    remarks: tuple[str, ...] = ()


def engine_lines(view: View, detail: Detail, cuts: Cuts) -> tuple[VerbatimBlock, ...]:
    """Role, memory and peer lines of one run of each variant; equal ones only once."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, runs in view.ran.items():
        told = next((run.reading.lines for run in runs if run.usable and run.reading.lines), None)
        told = told or next((run.reading.lines for run in runs if run.reading.lines), None)
        if told:
            found.setdefault(told, []).append(name)
    sets = cuts.take(
        list(found.items()), detail.line_sets, "sets of role, memory and peer lines", "runs/"
    )
    if left := sum(max(0, len(lines) - detail.lines) for lines, _ in sets):
        cuts.notes.append(f"{left} role, memory and peer lines (runs/)")
    return tuple(
        VerbatimBlock(
            title=view.say(many(names), 160),
            lines=tuple(view.say(line, detail.quote) for line in lines[: detail.lines]),
        )
        for lines, names in sets
    )


def own_command(view: View, detail: Detail) -> str:
    """The harness's own command line."""
    return _clipped(view.command(view.record.manifest.argv), detail)


def commands(view: View, detail: Detail, cuts: Cuts) -> tuple[str, ...]:
    """One comment and one shell line for each distinct command, in report order."""
    found = dict.fromkeys(
        (name, run.outcome.argv, run.cell.env)
        for name, runs in view.ran.items()
        for run in runs
        if run.outcome.argv
    )
    lines: list[str] = []
    for name, argv, env in cuts.take(
        tuple(found), detail.commands, "command lines", "manifest.json"
    ):
        lines += [f"# variant {view.say(name, 40)}", _clipped(view.command(argv, env), detail)]
    return tuple(lines)


def _clipped(line: str, detail: Detail) -> str:
    """A command line that cannot fill the report alone; a cut one says so."""
    longest = 10 * detail.quote
    return line if len(line) <= longest else f"{line[:longest]} # cut, {len(line)} characters"


def tails(view: View, detail: Detail, cuts: Cuts) -> tuple[VerbatimBlock, ...]:
    """Log tails: of each run that is not OK, then of each variant's first run."""
    first = [runs[0] for runs in view.ran.values() if runs]
    runs = {run.key: run for run in (*view.troubled, *first) if run.reading.tail}
    shown = cuts.take(list(runs.values()), detail.tails, "log tails", "runs/")
    return tuple(
        VerbatimBlock(
            title=view.say(f"{run.variant} run {run.repeat}: {run.state} ({folder(run)})", 160),
            lines=tuple(
                view.say(line, detail.quote) for line in run.reading.tail[-detail.tail_lines :]
            ),
        )
        for run in shown
    )


def rig_lines(view: View, detail: Detail, cuts: Cuts) -> tuple[str, ...]:
    """Devices as the engine numbers them, what every run inherits, then the host's facts."""
    manifest = view.record.manifest
    rig = manifest.rig
    lines = [f"found by: {rig.how or 'unknown'}"]
    lines += [f"device {d.id}: {d.name}" + (f" ({d.note})" if d.note else "") for d in rig.devices]
    lines += [f"inherited by every run: {name}={value}" for name, value in manifest.inherited]
    lines += [f"{name}: {value}" for name, value in rig.facts]
    lines += [f"note: {note}" for note in rig.notes]
    shown = cuts.take(lines, detail.notes, "lines about the rig", "manifest.json")
    return tuple(view.say(line, detail.quote) for line in shown)


def probe_lines(view: View, detail: Detail, cuts: Cuts) -> tuple[str, ...]:
    """How each prompt was made, how long it is, and its first ids."""
    lines = [
        f"{probe.name}: {len(probe.ids)} tokens, {probe.source}, {probe.max_new} new tokens; "
        f"first ids {' '.join(map(str, probe.ids[:8]))}"
        for probe in view.record.manifest.probes
    ]
    shown = cuts.take(lines, detail.notes, "probes", "probes/")
    return tuple(view.say(line, detail.quote) for line in shown)


def splits(view: View, detail: Detail, cuts: Cuts) -> tuple[VerbatimBlock, ...]:
    """The continuations of each difference that a verdict found; what failed comes first."""
    order = (Result.FAIL, Result.INCONCLUSIVE, Result.NOT_CLAIMED)
    found = [v for v in view.judgment.verdicts if v.difference is not None and v.result in order]
    found.sort(key=lambda verdict: order.index(verdict.result))
    distinct: dict[tuple[str, ...], Verdict] = {}
    for verdict in found:
        lines = _continuations(view, verdict, detail.ids)
        distinct.setdefault((verdict.result, verdict.probe, *lines), verdict)
    shown = cuts.take(list(distinct.items()), detail.splits, "first splits")
    return tuple(
        VerbatimBlock(
            title=_split_title(view, verdict),
            lines=key[2:],
            info="diff",
            remarks=_remarks(view, verdict, detail),
        )
        for key, verdict in shown
    )


def _remarks(view: View, verdict: Verdict, detail: Detail) -> tuple[str, ...]:
    """What is known of the cause of a difference."""
    told = [f"known cause: {verdict.cause}"] if verdict.cause else []
    if verdict.explanation is not None and verdict.explanation.text:
        told.append(verdict.explanation.text)
        told += _candidates("reference", verdict.explanation.reference_top)
        told += _candidates("judged run", verdict.explanation.this_top)
    return tuple(view.say(text, detail.quote) for text in told)


def _candidates(side: str, top: Sequence[tuple[int, float]]) -> list[str]:
    """The best candidates of one side at the difference, with their log-probabilities."""
    if not top:
        return []
    told = ", ".join(f"{token} at {logprob:.8g}" for token, logprob in top)
    return [f"best of the {side}: {told}"]


def _split_title(view: View, verdict: Verdict) -> str:
    assert verdict.difference is not None
    run = "" if verdict.repeat is None else f" run {verdict.repeat}"
    against = "its first run"
    if verdict.against is not None:
        against = f"{verdict.against[0]} run {verdict.against[1]}"
    mine, theirs = (side[:1] for side in (verdict.difference.this, verdict.difference.reference))
    text = (
        f"{verdict.result}: {verdict.variant}{run} against {against}, "
        f"first split at token {verdict.difference.index}"
    )
    if mine and theirs:
        text += f" ({mine[0]} instead of {theirs[0]})"
    if len(view.record.manifest.probes) > 1:
        text += f" of probe {verdict.probe}"
    return view.say(text, 240)


def _continuations(view: View, verdict: Verdict, count: int) -> tuple[str, ...]:
    """Two equal ids before the split as context, then both sides."""
    difference = verdict.difference
    assert difference is not None
    at = difference.index
    this, reference = difference.this, difference.reference
    run = None
    if verdict.repeat is not None:
        run = view.run_of.get((verdict.variant, verdict.probe, verdict.repeat))
    other = None
    if verdict.against is not None:
        other = view.run_of.get((verdict.against[0], verdict.probe, verdict.against[1]))
    if run is not None and run.stream is not None:
        this = run.stream[at : at + count]
    if other is not None and other.stream is not None:
        reference = other.stream[at : at + count]
    lines = [f"- {_ids(reference[:count])}", f"+ {_ids(this[:count])}"]
    if run is not None and run.stream is not None and at:
        before = run.stream[max(0, at - count // 2) : at]
        lines.insert(0, f"  {'… ' if len(before) < at else ''}{_ids(before)}")
    if difference.prefix is not None:
        shorter = "the judged run" if difference.prefix == "this" else "the reference"
        lines.append(f"# {shorter} ends here: a strict prefix of the other")
    return tuple(lines)


def _ids(ids: Iterable[int]) -> str:
    return " ".join(map(str, ids)) or "(end of the stream)"
