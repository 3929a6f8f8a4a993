"""What became of one variant over all its runs: its effect, and whether it is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.judge.groups import baseline_id
from hetero_test.values.run import Effect
from hetero_test.values.run_ids import anchor_id, shared_id
from hetero_test.values.verdict import Kind, Result, VariantSummary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hetero_test.values.record import Record
    from hetero_test.values.run import PlannedVariant
    from hetero_test.values.verdict import Verdict

MOVED = frozenset(effect for effect in Effect if effect.unmoved is None)
"""Effects with which an equal stream tells something of the placement."""


def effects_of(record: Record) -> dict[str, Effect | None]:
    """Each variant's worst effect over its usable runs; None for the baseline and without any."""
    found: dict[str, Effect | None] = dict.fromkeys(e.variant.id for e in record.manifest.variants)
    base = baseline_id(record.manifest)
    for run in record.runs:
        if run.variant not in found or run.variant == base or not run.usable:
            continue
        found[run.variant] = Effect.worst((run.effect, found[run.variant]))
    return found


def variant_of(record: Record, name: str) -> str:
    """The matrix variant behind the id of an extra run."""
    return next((run.of for run in record.runs if run.variant == name), name)


def summaries_of(
    record: Record, found: Sequence[Verdict], effects: Mapping[str, Effect | None]
) -> tuple[VariantSummary, ...]:
    """What became of each variant, in matrix order."""
    return tuple(
        _summary(record, entry, found, effects[entry.variant.id])
        for entry in record.manifest.variants
    )


def _summary(
    record: Record, entry: PlannedVariant, found: Sequence[Verdict], effect: Effect | None
) -> VariantSummary:
    name = entry.variant.id
    mine = [v for v in found if v.variant in {name, anchor_id(name), shared_id(name)}]
    passed = [v for v in mine if v.result is Result.PASS and v.kind is not Kind.REPEAT]
    own = any(v.kind is Kind.EXACT for v in passed)
    exact = bool(passed) and all(v.result in {Result.PASS, Result.SKIPPED} for v in mine)
    return VariantSummary(
        id=name,
        effect=effect,
        text=_text(record, entry, mine, own=own, tied=bool(passed)),
        exact=exact,
        own_residency=exact and own,
        baseline_residency=exact and all(_reaches_baseline(record, v, found) for v in passed),
    )


def _reaches_baseline(record: Record, passed: Verdict, found: Sequence[Verdict]) -> bool:
    """Whether a comparison was with the baseline, or with a run that an anchor ties to it."""
    assert passed.against is not None
    reference = passed.against[0]
    tied = {v.variant for v in found if v.kind is Kind.ANCHOR and v.result is Result.PASS}
    is_baseline = variant_of(record, reference) == baseline_id(record.manifest)
    return is_baseline or not tied.isdisjoint({anchor_id(reference), shared_id(reference)})


def _text(
    record: Record, entry: PlannedVariant, mine: Sequence[Verdict], *, own: bool, tied: bool
) -> str:
    if entry.variant.id == baseline_id(record.manifest):
        return "baseline"
    if not entry.planned:
        return f"not run: {entry.why_not}"
    for result in (Result.FAIL, Result.INCONCLUSIVE):
        # What was compared tells more than what was repeated.
        told = sorted((v for v in mine if v.result is result), key=lambda v: v.kind is Kind.REPEAT)
        if told:
            return f"{result}: {told[0].reason}"
    if own:
        return "exact"
    if tied:
        return "exact at the baseline's residency, by its anchor alone"
    for result, prefix in ((Result.NOT_CLAIMED, ""), (Result.SKIPPED, "not run: ")):
        if told := [v for v in mine if v.result is result]:
            return prefix + told[0].reason
    return "no comparison"
