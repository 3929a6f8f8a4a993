"""Rule 1, ``repeat``: the repeats of a variant are identical."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from harness.groups import NEVER_STARTED, strayed
from harness.model import Purpose
from harness.recheck import moved, settle
from harness.streams import first_difference, lettering
from harness.verdict import Kind, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.lineup import Lineup
    from harness.model import Run


def repeat_verdicts(lineup: Lineup) -> list[Verdict]:
    """One verdict a variant, extra runs included."""
    return [_repeat(lineup, name) for name in (*lineup.planned, *lineup.extra)]


def _repeat(lineup: Lineup, name: str) -> Verdict:
    runs, asked = lineup.of(name), len(lineup.repeats)
    usable = [run for run in runs if run.usable and run.stream]

    def say(result: Result, reason: str) -> Verdict:
        return lineup.say(Kind.REPEAT, name, result, reason)

    if runs and all(run.state in NEVER_STARTED for run in runs):
        return say(Result.SKIPPED, f"{runs[0].state}: {runs[0].reason}")
    if (unequal := _unequal(lineup, name, usable)) is not None:
        return unequal
    if _all_strayed(lineup, runs):
        return say(Result.SKIPPED, "the forced residency was not reached")
    if len({run.repeat for run in runs}) < len(runs):
        return say(Result.INCONCLUSIVE, "a repeat is recorded more than once")
    if asked == 1:
        return say(Result.SKIPPED, "one repeat was asked for, so nothing was repeated")
    if (why := _no_repeats(usable)) is not None:
        return say(Result.INCONCLUSIVE, why)
    if len(usable) < asked:
        told = [str(run.state) for run in runs if run not in usable]
        if len(runs) < asked:
            told.append(f"{asked - len(runs)} not run")
        why = f"{len(usable)} of {asked} repeats are usable ({', '.join(told)})"
        return say(Result.INCONCLUSIVE, why)
    return say(Result.PASS, f"{asked} of {asked} repeats are identical")


def _all_strayed(lineup: Lineup, runs: Sequence[Run]) -> bool:
    """Whether these are runs of an anchor that never had the residency that was forced."""
    baseline = lineup.baseline
    return (
        baseline is not None
        and any(runs)
        and all(run.purpose is Purpose.ANCHOR and strayed(run, baseline) for run in runs)
    )


def _no_repeats(usable: Sequence[Run]) -> str | None:
    """Why runs are no repeats of each other although one command made them."""
    if unknown := [run for run in usable if not run.residency.known]:
        return f"the residency is unknown: {unknown[0].residency.unknown}"
    if len({run.residency.key for run in usable}) > 1:
        labels = dict.fromkeys(run.residency.label for run in usable)
        return f"the repeats had different residencies: {' and '.join(labels)}"
    if (renamed := renumbered(run.devices for run in usable)) is not None:
        return f"the device list changed between the repeats: {renamed}"
    return None


def renumbered(lists: Iterable[tuple[str, ...]]) -> str | None:
    """The first number under which two device lists name different devices, with both names."""
    names: dict[str, str] = {}
    for devices in lists:
        for entry in devices:
            number, _, name = entry.partition(": ")
            if names.setdefault(number, name) != name:
                return f"{number} was {names[number]}, then {name}"
    return None


def _unequal(lineup: Lineup, name: str, usable: Sequence[Run]) -> Verdict | None:
    """A difference between repeats of one residency, whatever became of the others.

    Of several differences the one that nothing else explains is told.
    """
    pairs = [
        (one, other)
        for one, other in combinations(usable, 2)
        if one.stream != other.stream
        and one.residency.equals(other.residency)
        and renumbered((one.devices, other.devices)) is None
    ]
    if not pairs:
        return None
    one, other = min(pairs, key=lambda pair: moved(*pair) is not None)
    mates = [run for run in usable if run.residency.equals(one.residency)]
    assert one.stream is not None
    assert other.stream is not None
    difference = first_difference(other.stream, one.stream)
    assert difference is not None
    prefix = "" if difference.prefix is None else ", one a strict prefix of the other"
    verdict = Verdict(
        kind=Kind.REPEAT,
        variant=name,
        probe=lineup.probe,
        result=Result.FAIL,
        reason=f"{len({run.stream for run in mates})} distinct streams in {len(mates)} repeats "
        f"({lettering(mates)}), first at token {difference.index}{prefix}",
        difference=difference,
    )
    return settle(lineup.record, verdict, other, one)
