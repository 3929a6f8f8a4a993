"""One probe's runs, laid out for comparison, and the comparison itself.

A comparison comes to PASS in one place only, :meth:`Lineup.compare`: two streams, both from OK
runs, at an equal and known residency, against a reference that is identical to itself, over
more than a handful of tokens.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from hetero_test.judge.groups import (
    baseline_id,
    comparable,
    first_baseline,
    groups,
)
from hetero_test.judge.recheck import settle
from hetero_test.judge.streams import alike, first_difference, parting
from hetero_test.values.record import Ending
from hetero_test.values.run import Purpose
from hetero_test.values.verdict import LEAST_TOKENS, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hetero_test.judge.groups import Group
    from hetero_test.values.record import Record
    from hetero_test.values.run import Run
    from hetero_test.values.verdict import Kind


class Lineup:
    """What the rules ask of one probe's runs.

    Attributes:
        base: the baseline's id.
        baseline: its first usable run, with which anchors are compared; None without any.
        groups: residency groups in matrix order.
        planned: ids of the planned variants, the baseline first.
        extra: ids of extra runs that are there, in the order in which they were planned.
    """

    def __init__(self, record: Record, probe: str) -> None:
        self.record = record
        self.probe = probe
        self.repeats = range(1, record.manifest.repeats + 1)
        self.base = baseline_id(record.manifest)
        self.baseline = first_baseline(record, probe)
        self.groups = groups(record, probe)
        self.planned = tuple(e.variant.id for e in record.manifest.variants if e.planned)
        known = record.index.rank.keys()
        self._groups = {group.residency.key: group for group in self.groups}
        self._runs: dict[str, list[Run]] = {}
        mine = record.index.by_prompt.get(probe, ())
        for run in sorted(mine, key=lambda run: (run.order, run.repeat)):
            # Runs under a variant's own id are those of the rounds, whatever else is stored.
            if (run.variant in known) == (run.purpose is Purpose.ROUND):
                self._runs.setdefault(run.variant, []).append(run)
        self.extra = tuple(name for name in self._runs if name not in known)
        self._further = _further(record, probe, [self._runs[name] for name in self.extra])
        self._unsteady = self._found_unsteady()

    def _found_unsteady(self) -> frozenset[tuple[str, object]]:
        """Ids and residencies at which runs of one command gave several streams."""
        seen: dict[tuple[str, object], set[tuple[int, ...] | None]] = {}
        for name, runs in self._runs.items():
            for run in runs:
                if (run.usable or run.state.wrong_output) and run.residency.known:
                    seen.setdefault((name, run.residency.key), set()).add(run.stream)
        for name, further in self._further.items():
            for run in further:
                seen.setdefault((name, run.residency.key), set()).add(run.stream)
        return frozenset(place for place, streams in seen.items() if len(streams) > 1)

    # ---- finding ------------------------------------------------------------------------

    def of(self, name: str) -> tuple[Run, ...]:
        """The runs under one id, by repeat."""
        return tuple(sorted(self._runs.get(name, ()), key=lambda run: run.repeat))

    def further(self, name: str) -> tuple[Run, ...]:
        """Comparable runs of a variant beside its rounds: warm-ups, extra runs, after a hang."""
        return tuple(self._further.get(name, ()))

    def run(self, name: str, repeat: int) -> Run | None:
        """One run, or None without a record of it."""
        return next((run for run in self._runs.get(name, ()) if run.repeat == repeat), None)

    def group_of(self, run: Run) -> Group | None:
        """The group in which a run of known residency is, or would be if it were usable."""
        return self._groups.get(run.residency.key)

    def pairs(self) -> tuple[Run, ...]:
        """The baseline's comparable runs in pairs with one shared size."""
        return tuple(
            run
            for runs in self._runs.values()
            for run in runs
            if run.purpose is Purpose.SHARED and run.of == self.base and comparable(run)
        )

    def refuses(self, reference: Run) -> str | None:
        """Why a run of known residency cannot serve as a reference, or None when it can."""
        if (reference.variant, reference.residency.key) in self._unsteady:
            return f"its reference, variant {reference.variant}, does not repeat itself"
        return None

    # ---- saying -------------------------------------------------------------------------

    def say(
        self, kind: Kind, name: str, result: Result, reason: str, *, repeat: int | None = None
    ) -> Verdict:
        """A verdict that compares nothing."""
        return Verdict(
            kind=kind,
            variant=name,
            probe=self.probe,
            result=result,
            reason=reason,
            repeat=repeat,
        )

    def unfit(self, kind: Kind, name: str, repeat: int) -> Verdict | None:
        """What is said of a planned run that cannot be compared; None for one that can.

        A truncated or degenerate stream can be held against a reference, if only to fail.
        """
        run = self.run(name, repeat)
        result = Result.INCONCLUSIVE
        if run is None:
            result, reason = self._no_record(name)
        elif run.state.never_started:
            result, reason = Result.SKIPPED, f"{run.state}: {run.reason}"
        elif not run.usable and not run.state.wrong_output:
            reason = f"{run.state}: {run.reason}"
        elif not run.residency.known:
            reason = f"the residency is unknown: {run.residency.unknown}"
        elif run.usable and not comparable(run):
            reason = "no stream of it is stored"
        else:
            return None
        return self.say(kind, name, result, reason, repeat=repeat)

    def _no_record(self, name: str) -> tuple[Result, str]:
        """Why a planned run is not there, and what that amounts to."""
        for run in self.of(name):
            if run.state.never_started:
                why = f"not run again after {run.state} (repeat {run.repeat}): {run.reason}"
                return Result.SKIPPED, why
            if run.state.hung:
                why = f"not run again after it timed out (repeat {run.repeat})"
                return Result.INCONCLUSIVE, why
        if name in self.record.index.hung_before:
            return Result.INCONCLUSIVE, "not run again after it timed out before the rounds"
        ending, cut = self.record.ending, self.record.ending_reason
        if ending is Ending.COMPLETE:
            return Result.INCONCLUSIVE, "planned, but there is no record of it"
        if ending is Ending.RUNNING:
            return Result.INCONCLUSIVE, "not run yet"
        return Result.INCONCLUSIVE, f"not run: {ending}" + (f" ({cut})" if cut else "")

    # ---- comparing ----------------------------------------------------------------------

    def compare(self, kind: Kind, run: Run, reference: Run) -> Verdict:
        """A run that :meth:`unfit` let through, against a comparable reference."""
        wrong = f"{run.state}: {run.reason}; " if run.state.wrong_output else ""
        refused = self.refuses(reference)
        if not run.residency.equals(reference.residency):
            labels = f"{run.residency.label} against {reference.residency.label}"
            why = f"{wrong}the residencies differ: {labels}"
            return self.against(kind, run, reference, Result.INCONCLUSIVE, why)
        if refused is not None:
            return self.against(kind, run, reference, Result.INCONCLUSIVE, wrong + refused)
        verdict = self.against(kind, run, reference, Result.FAIL, f"{run.state}: {run.reason}")
        if not wrong:
            assert run.stream is not None, "a usable run that is let through has one"
            if verdict.difference is None:
                enough = len(run.stream) >= LEAST_TOKENS
                result = Result.PASS if enough else Result.INCONCLUSIVE
                reason = alike(run.stream) + ("" if enough else ": too few to tell anything")
                return replace(verdict, result=result, reason=reason)
            verdict = replace(verdict, reason=parting(verdict.difference))
        return settle(self.record, verdict, run, reference)

    def against(self, kind: Kind, run: Run, reference: Run, result: Result, reason: str) -> Verdict:
        """A verdict on a run and a comparable reference, with their first difference."""
        assert reference.stream is not None
        difference = None
        if run.stream is not None:
            difference = first_difference(run.stream, reference.stream)
        return Verdict(
            kind=kind,
            variant=run.variant,
            probe=self.probe,
            result=result,
            reason=reason,
            repeat=run.repeat,
            against=(reference.variant, reference.repeat),
            difference=difference,
        )


def _further(
    record: Record, probe: str, extra: Iterable[Iterable[Run]]
) -> Mapping[str, Sequence[Run]]:
    """Comparable runs beside the rounds, by the variant behind them.

    A difference counts wherever it was seen, so that more care never gives a better verdict.
    """
    before = (run for run in record.warmup if run.purpose is Purpose.WARMUP)
    after = (run for run in record.rechecks if run.purpose is Purpose.AFTER_HANG)
    found: dict[str, list[Run]] = {}
    for run in chain(before, *extra, after):
        if run.probe == probe and comparable(run):
            found.setdefault(run.of, []).append(run)
    return found
