"""Rule 3, ``anchor``: extra runs at the baseline's residency, against the baseline.

Where the forced residency is not reached, a pair of baseline and variant with one shared size
stands in for the anchor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.groups import Bond, shared_id, strayed, unreached
from harness.standing import MOVED, effects_of
from harness.verdict import Kind, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.groups import Group
    from harness.lineup import Lineup
    from harness.model import Effect, Run
    from harness.verdict import Verdict


def anchor_verdicts(lineup: Lineup) -> list[Verdict]:
    """Each repeat of every anchor that was begun, and of the pairs that stand in for one."""
    effects = effects_of(lineup.record)
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
    alike = (r for r in references if r.residency.equals(run.residency))
    verdict = lineup.compare(Kind.ANCHOR, run, next(alike, references[0]))
    if verdict.result is Result.PASS and effect in MOVED and run.effect not in MOVED:
        # What this run compared is not the placement that it is to vouch for.
        why = f"{verdict.reason}, but the placement is {run.effect or 'not told'} in this run"
        return replace(verdict, result=Result.INCONCLUSIVE, reason=why)
    return verdict
