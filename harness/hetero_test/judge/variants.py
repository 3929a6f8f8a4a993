"""What became of one variant over all its runs: its effect, and whether it is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.judge.groups import baseline_id
from hetero_test.judge.moved import moved_of
from hetero_test.values.run import Effect
from hetero_test.values.run_ids import anchor_id, shared_id
from hetero_test.values.verdict import Kind, Moved, Result, VariantSummary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from hetero_test.values.record import Record
    from hetero_test.values.variant import PlannedVariant
    from hetero_test.values.verdict import Doubt, Evidence, Verdict

MOVED = frozenset(effect for effect in Effect if effect.unmoved is None)
"""Effects with which an equal stream tells something of the placement."""
SURE = MOVED - {Effect.DOUBTED}
"""Those that a strict matrix accepts."""


def summaries_of(
    record: Record, found: Sequence[Verdict], told: Evidence
) -> tuple[VariantSummary, ...]:
    """What became of each variant, in matrix order."""
    owners: dict[str, list[str]] = {}
    for entry in record.manifest.variants:
        name = entry.variant.id
        for own in (name, anchor_id(name), shared_id(name)):
            owners.setdefault(own, []).append(name)
    mine: dict[str, list[Verdict]] = {}
    for verdict in found:
        for name in owners.get(verdict.variant, ()):
            mine.setdefault(name, []).append(verdict)
    tied = {v.variant for v in found if v.kind is Kind.ANCHOR and v.result is Result.PASS}
    moved, doubts = moved_of(record), told.doubts
    return tuple(
        _summary(
            record,
            entry,
            mine.get(entry.variant.id, []),
            tied,
            moved=moved[entry.variant.id],
            doubts=doubts.get(entry.variant.id, ()),
        )
        for entry in record.manifest.variants
    )


def _summary(
    record: Record,
    entry: PlannedVariant,
    mine: Sequence[Verdict],
    tied: AbstractSet[str],
    *,
    moved: Moved | None,
    doubts: tuple[Doubt, ...],
) -> VariantSummary:
    """What became of one variant.

    Args:
        record: the runs.
        entry: the variant.
        mine: the verdicts on it, on its anchor and on its pair.
        tied: ids of the extra runs that tie their variant to the baseline.
        moved: whether the placement is another one than the baseline's.
        doubts: lines that no reader knows and that speak against it.
    """
    name = entry.variant.id
    passed = [v for v in mine if v.result is Result.PASS and v.kind is not Kind.REPEAT]
    own = any(v.kind is Kind.EXACT for v in passed)
    exact = bool(passed) and all(v.result in {Result.PASS, Result.SKIPPED} for v in mine)
    return VariantSummary(
        id=name,
        effect=_doubted(record.index.effects[name], doubts),
        moved=moved,
        doubts=tuple(doubt.line for doubt in doubts),
        text=_text(record, entry, mine, own=own, tied=bool(passed), moved=moved),
        exact=exact,
        own_residency=exact and own,
        baseline_residency=exact and all(_reaches_baseline(record, v, tied) for v in passed),
    )


def _reaches_baseline(record: Record, passed: Verdict, tied: AbstractSet[str]) -> bool:
    """Whether a comparison was with the baseline, or with a run that an anchor ties to it."""
    assert passed.against is not None
    reference = passed.against[0]
    is_baseline = record.index.behind(reference) == baseline_id(record.manifest)
    return is_baseline or not tied.isdisjoint({anchor_id(reference), shared_id(reference)})


def _doubted(effect: Effect | None, doubts: Sequence[Doubt]) -> Effect | None:
    """The effect, with what unknown lines say against it."""
    if effect is None or not doubts:
        return effect
    said = Effect.CONTRADICTED if any(doubt.undone for doubt in doubts) else Effect.DOUBTED
    return Effect.worst((effect, said))


def _text(
    record: Record,
    entry: PlannedVariant,
    mine: Sequence[Verdict],
    *,
    own: bool,
    tied: bool,
    moved: Moved | None,
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
        return "exact, same placement as the baseline" if moved is Moved.SAME else "exact"
    if tied:
        return "exact at the baseline's residency, by its anchor alone"
    for result, prefix in ((Result.NOT_CLAIMED, ""), (Result.SKIPPED, "not run: ")):
        if told := [v for v in mine if v.result is result]:
            return prefix + told[0].reason
    return "no comparison"
