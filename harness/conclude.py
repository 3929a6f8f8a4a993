"""Verdicts to the one conclusion, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.caution import cautions
from harness.groups import anchor_id, baseline_id, shared_id
from harness.judge import verdicts
from harness.model import (
    Conclusion,
    Effect,
    Judgment,
    Kind,
    Result,
    RunState,
    VariantSummary,
)
from harness.record import Ending
from harness.streams import clusters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model import PlannedVariant, Verdict
    from harness.record import Record

NO_TRACE = "no trace"
SEVERITY = tuple(Effect)
"""Effects, worst first."""


def judge(record: Record) -> Judgment:
    """Judge a run directory: every verdict, the clusters, and the conclusion in words."""
    found = verdicts(record)
    effects = {e.variant.id: effect_of(record, e) for e in record.manifest.variants}
    warnings = cautions(record, found)
    conclusion, reason = _conclusion(record, found, effects, warnings)
    summaries = tuple(
        _summary(record, entry, found, effects[entry.variant.id])
        for entry in record.manifest.variants
    )
    return Judgment(
        conclusion=conclusion,
        headline=_headline(record, conclusion, reason, found, summaries),
        reason=_sentence(record, conclusion, reason, found, effects),
        verdicts=found,
        clusters=clusters(sorted(record.runs, key=lambda run: run.order)),
        summaries=summaries,
        warnings=tuple(dict.fromkeys((*record.manifest.warnings, *record.warnings, *warnings))),
    )


def effect_of(record: Record, entry: PlannedVariant) -> Effect | None:
    """The worst effect over a variant's usable runs; None for the baseline and without any."""
    variant = entry.variant
    if variant.id == baseline_id(record.manifest):
        return None
    seen = [
        run.effect
        for run in record.runs
        if run.variant == variant.id and run.usable and run.effect is not None
    ]
    return min(seen, key=SEVERITY.index, default=None)


def places_something(entry: PlannedVariant) -> bool:
    """Whether a variant claims to place anything, rather than only to change how."""
    return not entry.variant.effect or any(
        expected != NO_TRACE for _, expected in entry.variant.effect
    )


# ---- conclusion ---------------------------------------------------------------------------


def _conclusion(
    record: Record,
    found: Sequence[Verdict],
    effects: dict[str, Effect | None],
    warnings: Sequence[str],
) -> tuple[Conclusion, str]:
    """The conclusion and the reason for it, by the rules in their order."""
    base = baseline_id(record.manifest)
    fails = [verdict for verdict in found if verdict.result is Result.FAIL]
    if fails and all(v.kind is Kind.REPEAT and v.variant == base for v in fails):
        return (
            Conclusion.INCONCLUSIVE,
            "the baseline does not repeat itself; placement was not tested",
        )
    if fails:
        return Conclusion.FAIL, _about(fails[0])
    if record.ending is not Ending.COMPLETE:
        return Conclusion.INCONCLUSIVE, _unfinished(record)
    if open_ := [verdict for verdict in found if verdict.result is Result.INCONCLUSIVE]:
        return Conclusion.INCONCLUSIVE, _about(_telling(record, open_))
    passed = [v for v in found if v.result is Result.PASS and v.kind is not Kind.REPEAT]
    if not passed:
        return Conclusion.INCONCLUSIVE, "no placement was compared with anything"
    counted = {Effect.PROVEN, Effect.UNOBSERVABLE}
    if not any(effects.get(variant_of(record, v.variant)) in counted for v in passed):
        return Conclusion.INCONCLUSIVE, "the streams are equal, but nothing was seen to move"
    if record.manifest.strict and (why := _strict(record, effects, warnings)):
        return Conclusion.INCONCLUSIVE, f"strict: {why}"
    return Conclusion.PASS, "every comparison is equal"


def variant_of(record: Record, name: str) -> str:
    """The matrix variant behind the id of an extra run."""
    return next((run.of for run in record.runs if run.variant == name), name)


def _telling(record: Record, open_: Sequence[Verdict]) -> Verdict:
    """The open verdict that explains the rest: the baseline's first."""
    base = baseline_id(record.manifest)
    return next((v for v in open_ if v.variant == base), open_[0])


def _about(verdict: Verdict) -> str:
    what = {
        Kind.REPEAT: f"the repeats of variant {verdict.variant}",
        Kind.EXACT: f"variant {verdict.variant}",
        Kind.ANCHOR: f"anchor {verdict.variant}",
    }[verdict.kind]
    against = "" if verdict.against is None else f" against variant {verdict.against[0]}"
    return f"{what}{against}: {verdict.reason}"


def _unfinished(record: Record) -> str:
    why = f": {record.ending_reason}" if record.ending_reason else ""
    return f"the matrix is not complete ({record.ending}{why})"


def _strict(
    record: Record, effects: dict[str, Effect | None], warnings: Sequence[str]
) -> str | None:
    for name, effect in effects.items():
        if effect in {Effect.CONTRADICTED, Effect.NOT_SEEN}:
            return f"the placement of variant {name} is {_words(effect)}"
    for entry in record.manifest.variants:
        if not entry.planned and not entry.few_devices:
            return f"variant {entry.variant.id} was not run: {entry.why_not}"
    for run in record.runs:
        if run.state in {RunState.REFUSED, RunState.NO_MEMORY}:
            return f"variant {run.variant} was not run: {run.state}"
    return next((text for text in warnings if text.startswith("draft statistics")), None)


def _words(effect: Effect) -> str:
    return effect.value.lower().replace("_", " ")


# ---- words --------------------------------------------------------------------------------


def _summary(
    record: Record, entry: PlannedVariant, found: Sequence[Verdict], effect: Effect | None
) -> VariantSummary:
    name = entry.variant.id
    mine = [v for v in found if v.variant == name]
    exact = [v for v in mine if v.kind is Kind.EXACT]
    ties = (anchor_id(name), shared_id(name))
    anchors = [v for v in found if v.variant in ties and v.kind is Kind.ANCHOR]
    own = any(v.result is Result.PASS for v in exact)
    tied = any(v.result is Result.PASS for v in anchors)
    good = {Result.PASS, Result.SKIPPED}
    is_exact = (
        name != baseline_id(record.manifest)
        and (own or tied)
        and all(v.result in good for v in (*exact, *anchors))
        and all(v.result is not Result.FAIL for v in mine)
    )
    return VariantSummary(
        id=name,
        effect=effect,
        text=_summary_text(record, entry, exact, anchors, own=own, tied=tied),
        exact=is_exact,
        own_residency=is_exact and own,
        baseline_residency=is_exact and (tied or _reaches_baseline(record, exact, found)),
    )


def _reaches_baseline(record: Record, exact: Sequence[Verdict], found: Sequence[Verdict]) -> bool:
    """Whether a variant's references lead to the baseline, directly or by their own anchor."""
    base = baseline_id(record.manifest)
    for verdict in exact:
        if verdict.result is not Result.PASS or verdict.against is None:
            continue
        reference = verdict.against[0]
        ties = (anchor_id(reference), shared_id(reference))
        if variant_of(record, reference) == base or any(
            v.variant in ties and v.kind is Kind.ANCHOR and v.result is Result.PASS for v in found
        ):
            return True
    return False


def _summary_text(
    record: Record,
    entry: PlannedVariant,
    exact: Sequence[Verdict],
    anchors: Sequence[Verdict],
    *,
    own: bool,
    tied: bool,
) -> str:
    if entry.variant.id == baseline_id(record.manifest):
        return "baseline"
    if not entry.planned:
        return f"not run: {entry.why_not}"
    everything = (*exact, *anchors)
    for result in (Result.FAIL, Result.INCONCLUSIVE):
        if hit := next((v for v in everything if v.result is result), None):
            return f"{result}: {hit.reason}"
    if tied and not own:
        return "exact at the baseline's residency; never compared at its own"
    if own:
        return "exact"
    if hit := next((v for v in everything if v.result is Result.NOT_CLAIMED), None):
        return f"{hit.reason}"
    return next((f"not run: {v.reason}" for v in everything), "no comparison")


def _headline(
    record: Record,
    conclusion: Conclusion,
    reason: str,
    found: Sequence[Verdict],
    summaries: Sequence[VariantSummary],
) -> str:
    """The first line of the report, verdict in words first."""
    ran = _ran(record)
    if conclusion is Conclusion.INCONCLUSIVE:
        text = reason
    elif conclusion is Conclusion.FAIL:
        text = _fail_text(record, found, len(ran))
    else:
        text = _pass_text(record, summaries, ran)
    if not any(places_something(entry) for entry in ran):
        count = record.manifest.rig.device_count
        devices = f" ({count} device{'s' if count != 1 else ''})" if count is not None else ""
        text += f"; no placement was tested{devices}"
    return f"{conclusion} — {text}"


def _ran(record: Record) -> tuple[PlannedVariant, ...]:
    """Planned variants other than the baseline that were not refused."""
    base = baseline_id(record.manifest)
    refused = {RunState.REFUSED, RunState.NO_MEMORY}
    states: dict[str, set[RunState]] = {}
    for run in record.runs:
        states.setdefault(run.variant, set()).add(run.state)
    return tuple(
        e
        for e in record.manifest.variants
        if e.planned and e.variant.id != base and not _only(states.get(e.variant.id), refused)
    )


def _only(states: set[RunState] | None, kinds: set[RunState]) -> bool:
    return bool(states) and states is not None and states <= kinds


def _fail_text(record: Record, found: Sequence[Verdict], ran: int) -> str:
    differ = dict.fromkeys(
        variant_of(record, v.variant)
        for v in found
        if v.result is Result.FAIL and v.kind is not Kind.REPEAT
    )
    unsteady = dict.fromkeys(
        variant_of(record, v.variant)
        for v in found
        if v.result is Result.FAIL and v.kind is Kind.REPEAT
    )
    parts = []
    if differ:
        verb = "differs" if len(differ) == 1 else "differ"
        parts.append(
            f"{len(differ)} of {ran} variants {verb} at equal residency ({', '.join(differ)})"
        )
    if unsteady:
        verb = "does" if len(unsteady) == 1 else "do"
        parts.append(f"{len(unsteady)} {verb} not repeat ({', '.join(unsteady)})")
    return "; ".join(parts)


def _pass_text(
    record: Record, summaries: Sequence[VariantSummary], ran: Sequence[PlannedVariant]
) -> str:
    names = {entry.variant.id for entry in ran}
    mine = [summary for summary in summaries if summary.id in names]
    count = sum(summary.exact for summary in mine)
    own = sum(summary.own_residency for summary in mine)
    base = sum(summary.baseline_residency for summary in mine)
    effects = [summary.effect for summary in mine]
    parts = [
        (
            f"{count} of {len(mine)} variants exact "
            f"({own} at their own residency, {base} at the baseline's)"
        ),
        f"{effects.count(Effect.PROVEN)} proven to have moved",
        f"{effects.count(Effect.UNOBSERVABLE)} leave no trace",
    ]
    for effect in (Effect.NOT_SEEN, Effect.CONTRADICTED):
        if number := effects.count(effect):
            parts.append(f"{number} {_words(effect)}")
    parts.append(f"{_not_run(record, names)} not run")
    return ", ".join(parts)


def _not_run(record: Record, names: set[str]) -> int:
    base = baseline_id(record.manifest)
    return sum(
        entry.variant.id not in names and entry.variant.id != base and not entry.few_devices
        for entry in record.manifest.variants
    )


def _sentence(
    record: Record,
    conclusion: Conclusion,
    reason: str,
    found: Sequence[Verdict],
    effects: dict[str, Effect | None],
) -> str:
    """The sentence below the headline: what explains it, and which effects are not proven."""
    parts = []
    if conclusion is Conclusion.FAIL:
        parts.append(reason)
    elif conclusion is Conclusion.PASS:
        parts.append(_compared(record, found))
    else:
        counted = [v for v in found if v.result is Result.INCONCLUSIVE]
        parts.append(f"{len(counted)} comparisons stay open" if counted else reason)
    if record.ending is not Ending.COMPLETE and conclusion is Conclusion.FAIL:
        parts.append(_unfinished(record))
    for effect, words in (
        (Effect.CONTRADICTED, "did not go where its flags say"),
        (Effect.NOT_SEEN, "was not seen to move"),
    ):
        parts += [
            f"equal or not, variant {name} {words}{_seen(record, name, effect)}"
            for name, value in effects.items()
            if value is effect
        ]
    return "; ".join(parts)


def _compared(record: Record, found: Sequence[Verdict]) -> str:
    passed = [v for v in found if v.result is Result.PASS and v.kind is not Kind.REPEAT]
    lengths = [len(run.stream) for run in record.runs if run.usable and run.stream is not None]
    probes = len(record.manifest.probes)
    prompts = "1 prompt" if probes == 1 else f"{probes} prompts"
    return (
        f"{len(passed)} comparisons at equal residency over {max(lengths, default=0)} tokens "
        f"of {prompts} found no difference"
    )


def _seen(record: Record, name: str, effect: Effect) -> str:
    """Where the log shows what a flag should have moved."""
    for run in record.runs:
        for part in run.effect_parts if run.variant == name else ():
            if part.effect is effect:
                where = "nothing tells" if part.seen is None else f"it was on {part.seen}"
                return f" ({part.part}: expected {part.expected}, {where})"
    return ""
