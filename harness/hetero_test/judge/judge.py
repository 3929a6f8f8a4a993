"""A record comes in; verdicts, the one conclusion, and the exit code go out.

:func:`judge` is pure, so an old record is judged again alike; :func:`exit_code` gives the code
that a CI job gates on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.errors import ExitCode
from hetero_test.judge.evidence import evidence
from hetero_test.judge.groups import baseline_id
from hetero_test.judge.near_tie import explained
from hetero_test.judge.rules import comparisons
from hetero_test.judge.streams import clusters
from hetero_test.judge.variants import MOVED, SURE, summaries_of
from hetero_test.judge.warnings import cautions, draft_cautions
from hetero_test.judge.wording import headline, one_device, sentence, unfinished
from hetero_test.values.record import Ending
from hetero_test.values.run import Effect
from hetero_test.values.verdict import Conclusion, Judgment, Kind, Moved, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Evidence, VariantSummary, Verdict


def judge(record: Record) -> Judgment:
    """Judge a run directory: every verdict, the clusters, and the conclusion in words."""
    # In what order runs were stored decides nothing.
    runs, rechecks = (
        tuple(sorted(some, key=lambda run: (run.order, run.key)))
        for some in (record.runs, record.rechecks)
    )
    record = replace(record, runs=runs, rechecks=rechecks)
    found = explained(record, comparisons(record))
    told = evidence(record)
    summaries = summaries_of(record, found, told)
    conclusion, reason = _conclusion(record, found, summaries, told)
    warnings = [*record.manifest.warnings, *record.warnings, *cautions(record, found, told)]
    if conclusion is Conclusion.FAIL and (versions := _several_versions(record)) is not None:
        warnings.append(versions)
    return Judgment(
        conclusion=conclusion,
        headline=headline(record, conclusion, reason, found, summaries),
        reason=sentence(record, conclusion, reason, found, summaries),
        verdicts=found,
        clusters=clusters(runs),
        summaries=summaries,
        warnings=tuple(dict.fromkeys(warnings)),
        evidence=told,
    )


def _conclusion(
    record: Record,
    found: Sequence[Verdict],
    summaries: Sequence[VariantSummary],
    told: Evidence,
) -> tuple[Conclusion, str]:
    """The conclusion and the reason for it, by the rules in their order."""
    fails = [verdict for verdict in found if verdict.result is Result.FAIL]
    noisy = _noisy_baseline(record, fails) if fails else None
    if fails and noisy is None:
        return Conclusion.FAIL, _about(fails[0])
    if (versions := _several_versions(record)) is not None:
        return Conclusion.INCONCLUSIVE, versions
    if noisy is not None:
        return Conclusion.INCONCLUSIVE, noisy
    if record.ending is not Ending.COMPLETE:
        return Conclusion.INCONCLUSIVE, unfinished(record)
    if left := [verdict for verdict in found if verdict.result is Result.INCONCLUSIVE]:
        return Conclusion.INCONCLUSIVE, _about(_telling(record, left))
    if (why := one_device(record) or _nothing_moved(record, found, summaries)) is not None:
        return Conclusion.INCONCLUSIVE, why
    if record.manifest.strict and (why := _strict(record, found, summaries, told)):
        return Conclusion.INCONCLUSIVE, f"strict: {why}"
    return Conclusion.PASS, "every comparison is equal"


def _nothing_moved(
    record: Record, found: Sequence[Verdict], summaries: Sequence[VariantSummary]
) -> str | None:
    """Why equal streams tell of no placement; None where at least one of a moved variant does."""
    passed = [v for v in found if v.result is Result.PASS and v.kind is not Kind.REPEAT]
    if not passed:
        return "no placement was compared with anything" + _unclaimed(record, found)
    compared = {record.index.behind(verdict.variant) for verdict in passed}
    mine = [summary for summary in summaries if summary.id in compared]
    asked = [summary for summary in mine if summary.effect in MOVED]
    if any(summary.moved in {Moved.YES, Moved.UNTOLD} for summary in asked):
        return None
    if any(summary.moved is Moved.SAME for summary in asked):
        return (
            "the streams are equal, but nothing moved: by the log every placement that was "
            "compared is the baseline's own"
        ) + _unclaimed(record, found)
    return "the streams are equal, but nothing was seen to move" + _unclaimed(record, found)


def _unclaimed(record: Record, found: Sequence[Verdict]) -> str:
    """What to add where placements were shown beside the baseline, but not claimed to be equal."""
    unclaimed = (v.variant for v in found if v.result is Result.NOT_CLAIMED)
    names = ", ".join(dict.fromkeys(map(record.index.behind, unclaimed)))
    if not names:
        return ""
    return (
        f"; not claimed to be equal, by the matrix or on a device of another or of no known kind "
        f"(--device-kind declares one): {names}"
    )


def _several_versions(record: Record) -> str | None:
    """Equal streams of two engines tell of no placement; a difference stays one all the same."""
    told = dict.fromkeys(r.reading.version for r in record.runs if r.reading.version is not None)
    if len(told) < 2:
        return None
    return f"the engine changed during the matrix (versions {', '.join(told)})"


def _noisy_baseline(record: Record, fails: Sequence[Verdict]) -> str | None:
    """What to say where the baseline's own repeats are all that differs."""
    base = baseline_id(record.manifest)
    if any(record.index.behind(verdict.variant) != base for verdict in fails):
        return None
    names = [v.variant for v in fails]
    if base in names:
        return "the baseline does not repeat itself; placement was not tested"
    return (
        f"the baseline does not repeat itself in its extra runs ({', '.join(names)}); "
        "what is compared with them was not tested"
    )


def _telling(record: Record, left: Sequence[Verdict]) -> Verdict:
    """The open verdict that explains the rest: the baseline's, else an anchor's."""
    base = baseline_id(record.manifest)
    return min(left, key=lambda v: (v.variant != base, v.kind is not Kind.ANCHOR))


def _about(verdict: Verdict) -> str:
    what = {
        Kind.REPEAT: f"the repeats of variant {verdict.variant}",
        Kind.EXACT: f"variant {verdict.variant}",
        Kind.ANCHOR: f"anchor {verdict.variant}",
    }[verdict.kind]
    against = "" if verdict.against is None else f" against variant {verdict.against[0]}"
    return f"{what}{against}: {verdict.reason}"


def _strict(
    record: Record,
    found: Sequence[Verdict],
    summaries: Sequence[VariantSummary],
    told: Evidence,
) -> str | None:
    """What keeps a strict matrix from passing although every comparison is equal."""
    for summary in summaries:
        if summary.effect is not None and summary.effect not in SURE:
            return f"the placement of variant {summary.id} is {summary.effect.words}"
    if told.everywhere:
        return f"a line that no reader knows speaks of trouble: {told.everywhere[0]}"
    for entry in record.manifest.variants:
        if not entry.planned and not entry.few_devices and entry.copy_of is None:
            return f"variant {entry.variant.id} was not run: {entry.why_not}"
    for run in record.runs:
        if run.state.never_started:
            return f"variant {run.variant} was not run: {run.state}"
    if drafted := draft_cautions(record, found):
        return drafted[0]
    proven = any(s.effect is Effect.PROVEN and s.moved is Moved.YES for s in summaries)
    if not proven and not _any_part_proven(record):
        # What leaves no trace is not shown to have happened.
        return "no placement is proven to have moved"
    return None


def _any_part_proven(record: Record) -> bool:
    """Whether the log proves any part of any placement, even beside one that leaves no trace."""
    parts = (part for run in record.runs if run.usable for part in run.effect_parts)
    return any(part.effect is Effect.PROVEN for part in parts)


ENDINGS = {
    Ending.INTERRUPTED: ExitCode.INTERRUPTED,
    Ending.TOTAL_TIMEOUT: ExitCode.TOTAL_TIMEOUT,
    Ending.BROKEN: ExitCode.COULD_NOT_FINISH,
    Ending.REFUSED_BASELINE: ExitCode.USAGE,
}
CONCLUSIONS = {
    Conclusion.PASS: ExitCode.PASS,
    Conclusion.FAIL: ExitCode.FAIL,
    Conclusion.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}


def conclusion_code(judgment: Judgment) -> ExitCode:
    """What a judgment alone amounts to, however its matrix ended."""
    return CONCLUSIONS[judgment.conclusion]


def exit_code(record: Record, judgment: Judgment) -> ExitCode:
    """How an early end, else the conclusion, is told to the caller."""
    return ENDINGS.get(record.ending, conclusion_code(judgment))
