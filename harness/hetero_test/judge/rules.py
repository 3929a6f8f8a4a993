"""All comparisons of a matrix, each with its verdict.

A comparison can only come to PASS when two streams were compared, both from OK runs, at an
equal and known residency, against a reference that is identical to itself. Every other way in
which "nothing differed" can be true has a result and a reason of its own.

Rule 1, ``repeat``: the repeats of a variant are identical.

Rule 2, ``exact``: each run of a variant against its reference.

The reference is the baseline's first run where the residency is equal, else the run of the
group's first variant; where a variant moved the main model to another kind of device, it is the
baseline on that device alone.

Rule 3, ``anchor``: extra runs at the baseline's residency, against the baseline.

Where the forced residency is not reached, a pair of baseline and variant with one shared size
stands in for the anchor.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from hetero_test.judge.comparison import Lineup
from hetero_test.judge.groups import (
    Bond,
    comparable,
    strayed,
    unreached,
)
from hetero_test.judge.recheck import differing_factors, settle
from hetero_test.judge.streams import alike, first_difference, lettering, parting
from hetero_test.judge.variants import MOVED
from hetero_test.values.run import Purpose
from hetero_test.values.run_ids import shared_id
from hetero_test.values.verdict import Kind, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hetero_test.judge.groups import Group
    from hetero_test.values.record import Record
    from hetero_test.values.run import Effect, Run


def comparisons(record: Record) -> tuple[Verdict, ...]:
    """Every comparison that the plan asks for: repeats, then exact, then anchors."""
    found: dict[Kind, list[Verdict]] = {kind: [] for kind in Kind}
    for probe in record.manifest.probes:
        lineup = Lineup(record, probe.name)
        anchors = anchor_verdicts(lineup)
        found[Kind.REPEAT] += repeat_verdicts(lineup)
        found[Kind.EXACT] += exact_verdicts(lineup, anchors)
        found[Kind.ANCHOR] += anchors
    return tuple(verdict for kind in Kind for verdict in found[kind])


def repeat_verdicts(lineup: Lineup) -> list[Verdict]:
    """One verdict a variant, extra runs included."""
    return [_repeat(lineup, name) for name in (*lineup.planned, *lineup.extra)]


def _repeat(lineup: Lineup, name: str) -> Verdict:
    runs, asked = lineup.of(name), len(lineup.repeats)
    usable = [run for run in runs if run.usable and run.stream]

    def say(result: Result, reason: str) -> Verdict:
        return lineup.say(Kind.REPEAT, name, result, reason)

    if runs and all(run.state.never_started for run in runs):
        return say(Result.SKIPPED, f"{runs[0].state}: {runs[0].reason}")
    further = lineup.further(name) if name in lineup.planned else ()
    if (unequal := _unequal(lineup, name, usable, further)) is not None:
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
    if (renamed := renumbered(run.reading.devices for run in usable)) is not None:
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


def _unequal(
    lineup: Lineup, name: str, usable: Sequence[Run], further: Sequence[Run]
) -> Verdict | None:
    """A difference between runs of one residency, whatever became of the others.

    Of several differences the one that nothing else explains is told. Extra runs of one id are
    held against each other in a verdict of their own.
    """
    every = (*usable, *further)
    if not _any_unequal(every):
        return None  # hundreds of runs that are all equal are not compared pair by pair
    pairs = [
        (one, other)
        for one, other in combinations(every, 2)
        if one.stream != other.stream
        and (one.variant != other.variant or one.variant == name or one not in further)
        and one.residency.equals(other.residency)
        and renumbered((one.reading.devices, other.reading.devices)) is None
    ]
    if not pairs:
        return None
    one, other = min(pairs, key=lambda pair: differing_factors(*pair) is not None)
    mates = [run for run in every if run.residency.equals(one.residency)]
    beside = dict.fromkeys(run.purpose.value for run in mates if run in further)
    of_what = f"runs, {', '.join(beside)} among them" if beside else "repeats"
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
        reason=f"{len({run.stream for run in mates})} distinct streams in {len(mates)} {of_what} "
        f"({lettering(mates)}), first at token {difference.index}{prefix}",
        difference=difference,
    )
    return settle(lineup.record, verdict, other, one)


def _any_unequal(runs: Sequence[Run]) -> bool:
    """Whether two runs of one residency have different streams."""
    seen: dict[object, tuple[int, ...] | None] = {}
    return any(
        seen.setdefault(run.residency.key, run.stream) != run.stream
        for run in runs
        if run.residency.known
    )


def exact_verdicts(lineup: Lineup, anchors: Sequence[Verdict]) -> list[Verdict]:
    """One verdict a run of every variant but the baseline.

    Args:
        lineup: the runs.
        anchors: verdicts on the anchors, which cover the first variant of their group.
    """
    claims = {e.variant.id: e.variant.claims for e in lineup.record.manifest.variants}
    found: list[Verdict] = []
    for name in lineup.planned[1:]:
        covered: Verdict | None = None
        for repeat in lineup.repeats:
            verdict = lineup.unfit(Kind.EXACT, name, repeat)
            if verdict is None:
                run = lineup.run(name, repeat)
                assert run is not None
                verdict = _exact(lineup, run, anchors) if claims[name] else _unclaimed(lineup, run)
            if verdict.repeat is not None:
                found.append(verdict)
            elif covered is None:  # said once, not for each repeat
                covered = verdict
                found.append(verdict)
    return found


def _exact(lineup: Lineup, run: Run, anchors: Sequence[Verdict]) -> Verdict:
    group = lineup.group_of(run)
    if group is not None and group.bond is Bond.UNCLAIMED and group.first == run.variant:
        return _unclaimed(lineup, run)
    reference = None if group is None else _reference(lineup, group)
    if reference is not None and reference.variant != run.variant:
        return lineup.compare(Kind.EXACT, run, reference)
    if run.state.wrong_output:
        reason = f"{run.state}: {run.reason}; no reference to hold it against"
        return lineup.say(Kind.EXACT, run.variant, Result.INCONCLUSIVE, reason, repeat=run.repeat)
    assert group is not None, "a comparable run of a variant that claims is in a group"
    return _own(lineup, group, run, anchors)


def _reference(lineup: Lineup, group: Group) -> Run:
    """What the members of a group are compared with."""
    if group.bond is Bond.HOME:
        for run in lineup.of(group.tie):
            if comparable(run) and run.residency.equals(group.residency):
                return run
    return group.lead


def _own(lineup: Lineup, group: Group, run: Run, anchors: Sequence[Verdict]) -> Verdict:
    """A group's first variant has nobody to be compared with but its anchor."""
    ties = {group.tie, shared_id(group.first)}
    covering = {Result.PASS, Result.FAIL}
    if group.bond is Bond.ANCHOR and any(
        v.variant in ties and v.result in covering for v in anchors
    ):
        return lineup.say(Kind.EXACT, run.variant, Result.SKIPPED, "covered by its anchor")
    why = f"no other run has its residency ({group.residency.label}), and no anchor covers it"
    if group.bond is Bond.EXCESS:
        why += ": more residencies than are anchored"
    elif group.bond is Bond.NONE:
        why += ": the baseline has no usable run"
    elif group.bond is Bond.HOME:
        gave = [r.residency.label if r.usable else str(r.state) for r in lineup.of(group.tie)]
        why = (
            f"the baseline on that device alone did not give {group.residency.label} "
            f"(it gave {', '.join(dict.fromkeys(gave)) or 'no run'})"
        )
    return lineup.say(Kind.EXACT, run.variant, Result.INCONCLUSIVE, why, repeat=run.repeat)


def _unclaimed(lineup: Lineup, run: Run) -> Verdict:
    """Compared and shown, but neither PASS nor FAIL can come of it."""
    baseline, why = lineup.baseline, None
    if run.state.wrong_output:  # claimed or not, such a stream is no result
        why = f"{run.state}: {run.reason}"
    elif baseline is None:
        why = "the baseline has no usable run of known residency"
    if why is not None:
        why = f"not claimed to be equal, and not compared: {why}"
        return lineup.say(Kind.EXACT, run.variant, Result.INCONCLUSIVE, why, repeat=run.repeat)
    assert baseline is not None
    assert run.stream is not None, "a usable run that is let through has one"
    verdict = lineup.against(Kind.EXACT, run, baseline, Result.NOT_CLAIMED, "")
    seen = alike(run.stream) if verdict.difference is None else parting(verdict.difference)
    return replace(verdict, reason=f"not claimed to be equal: {seen}")


def anchor_verdicts(lineup: Lineup) -> list[Verdict]:
    """Each repeat of every anchor that was begun, and of the pairs that stand in for one."""
    effects = lineup.record.index.effects
    found: list[Verdict] = []
    seen: set[str] = set()
    for group in lineup.groups:
        if group.bond is Bond.ANCHOR and group.tie not in seen and lineup.of(group.tie):
            seen.add(group.tie)
            found += _anchor(lineup, group, effects[group.first])
    return found


def _anchor(lineup: Lineup, group: Group, effect: Effect | None) -> list[Verdict]:
    tie, runs, baseline = group.tie, lineup.of(group.tie), lineup.baseline
    assert baseline is not None, "without one no group is bound by an anchor"
    stray = next((run for run in runs if strayed(run, baseline)), None)
    missed = None
    if stray is not None:
        missed = (
            f"{baseline.residency.label} was forced, but the engine opened {stray.residency.label}"
        )
    found = []
    for repeat in lineup.repeats:
        run = lineup.run(tie, repeat)
        if missed is not None and (run is None or strayed(run, baseline)):
            found.append(lineup.say(Kind.ANCHOR, tie, Result.SKIPPED, missed, repeat=repeat))
        else:
            found.append(_tied(lineup, tie, repeat, (baseline,), effect))
    pair = shared_id(group.first)
    if missed is not None and not lineup.of(pair):
        why = f"{missed}, and there is no pair with one shared size"
        found += [
            lineup.say(Kind.ANCHOR, pair, Result.INCONCLUSIVE, why, repeat=repeat)
            for repeat in lineup.repeats
        ]
    elif lineup.of(pair) and (missed is not None or unreached(runs)):
        references = lineup.pairs()
        found += [_tied(lineup, pair, repeat, references, effect) for repeat in lineup.repeats]
    return found


def _tied(
    lineup: Lineup, name: str, repeat: int, references: Sequence[Run], effect: Effect | None
) -> Verdict:
    """One run against the baseline's run of its residency."""
    if (unfit := lineup.unfit(Kind.ANCHOR, name, repeat)) is not None:
        return unfit
    run = lineup.run(name, repeat)
    assert run is not None
    if not references:
        why = "the baseline's side of the pair has no usable run"
        return lineup.say(Kind.ANCHOR, name, Result.INCONCLUSIVE, why, repeat=repeat)
    equal = (r for r in references if r.residency.equals(run.residency))
    verdict = lineup.compare(Kind.ANCHOR, run, next(equal, references[0]))
    if verdict.result is Result.PASS and effect in MOVED and run.effect not in MOVED:
        # What this run compared is not the placement that it is to vouch for.
        why = f"{verdict.reason}, but the placement is {run.effect or 'not told'} in this run"
        return replace(verdict, result=Result.INCONCLUSIVE, reason=why)
    return verdict
