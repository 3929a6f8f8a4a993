"""Rule 2, ``exact``: each run of a variant against its reference.

The reference is the baseline's first run where the residency is equal, else the run of the
group's first variant; where a variant moved the main model to another kind of device, it is the
baseline on that device alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.groups import WRONG_OUTPUT, Bond, comparable, shared_id
from harness.streams import alike, parting
from harness.verdict import Kind, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.groups import Group
    from harness.lineup import Lineup
    from harness.model import Run
    from harness.verdict import Verdict


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
    if run.state in WRONG_OUTPUT:
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
    if run.state in WRONG_OUTPUT:  # claimed or not, such a stream is no result
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
