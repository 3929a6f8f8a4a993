"""A difference that may have another cause than the placement is looked at once more.

Streams may differ because something beside the residency moved (share of experts read over
the link, adaptive swaps, drafters of different kinds), or these may have moved because the
streams differ: swaps follow the routing. So both sides run again under the pinned recipe.
With one repeat a difference is confirmed by one more run of both sides, as they were.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.model import Result, RunState, Verdict

if TYPE_CHECKING:
    from harness.model import Run
    from harness.record import Record

MOVERS = {
    "pcie_share": "the share of experts read over the link",
    "swaps": "the adaptive expert swaps",
}
"""Context that is known to change rounding, by its key in :attr:`harness.model.Run.context`."""


class Question(StrEnum):
    """What a further run of both sides would tell; the value ends the ids of those runs."""

    PINNED = "p"
    CONFIRM = "c"


def moved(one: Run, other: Run) -> str | None:
    """What beside the residency is known to differ between two runs, in words."""
    for key, words in MOVERS.items():
        mine, yours = one.context.get(key), other.context.get(key)
        if mine is not None and yours is not None and mine != yours:
            return f"{words} ({mine} against {yours})"
    kinds = (one.context.get("draft_kind"), other.context.get("draft_kind"))
    if None not in kinds and kinds[0] != kinds[1] and one.speculation != other.speculation:
        return f"drafters of different kinds that drafted differently ({kinds[0]}, {kinds[1]})"
    return None


def doubt(record: Record, run: Run, reference: Run) -> Question | None:
    """Which question a difference between two runs leaves open, if any."""
    if not record.manifest.pinned.asked and moved(run, reference) is not None:
        return Question.PINNED
    if record.manifest.repeats == 1:
        return Question.CONFIRM
    return None


def settle(record: Record, verdict: Verdict, run: Run, reference: Run) -> Verdict:
    """What a difference amounts to once its question is answered, as far as it is."""
    question = doubt(record, run, reference)
    if question is None:
        return verdict
    again = _again(record, question, run)
    before = _again(record, question, reference)
    if question is Question.CONFIRM:
        settled = _confirmed(verdict, (run, reference), (again, before))
    else:
        settled = _pinned(record, verdict, moved(run, reference) or "", again, before)
    if question is Question.PINNED and not record.manifest.pinned.exists:
        return settled
    return replace(settled, recheck=question.value)


def _again(record: Record, question: Question, run: Run) -> tuple[Run, ...]:
    name = f"{run.variant}{question}"
    return tuple(r for r in record.rechecks if r.variant == name and r.probe == run.probe)


def _confirmed(
    verdict: Verdict, seen: tuple[Run, Run], again: tuple[tuple[Run, ...], tuple[Run, ...]]
) -> Verdict:
    """With one repeat: the same on both sides once more, or it is no FAIL."""
    if not any(again):
        reason = f"{verdict.reason}; seen once and not confirmed by a further run"
        return replace(verdict, result=Result.INCONCLUSIVE, reason=reason)
    for first, more in zip(seen, again, strict=True):
        second = more[0] if more else None
        if second is None or second.state is not first.state or second.stream != first.stream:
            reason = f"{verdict.reason}; run once more, variant {first.variant} gave something else"
            return replace(verdict, result=Result.INCONCLUSIVE, reason=reason)
    return replace(verdict, reason=f"{verdict.reason}, twice alike")


def _pinned(
    record: Record,
    verdict: Verdict,
    cause: str,
    again: tuple[Run, ...],
    before: tuple[Run, ...],
) -> Verdict:
    """Under the pinned recipe: still different is a FAIL, equal is not."""

    def open_(why: str) -> Verdict:
        reason = f"{verdict.reason}, but {cause} moved too; {why}"
        return replace(verdict, result=Result.INCONCLUSIVE, reason=reason, cause=cause)

    if not record.manifest.pinned.exists:
        return open_("the matrix has no pinned recipe to tell them apart")
    good = [run for run in again if run.usable and run.residency.known]
    base = [run for run in before if run.usable and run.residency.known]
    wrong = [run for run in again if run.state in {RunState.TRUNCATED, RunState.DEGENERATE}]
    if not base or not (good or wrong):
        return open_("the runs with the pinned recipe are missing or not usable")
    if len({run.stream for run in base}) > 1:
        if again == before:
            return replace(verdict, reason=f"{verdict.reason}; also with the pinned recipe")
        return open_("with the pinned recipe the reference does not repeat itself")
    pairs = [run for run in (*good, *wrong) if run.residency.equals(base[0].residency)]
    if not pairs:
        return open_("with the pinned recipe the two sides have different residencies")
    if any(run.stream != base[0].stream for run in pairs):
        return replace(verdict, reason=f"{verdict.reason}; also with the pinned recipe")
    return open_("with the pinned recipe the streams are equal: run the matrix with --pinned")
