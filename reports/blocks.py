"""What a report shows verbatim: log lines, command lines, rig, probes; redacted, not reworded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .sections import many
from .view import folder

if TYPE_CHECKING:
    from .budget import Cuts, Detail
    from .view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A titled block of lines, shown verbatim.

    Attributes:
        info: what the lines are: ``text``, ``diff`` or ``console``.
        remarks: sentences below the lines.
    """

    title: str
    lines: tuple[str, ...]
    info: str = "text"
    remarks: tuple[str, ...] = ()


def engine_lines(view: View, detail: Detail, cuts: Cuts) -> tuple[Block, ...]:
    """Role, memory and peer lines of one run of each variant; equal ones only once."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name, runs in view.ran.items():
        told = next((run.lines for run in runs if run.usable and run.lines), None)
        told = told or next((run.lines for run in runs if run.lines), None)
        if told:
            found.setdefault(told, []).append(name)
    sets = cuts.take(
        list(found.items()), detail.line_sets, "sets of role, memory and peer lines", "runs/"
    )
    if left := sum(max(0, len(lines) - detail.lines) for lines, _ in sets):
        cuts.notes.append(f"{left} role, memory and peer lines (runs/)")
    return tuple(
        Block(
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
        (name, run.argv, run.env) for name, runs in view.ran.items() for run in runs if run.argv
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


def tails(view: View, detail: Detail, cuts: Cuts) -> tuple[Block, ...]:
    """Log tails: of each run that is not OK, then of each variant's first run."""
    first = [runs[0] for runs in view.ran.values() if runs]
    runs = {run.key: run for run in (*view.troubled, *first) if run.tail}
    shown = cuts.take(list(runs.values()), detail.tails, "log tails", "runs/")
    return tuple(
        Block(
            title=view.say(f"{run.variant} run {run.repeat}: {run.state} ({folder(run)})", 160),
            lines=tuple(view.say(line, detail.quote) for line in run.tail[-detail.tail_lines :]),
        )
        for run in shown
    )


def rig_lines(view: View, detail: Detail, cuts: Cuts) -> tuple[str, ...]:
    """Devices as the engine numbers them, then the host's facts."""
    rig = view.record.manifest.rig
    lines = [f"found by: {rig.how or 'unknown'}"]
    lines += [f"device {d.id}: {d.name}" + (f" ({d.note})" if d.note else "") for d in rig.devices]
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
