"""Warnings that are no verdicts: what a careful reader of the numbers should know."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from harness.groups import baseline_id
from harness.model import Kind, Purpose, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model import Run, Verdict
    from harness.record import Record

DRIFT = 0.03
"""Relative change of decode time between first and last baseline that is worth telling."""
CACHED_REPEAT = 1.5
"""A repeat this many times faster than the one before it reads a cache, not the placement."""


def cautions(record: Record, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Every warning that the runs of a record give reason for, each a sentence."""
    found: list[str] = []
    found += _drafts(record, verdicts)
    found += _moved(record)
    found += _devices(record)
    found += _same_lines(record)
    found += _drift(record)
    found += _cached(record)
    found += _warmup(record)
    for run in record.runs:
        found += [f"variant {run.variant}, repeat {run.repeat}: {text}" for text in run.warnings]
    return tuple(dict.fromkeys(found))


def _run(record: Record, variant: str, repeat: int | None, probe: str) -> Run | None:
    return next((r for r in record.runs if r.key == (variant, probe, repeat)), None)


def _drafts(record: Record, verdicts: Sequence[Verdict]) -> list[str]:
    """A drafter can be broken without the output showing it: equal streams, unequal drafts."""
    found = []
    for verdict in verdicts:
        if verdict.result is not Result.PASS or verdict.kind is Kind.REPEAT:
            continue
        assert verdict.against is not None
        one = _run(record, verdict.variant, verdict.repeat, verdict.probe)
        other = _run(record, *verdict.against, verdict.probe)
        if one is None or other is None or None in (one.speculation, other.speculation):
            continue
        kinds = (one.context.get("draft_kind"), other.context.get("draft_kind"))
        if kinds[0] == kinds[1] and one.speculation != other.speculation:
            mine, theirs = _accepted(one), _accepted(other)
            found.append(
                f"draft statistics differ under equal streams: variant {one.variant} accepted "
                f"{mine}, variant {other.variant} {theirs}"
            )
    return found


def _accepted(run: Run) -> str:
    drafts = run.speculation
    assert drafts is not None
    return f"{drafts.accepted} of {drafts.offered} in {drafts.rounds} rounds"


def _moved(record: Record) -> list[str]:
    """Slots or swaps that moved between repeats of one command."""
    found = []
    for name, runs in _by_variant(record).items():
        labels = list(dict.fromkeys(run.residency.label for run in runs if run.residency.known))
        if len(labels) > 1:
            found.append(f"the residency of variant {name} moved between repeats: {_list(labels)}")
        for key, words in (("swaps", "adaptive swaps"), ("pcie_share", "link share")):
            values = list(dict.fromkeys(run.context.get(key) for run in runs))
            if len(values) > 1:
                shown = _list(["–" if value is None else str(value) for value in values])
                found.append(f"the {words} of variant {name} moved between repeats: {shown}")
    return found


def _devices(record: Record) -> list[str]:
    seen = list(dict.fromkeys(run.devices for run in record.runs if run.devices))
    return (
        ["the device list changed between runs; labels of devices may not mean the same card"]
        if _conflict(seen)
        else []
    )


def _conflict(seen: Sequence[tuple[str, ...]]) -> bool:
    """Whether two runs name different devices under one number."""
    names: dict[str, str] = {}
    for devices in seen:
        for entry in devices:
            number, _, name = entry.partition(": ")
            if names.setdefault(number, name) != name:
                return True
    return False


def _same_lines(record: Record) -> list[str]:
    """Two placements with identical memory and role lines: a flag had no visible effect."""
    found: dict[tuple[str, ...], str] = {}
    out = []
    for name, runs in _by_variant(record).items():
        lines = next((run.lines for run in runs if run.usable and run.lines), None)
        if lines is None:
            continue
        other = found.setdefault(lines, name)
        if other != name and _differ_in_place(record, name, other):
            out.append(
                f"variants {other} and {name} have identical memory and role lines: "
                "a flag had no visible effect"
            )
    return out


def _differ_in_place(record: Record, one: str, other: str) -> bool:
    """Whether two variants are meant to place something differently."""
    places = {
        entry.variant.id: tuple(pair for pair in entry.variant.effect if pair[1] != "no trace")
        for entry in record.manifest.variants
    }
    return places.get(one, ()) != places.get(other, ())


def _drift(record: Record) -> list[str]:
    base = baseline_id(record.manifest)
    times = [
        run.timings.decode_tok_s
        for run in sorted(record.runs, key=lambda run: run.order)
        if run.variant == base and run.usable and run.timings.decode_tok_s
    ]
    if len(times) < 2:
        return []
    change = times[-1] / times[0] - 1
    if abs(change) <= DRIFT:
        return []
    return [
        (
            f"the baseline's decode speed drifted by {change:+.1%} between its first and its last "
            "run: differences below that are not resolvable"
        )
    ]


def _cached(record: Record) -> list[str]:
    out = []
    for name, runs in _by_variant(record).items():
        timed = [run for run in runs if run.usable and run.timings.decode_tok_s]
        for before, after in pairwise(timed):
            slow, fast = before.timings.decode_tok_s or 0.0, after.timings.decode_tok_s or 0.0
            if before.stream == after.stream and fast > CACHED_REPEAT * slow > 0:
                out.append(
                    f"variant {name} decoded {fast / slow:.1f} times as fast in repeat "
                    f"{after.repeat} as in the one before: a cached repeat, not comparable"
                )
    return out


def _warmup(record: Record) -> list[str]:
    base = baseline_id(record.manifest)
    first = next((r for r in record.runs if r.variant == base and r.usable), None)
    out = []
    for run in record.warmup:
        if not run.usable:
            out.append(f"warm-up run {run.repeat} was {run.state}: {run.reason}")
        elif first is not None and run.probe == first.probe and run.stream != first.stream:
            out.append(f"the stream of warm-up run {run.repeat} differs from the baseline's")
    return out


def _by_variant(record: Record) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in sorted(record.runs, key=lambda run: run.order):
        if run.purpose is Purpose.ROUND:
            found.setdefault(run.variant, []).append(run)
    return found


def _list(words: Sequence[str]) -> str:
    return ", ".join(words)
