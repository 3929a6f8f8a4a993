"""The conclusion in words: a record and its judgment come in, plain text goes out. Pure.

:func:`headline` and :func:`sentence` are the first lines of every report;
:func:`verdict_lines` and :func:`counts_line` are what a terminal or a CI log shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.judge.groups import baseline_id
from hetero_test.publish.printable import printable
from hetero_test.values.record import Ending
from hetero_test.values.run import NO_TRACE, UNMOVED, Effect
from hetero_test.values.verdict import Conclusion, Kind, Moved, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.values.record import Record
    from hetero_test.values.run import Run, RunState
    from hetero_test.values.variant import PlannedVariant
    from hetero_test.values.verdict import Judgment, VariantSummary, Verdict


def headline(
    record: Record,
    conclusion: Conclusion,
    reason: str,
    found: Sequence[Verdict],
    summaries: Sequence[VariantSummary],
) -> str:
    """The first line of the report, verdict in words first."""
    ran = _ran(record)
    if conclusion is Conclusion.INCONCLUSIVE:
        text = reason
    elif conclusion is Conclusion.FAIL:
        text = _failed(record, found, len(ran))
    else:
        text = _passed(record, found, summaries, ran)
    if not any(places_something(entry) for entry in ran) and reason != one_device(record):
        count = record.manifest.rig.device_count
        devices = "" if count is None else f" ({_many(count, 'device', 'devices')})"
        text += f"; no placement was tested{devices}"
    return f"{conclusion} — {text}"


def sentence(
    record: Record,
    conclusion: Conclusion,
    reason: str,
    found: Sequence[Verdict],
    summaries: Sequence[VariantSummary],
) -> str:
    """The sentence below the headline: what explains it, and which effects are not proven."""
    if conclusion is Conclusion.PASS:
        parts = [_compared(record, found)]
    elif conclusion is Conclusion.FAIL:
        parts = [reason]
        if record.ending is not Ending.COMPLETE:
            parts.append(unfinished(record))
    else:
        left = sum(v.result is Result.INCONCLUSIVE for v in found)
        open_ = _many(left, "comparison stays open", "comparisons stay open")
        parts = [open_ if left else reason]
    for effect, told in UNMOVED.items():
        parts += [
            f"{'equal, but ' if summary.exact else ''}variant {summary.id} {told}"
            f"{_seen(record, summary.id, effect)}"
            for summary in summaries
            if summary.effect is effect
        ]
    if silent := [s.id for s in summaries if s.effect is Effect.UNOBSERVABLE]:
        names = ("variant " if len(silent) == 1 else "variants ") + ", ".join(silent)
        parts.append(f"not everything that {names} changed leaves a trace in the log")
    return "; ".join(parts)


def unfinished(record: Record) -> str:
    """How far a matrix got that is not complete."""
    why = f": {record.ending_reason}" if record.ending_reason else ""
    return f"the matrix is not complete ({record.ending}{why})"


def one_device(record: Record) -> str | None:
    """Why a matrix on one device is open; None where several are there, or one was announced.

    A second card that vanished may not leave the mark of a gate for two.
    """
    if record.manifest.rig.device_count != 1 or record.manifest.one_device:
        return None
    placed = any(places_something(entry) for entry in _ran(record))
    what = "no placement over several" if placed else "no placement"
    return f"one device found, {what} was tested; owners of one card say `--devices 1`"


def places_something(entry: PlannedVariant) -> bool:
    """Whether a variant claims to place anything, rather than only to change how."""
    return not entry.variant.effect or any(
        expected != NO_TRACE for _, expected in entry.variant.effect
    )


def _ran(record: Record) -> tuple[PlannedVariant, ...]:
    """Planned variants but the baseline, without those that the rig or the engine refused."""
    base = baseline_id(record.manifest)
    states: dict[str, set[RunState]] = {}
    for run in record.runs:
        states.setdefault(run.variant, set()).add(run.state)
    return tuple(
        entry
        for entry in record.manifest.variants
        if entry.planned
        and entry.variant.id != base
        and not _none_started(states.get(entry.variant.id, set()))
    )


def _none_started(states: set[RunState]) -> bool:
    return bool(states) and all(state.never_started for state in states)


def _failed(record: Record, found: Sequence[Verdict], ran: int) -> str:
    fails = [v for v in found if v.result is Result.FAIL]
    differ = dict.fromkeys(
        record.index.behind(v.variant) for v in fails if v.kind is not Kind.REPEAT
    )
    unsteady = dict.fromkeys(v.variant for v in fails if v.kind is Kind.REPEAT)
    parts = []
    if differ:
        verb = "differs" if len(differ) == 1 else "differ"
        names = ", ".join(differ)
        parts.append(f"{len(differ)} of {ran} variants {verb} at equal residency ({names})")
    if unsteady:
        verb = "does" if len(unsteady) == 1 else "do"
        parts.append(f"{len(unsteady)} {verb} not repeat ({', '.join(unsteady)})")
    return "; ".join(parts)


OWN = "are the baseline's own placement"


def _passed(
    record: Record,
    found: Sequence[Verdict],
    summaries: Sequence[VariantSummary],
    ran: Sequence[PlannedVariant],
) -> str:
    names = {entry.variant.id for entry in ran}
    mine = [summary for summary in summaries if summary.id in names]
    exact = sum(summary.exact for summary in mine)
    own = sum(summary.own_residency for summary in mine)
    base = sum(summary.baseline_residency for summary in mine)
    effects = [summary.effect for summary in mine]
    moved = sum(s.effect is Effect.PROVEN and s.moved is Moved.YES for s in mine)
    same = sum(summary.moved is Moved.SAME for summary in mine)
    where = f"({own} at their own residency, {base} at the baseline's)"
    unclaimed = len({v.variant for v in found if v.result is Result.NOT_CLAIMED})
    parts = [
        f"{exact} of {len(mine)} variants exact {where}",
        f"{moved} proven to have moved",
        *([_many(same, "is the baseline's own placement", OWN)] if same else []),
        _many(effects.count(Effect.UNOBSERVABLE), "leaves no trace", "leave no trace"),
        *(
            f"{number} {effect.words}"
            for effect in (Effect.DOUBTED, Effect.NOT_SEEN, Effect.CONTRADICTED)
            if (number := effects.count(effect))
        ),
        *([f"{unclaimed} not claimed"] if unclaimed else []),
        f"{_not_run(record, names)} not run",
    ]
    return ", ".join(parts)


def _many(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def _not_run(record: Record, names: set[str]) -> int:
    """Variants that did not run for another reason than the number of devices."""
    base = baseline_id(record.manifest)
    return sum(
        entry.variant.id not in names and entry.variant.id != base and not entry.few_devices
        for entry in record.manifest.variants
    )


def _compared(record: Record, found: Sequence[Verdict]) -> str:
    passed = [v for v in found if v.result is Result.PASS and v.kind is not Kind.REPEAT]
    keys = {(v.variant, v.probe, v.repeat) for v in passed}
    lengths = sorted({len(run.stream or ()) for run in record.runs if run.key in keys})
    shortest = "" if lengths[0] == lengths[-1] else f"{lengths[0]} to "
    tokens = f"{shortest}{lengths[-1]} tokens"
    compared = _many(len(passed), "comparison", "comparisons")
    prompts = _many(len(record.manifest.probes), "prompt", "prompts")
    return f"{compared} at equal residency over {tokens} of {prompts} found no difference"


def _seen(record: Record, name: str, effect: Effect) -> str:
    """Where the log shows what a flag should have moved."""
    for run in record.index.by_id.get(name, ()):
        for part in run.effect_parts:
            if part.effect is effect:
                where = "nothing tells" if part.seen is None else f"it was on {part.seen}"
                return f" ({part.part}: expected {part.expected}, {where})"
    return ""


WIDEST = 300
MOST_TROUBLES = 4
"""The report has them all."""
SHOWN_RESULTS = (Result.INCONCLUSIVE, Result.SKIPPED, Result.NOT_CLAIMED)


def verdict_lines(record: Record, judgment: Judgment) -> tuple[str, ...]:
    """Headline, reason, counts, and one line a variant."""
    lines = [judgment.headline, judgment.reason, counts_line(record, judgment)]
    for summary in judgment.summaries[1:]:
        effect = "" if summary.effect is None else f" [{summary.effect}]"
        lines.append(f"variant {summary.id}: {summary.text}{effect}")
    lines += _troubles(record)
    lines += [f"warning: {text}" for text in judgment.warnings]
    return tuple(printable(line, WIDEST) for line in lines if line)


def _troubles(record: Record) -> list[str]:
    """What the log shows of the first run of each variant that is not OK; the baseline's first."""
    first: dict[str, Run] = {}
    for run in sorted(record.runs, key=lambda run: run.order):
        if not run.usable:
            first.setdefault(run.variant, run)
    return [
        f"variant {run.variant}, repeat {run.repeat}: {run.state}: {run.reason}"
        + (f": {run.quote}" if run.quote else "")
        for run in list(first.values())[:MOST_TROUBLES]
    ]


def counts_line(record: Record, judgment: Judgment) -> str:
    """``16 runs, 20 PASS / 0 FAIL (8 repeat, 10 exact, 2 anchor), 1 SKIPPED``."""
    kinds = ", ".join(
        f"{number} {kind}"
        for kind in Kind
        if (number := sum(v.kind is kind and v.result is Result.PASS for v in judgment.verdicts))
    )
    text = f"{len(record.runs)} runs, {judgment.count(Result.PASS)} PASS"
    text += f" / {judgment.count(Result.FAIL)} FAIL"
    text += f" ({kinds})" if kinds else ""
    for result in SHOWN_RESULTS:
        if number := judgment.count(result):
            text += f", {number} {result.words}"
    return text
