"""A difference that may have another cause than the placement is looked at once more.

Streams may differ because something beside the residency differs (share of experts read over
the link, adaptive swaps, drafters of different kinds), or these may differ because the
streams differ: swaps follow the routing. So both sides run again under the pinned recipe.
With one repeat a difference is confirmed by one more run of both sides, as they were.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.judge.groups import comparable
from hetero_test.values.reading import differing
from hetero_test.values.run import RunState
from hetero_test.values.run_ids import Question, recheck_id
from hetero_test.values.verdict import Kind, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.values.record import Record
    from hetero_test.values.run import Run


def differing_factors(one: Run, other: Run) -> str | None:
    """What beside the residency is known to differ between two runs, in words.

    What only one of the two logs tells differs as well: it was not the same in both.
    """
    found = _movers(one, other)
    kinds = (one.reading.draft.kind, other.reading.draft.kind)
    drafts = (one.speculation, other.speculation)
    if kinds[0] != kinds[1] and None not in drafts and drafts[0] != drafts[1]:
        names = ", ".join(map(_shown, kinds))
        found.append(f"drafters of different kinds drafted differently ({names})")
    return " and ".join(found) or None


def _movers(one: Run, other: Run) -> list[str]:
    return [
        f"{words} moved ({_shown(mine)} against {_shown(theirs)})"
        for words, mine, theirs in differing(one.reading.movers, other.reading.movers)
    ]


def _shown(value: object) -> str:
    return "unknown" if value is None else str(value)


def doubt(record: Record, run: Run, reference: Run) -> Question | None:
    """Which question a difference between two runs leaves open, if any."""
    if not record.manifest.pinned.asked and _cause(run, reference) is not None:
        return Question.PINNED
    return Question.CONFIRM if record.manifest.repeats == 1 else None


def settle(record: Record, verdict: Verdict, run: Run, reference: Run) -> Verdict:
    """What a difference amounts to once its question is answered, as far as it is."""
    pinned, cause = record.manifest.pinned, _cause(run, reference)
    if pinned.asked and cause is not None and (left := _left_moving(record, run, reference)):
        return _open(verdict, left, "the pinned recipe is not complete here")
    question, repeats = doubt(record, run, reference), verdict.kind is Kind.REPEAT
    if question is None or (repeats and question is Question.CONFIRM):
        return verdict  # runs of one command that differ were seen more than once
    again, before = (
        _again(record, question, verdict.variant if repeats else side.variant, run.probe)
        for side in (run, reference)
    )
    if question is Question.CONFIRM:
        settled = _confirmed(verdict, ((run, again), (reference, before)))
    else:
        assert cause is not None
        if not pinned.exists:
            return _open(verdict, cause, "the matrix has no pinned recipe to tell them apart")
        settled = _pinned(record, verdict, cause, again, before)
    return replace(settled, recheck=question.value)


def _cause(run: Run, reference: Run) -> str | None:
    """What may explain a difference beside the placement.

    A stream that just stops is no matter of rounding: no factor explains it.
    """
    return None if run.state is RunState.TRUNCATED else differing_factors(run, reference)


def _again(record: Record, question: Question, name: str, probe: str) -> tuple[Run, ...]:
    return record.index.again.get((recheck_id(name, question), probe), ())


def _open(verdict: Verdict, cause: str, why: str) -> Verdict:
    reason = f"{verdict.reason}, but {cause}; {why}"
    return replace(verdict, result=Result.INCONCLUSIVE, reason=reason, cause=cause)


def _left_moving(record: Record, one: Run, other: Run) -> str | None:
    """What still differs because this engine does not know all of the pinned recipe."""
    if not record.manifest.pinned.left_out:
        return None
    return " and ".join(_movers(one, other)) or None


# ---- one repeat ---------------------------------------------------------------------------


def _confirmed(verdict: Verdict, sides: Sequence[tuple[Run, Sequence[Run]]]) -> Verdict:
    """With one repeat: the same on both sides once more, or it is no FAIL."""
    for first, more in sides:
        told = [_not_alike(first, second) for second in more] or ["was not run once more"]
        if why := next(filter(None, told), None):
            reason = f"{verdict.reason}, seen once; variant {first.variant} {why}"
            return replace(verdict, result=Result.INCONCLUSIVE, reason=reason)
    return replace(verdict, reason=f"{verdict.reason}, twice alike")


def _not_alike(first: Run, second: Run) -> str | None:
    if second.state is not first.state:
        return f"was {second.state} when it was run once more"
    if not second.residency.equals(first.residency):
        return f"had another residency when it was run once more ({second.residency.label})"
    if second.stream != first.stream:
        return "gave another stream when it was run once more"
    return None


# ---- pinned -------------------------------------------------------------------------------


def _pinned(
    record: Record, verdict: Verdict, cause: str, again: tuple[Run, ...], before: tuple[Run, ...]
) -> Verdict:
    """Under the pinned recipe: still different is a FAIL, equal is not."""
    base = next((run for run in before if comparable(run)), None)
    if base is None:
        return _open(verdict, cause, "no run with the pinned recipe is usable as a reference")
    if verdict.kind is Kind.REPEAT:
        again = tuple(run for run in again if run is not base)
    elif any(r.stream != base.stream for r in before if _alike(r, base)):
        return _open(verdict, cause, "with the pinned recipe the reference does not repeat itself")
    shown = [run for run in again if comparable(run) or run.state.wrong_output]
    if not shown:
        return _open(verdict, cause, "no run with the pinned recipe is usable")
    pairs = [run for run in shown if run.residency.equals(base.residency)]
    if not pairs:
        labels = f"{shown[0].residency.label} against {base.residency.label}"
        return _open(verdict, cause, f"with the pinned recipe the residencies differ ({labels})")
    other = next((r for r in pairs if r.stream != base.stream or r.state.wrong_output), None)
    if other is None:
        return _open(verdict, cause, "with the pinned recipe the streams are equal: see --pinned")
    if (left := _left_moving(record, other, base)) is not None:
        return _open(verdict, left, "the pinned recipe is not complete here")
    return replace(verdict, reason=f"{verdict.reason}; also with the pinned recipe")


def _alike(run: Run, other: Run) -> bool:
    return comparable(run) and run.residency.equals(other.residency)
