"""Warnings that are no verdicts: what a careful reader of the numbers should know."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hetero_test.judge.evidence import MOST_SHOWN
from hetero_test.judge.groups import baseline_id, comparable
from hetero_test.judge.rules import renumbered
from hetero_test.values.run import AS_PICKED, NO_TRACE, Purpose
from hetero_test.values.verdict import Kind, Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hetero_test.values.reading import Speculation
    from hetero_test.values.record import Record
    from hetero_test.values.run import Run
    from hetero_test.values.verdict import Evidence, Verdict

Commands = list[tuple[str, list["Run"]]]
"""The runs of each command of the rounds, beside the id of its variant."""

DRIFT = 0.03
"""Relative change of decode time between first and last baseline that is worth telling."""
CACHED_REPEAT = 1.5
"""A repeat this many times faster than the one before it reads a cache, not the placement."""


def cautions(record: Record, verdicts: Sequence[Verdict], told: Evidence) -> tuple[str, ...]:
    """Every warning that the runs of a record give reason for, each a sentence."""
    commands = _commands(record)
    found = [
        *draft_cautions(record, verdicts),
        *_unknown_lines(told),
        *_not_repeated(commands),
        *_devices(record),
        *_same_lines(record, commands),
        *_drift(record, commands),
        *_cached(commands),
        *_warmup(record),
        *_after_hang(record),
        *(f"variant {r.variant}, repeat {r.repeat}: {t}" for r in record.runs for t in r.warnings),
    ]
    return tuple(dict.fromkeys(found))


# ---- drafts -------------------------------------------------------------------------------


def draft_cautions(record: Record, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Drafters of one kind that drafted differently although the streams are equal.

    A drafter can be broken without the output showing it: the model corrects what it drafts.
    """
    found = []
    for verdict in verdicts:
        if verdict.result is Result.PASS:
            found += [_drafted(one, other) for one, other in _equal_pairs(record, verdict)]
            found += [_vanished(record, pair) for pair in _equal_pairs(record, verdict)]
    return tuple(dict.fromkeys(text for text in found if text is not None))


def _equal_pairs(record: Record, verdict: Verdict) -> Iterator[tuple[Run, Run]]:
    """The pairs of runs that a verdict found equal."""
    runs = record.index.by_key
    if verdict.kind is Kind.REPEAT:
        mine = record.index.by_command[verdict.variant, verdict.probe]
        yield from ((other, mine[0]) for other in mine[1:])
    else:
        assert verdict.against is not None
        assert verdict.repeat is not None
        variant, repeat = verdict.against
        yield (
            runs[verdict.variant, verdict.probe, verdict.repeat],
            runs[variant, verdict.probe, repeat],
        )


def _drafted(one: Run, other: Run) -> str | None:
    """How two runs with one stream drafted differently, if drafters of one kind did."""
    kinds = (one.reading.draft.kind, other.reading.draft.kind)
    if one.speculation is None or other.speculation is None:
        return None
    if kinds[0] != kinds[1] or not _unequal(one.speculation, other.speculation):
        return None
    return (
        f"draft statistics differ under equal streams: variant {one.variant} accepted "
        f"{_accepted(one.speculation)}, variant {other.variant} {_accepted(other.speculation)}"
    )


def _vanished(record: Record, pair: tuple[Run, Run]) -> str | None:
    """A drafter that one of two runs tells nothing of although both commands bring it."""
    told = [run for run in pair if run.speculation is not None]
    brings = {e.variant.id for e in record.manifest.variants if e.drafter}
    if len(told) != 1 or not brings.issuperset(run.of for run in pair):
        return None
    silent = pair[0] if told[0] is pair[1] else pair[1]
    name = f"variant {silent.variant}"
    name += f" (repeat {silent.repeat})" if silent.variant == told[0].variant else ""
    return (
        f"{name} prints no draft statistics, variant {told[0].variant} does under an equal "
        "stream: its drafter may not have run"
    )


def _unequal(one: Speculation, other: Speculation) -> bool:
    """Whether any number that both logs tell is another one."""
    pairs = (
        (one.rounds, other.rounds),
        (one.window, other.window),
        (one.accepted, other.accepted),
        (one.offered, other.offered),
    )
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _accepted(drafts: Speculation) -> str:
    numbers = (drafts.accepted, drafts.offered, drafts.rounds)
    accepted, offered, rounds = ("?" if number is None else number for number in numbers)
    window = "" if drafts.window is None else f" of {drafts.window}"
    return f"{accepted} of {offered} in {rounds} rounds{window}"


# ---- lines that no reader knows -----------------------------------------------------------


def _unknown_lines(told: Evidence) -> list[str]:
    """What speaks of a failure, a refusal or a thing left undone, quoted."""
    found = []
    for name, doubts in told.doubts.items():
        for doubt in doubts[:MOST_SHOWN]:
            what = "was not carried out, by" if doubt.undone else "is doubted because of"
            found.append(f"the placement of variant {name} {what} a line: {doubt.line}")
        if len(doubts) > MOST_SHOWN:
            found.append(f"variant {name} printed {len(doubts) - MOST_SHOWN} more such lines")
    found += [
        f"the baseline printed a line that speaks of trouble, and so may others: {line}"
        for line in told.everywhere[:MOST_SHOWN]
    ]
    if len(told.everywhere) > MOST_SHOWN:
        found.append(f"there are {len(told.everywhere) - MOST_SHOWN} more such lines")
    return found


# ---- what differs between repeats -----------------------------------------------------------


def _not_repeated(commands: Commands) -> list[str]:
    """Residencies and movers that differ between repeats of one command."""
    found = []
    for name, runs in commands:
        usable = [run for run in runs if run.usable]
        labels = {run.residency.key: run.residency.label for run in usable if run.residency.known}
        if len(labels) > 1:
            shown = ", ".join(labels.values())
            found.append(f"the residency of variant {name} moved between repeats: {shown}")
        values_of: dict[str, dict[str, None]] = {}
        for factor in (factor for run in usable for factor in run.reading.movers):
            if factor.value is not None:
                values_of.setdefault(factor.words, {})[str(factor.value)] = None
        for words, values in values_of.items():
            if len(values) > 1:
                shown = ", ".join(values)
                found.append(f"{words} of variant {name} moved between repeats: {shown}")
    return found


def _devices(record: Record) -> list[str]:
    # The baseline alone on one device sees that device under another number, on purpose.
    told = renumbered(run.reading.devices for run in record.runs if run.purpose is not Purpose.HOME)
    if told is None:
        return []
    what = f"the device list changed between runs ({told})"
    return [f"{what}; labels of devices may not mean the same card"]


# ---- what did not move --------------------------------------------------------------------


def _same_lines(record: Record, commands: Commands) -> list[str]:
    """Two placements with identical memory and role lines: a flag had no visible effect."""
    base = baseline_id(record.manifest)
    effects = {e.variant.id: dict(e.variant.effect) for e in record.manifest.variants}
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    told: dict[str, None] = {}
    for name, runs in commands:
        run = next((run for run in runs if run.usable and run.reading.lines), None)
        if run is None:
            continue
        other = seen.setdefault((run.probe, run.reading.lines), name)
        if other != name and _differ_in_place(base, effects, name, other):
            told[
                f"variants {other} and {name} have identical memory and role lines: "
                "a flag had no visible effect"
            ] = None
    return list(told)


def _differ_in_place(
    base: str, effects: Mapping[str, Mapping[str, str]], one: str, other: str
) -> bool:
    """Whether two variants are meant to place something differently.

    A variant that says nothing of its effect is meant to differ from every other; what the
    engine picks itself may be what another variant asks for.
    """
    if any(not effects[name] and name != base for name in (one, other)):
        return True
    silent = {AS_PICKED, NO_TRACE, None}
    parts = {part for name in (one, other) for part in effects[name]}
    places = [(effects[one].get(part), effects[other].get(part)) for part in parts]
    if base in (one, other):
        return any(set(pair) - silent for pair in places)
    return any(not silent & set(pair) and pair[0] != pair[1] for pair in places)


# ---- times --------------------------------------------------------------------------------


def _drift(record: Record, commands: Commands) -> list[str]:
    """The baseline that is slower or faster at the end than at the beginning."""
    base = baseline_id(record.manifest)
    found = []
    for name, runs in commands:
        speeds = [speed for _, speed in _timed(runs)]
        if name == base and speeds and abs(change := speeds[-1] / speeds[0] - 1) > DRIFT:
            found.append(
                f"the baseline's decode speed drifted by {change:+.1%} between its first and "
                "its last run: differences below that are not resolvable"
            )
    return found


def _cached(commands: Commands) -> list[str]:
    """Repeats that are so much faster that they cannot have done the same work."""
    found = []
    for name, runs in commands:
        for (before, slow), (after, fast) in pairwise(_timed(runs)):
            if before.stream == after.stream and fast > CACHED_REPEAT * slow:
                found.append(
                    f"variant {name} decoded {fast / slow:.1f} times as fast in repeat "
                    f"{after.repeat} as in the one before: a cached repeat or a busy machine, "
                    "not comparable"
                )
    return found


def _timed(runs: Sequence[Run]) -> list[tuple[Run, float]]:
    """The usable runs of which the decode speed is known, with it."""
    return [(run, speed) for run in runs if run.usable and (speed := run.timings.decode_tok_s)]


# ---- further runs of the baseline ---------------------------------------------------------


def _warmup(record: Record) -> list[str]:
    found = []
    for run in record.warmup:
        name = f"warm-up run {run.repeat}" + _of_variant(record, run)
        if not run.usable:
            found.append(f"{name} was {run.state}: {run.reason}")
        elif _other_stream(record, run):
            found.append(f"the stream of {name} differs from that of its first run")
    return found


def _of_variant(record: Record, run: Run) -> str:
    return "" if run.of == baseline_id(record.manifest) else f" of variant {run.of}"


def _after_hang(record: Record) -> list[str]:
    """A rig that runs on after a hang, but not as before."""
    return [
        "the stream of the baseline after a hang differs from that of its first run: "
        "what ran since then may be the rig's fault"
        for run in record.rechecks
        if run.purpose is Purpose.AFTER_HANG and run.usable and _other_stream(record, run)
    ]


def _other_stream(record: Record, run: Run) -> bool:
    """Whether a further run of a command gave another stream at the residency it had before."""
    mine = record.index.by_command.get((run.of, run.probe), ())
    alike = [
        each
        for each in mine
        if each.purpose is Purpose.ROUND
        and comparable(each)
        and each.residency.equals(run.residency)
    ]
    return bool(alike) and min(alike, key=lambda each: each.repeat).stream != run.stream


def _commands(record: Record) -> Commands:
    """The runs of each command of the rounds, in the order in which they were planned."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(record.runs, key=lambda run: run.order):
        if run.purpose is Purpose.ROUND:
            found.setdefault((run.variant, run.probe), []).append(run)
    return [(name, runs) for (name, _), runs in found.items()]
