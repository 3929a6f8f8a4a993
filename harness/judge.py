"""Runs to verdicts. Pure: any old run directory can be judged again.

A comparison can only come to PASS when two streams were compared, both from OK runs, at an
equal and known residency, against a reference that is identical to itself. Every other way in
which "nothing differed" can be true has a result and a reason of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.groups import Bond, baseline_id, groups, shared_id
from harness.model import Kind, Result, RunState, Verdict
from harness.recheck import settle
from harness.streams import first_difference, lettering

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.groups import Group
    from harness.model import Run
    from harness.record import Record

NEVER_STARTED = (RunState.REFUSED, RunState.NO_MEMORY)
"""States of a placement that does not exist on this rig: nothing to judge."""
WRONG_OUTPUT = (RunState.TRUNCATED, RunState.DEGENERATE)
"""States of a stream that is there but cannot be right."""


def verdicts(record: Record) -> tuple[Verdict, ...]:
    """Every comparison that the plan asks for: repeats, then exact, then anchors."""
    found: list[Verdict] = []
    for probe in (probe.name for probe in record.manifest.probes):
        bench = _Bench(record, probe)
        found += bench.repeats()
        found += bench.exact()
        found += bench.anchors()
    order = {kind: place for place, kind in enumerate(Kind)}
    return tuple(sorted(found, key=lambda verdict: order[verdict.kind]))


class _Bench:
    """One probe's runs, laid out for comparison."""

    def __init__(self, record: Record, probe: str) -> None:
        self.record = record
        self.manifest = record.manifest
        self.probe = probe
        self.base = baseline_id(record.manifest)
        self.groups = groups(record, probe)
        self.planned = tuple(e.variant for e in self.manifest.variants if e.planned)
        self.runs: dict[str, tuple[Run, ...]] = {}
        for run in sorted(record.runs, key=lambda run: run.repeat):
            if run.probe == probe:
                self.runs[run.variant] = (*self.runs.get(run.variant, ()), run)
        # An anchor whose log shows another residency than wanted is no comparison.
        self.missed = {
            group.tie
            for group in self.groups
            if group.bond is Bond.ANCHOR and self._missed(group.tie)
        }

    def _of(self, variant: str | None) -> tuple[Run, ...]:
        return self.runs.get(variant or "", ())

    def _missed(self, anchor: str | None) -> bool:
        baseline = self._baseline()
        return baseline is not None and any(
            run.usable and not run.residency.equals(baseline.residency) for run in self._of(anchor)
        )

    def _baseline(self) -> Run | None:
        mine = (run for run in self._of(self.base) if run.usable and run.residency.known)
        return next(mine, None)

    def _verdict(
        self, kind: Kind, variant: str, result: Result, reason: str, *, repeat: int | None = None
    ) -> Verdict:
        return Verdict(
            kind=kind,
            variant=variant,
            probe=self.probe,
            result=result,
            reason=reason,
            repeat=repeat,
        )

    # ---- repeat -------------------------------------------------------------------------

    def repeats(self) -> list[Verdict]:
        """One verdict a variant, extra runs included: whether its repeats are identical."""
        planned = [variant.id for variant in self.planned]
        extra = [name for name in self.runs if name not in planned]
        return [self._repeat(name) for name in (*planned, *extra)]

    def _repeat(self, name: str) -> Verdict:
        runs, asked = self._of(name), self.manifest.repeats
        usable = [run for run in runs if run.usable]

        def say(result: Result, reason: str) -> Verdict:
            return self._verdict(Kind.REPEAT, name, result, reason)

        if name in self.missed:
            return say(Result.SKIPPED, "the forced residency was not reached")
        if runs and all(run.state in NEVER_STARTED for run in runs):
            return say(Result.SKIPPED, f"{runs[0].state}: {runs[0].reason}")
        if (found := self._unequal_repeats(name, usable)) is not None:
            return found
        if asked == 1:
            return say(Result.SKIPPED, "one repeat was asked for, so nothing was repeated")
        if unknown := [run for run in usable if not run.residency.known]:
            return say(
                Result.INCONCLUSIVE, f"the residency is unknown: {unknown[0].residency.unknown}"
            )
        labels = tuple(dict.fromkeys(run.residency.label for run in usable))
        if len({run.residency.key for run in usable}) > 1:
            shown = " and ".join(labels) if len(labels) > 1 else f"{labels[0]} and another"
            return say(Result.INCONCLUSIVE, f"the repeats had different residencies: {shown}")
        if len(usable) < asked:
            states = ", ".join(run.state for run in runs if not run.usable)
            missing = asked - len(runs)
            states += ("; " if states else "") + f"{missing} not run" if missing > 0 else ""
            return say(
                Result.INCONCLUSIVE, f"{len(usable)} of {asked} repeats are usable ({states})"
            )
        return say(Result.PASS, f"{asked} of {asked} repeats are identical")

    def _unequal_repeats(self, name: str, usable: Sequence[Run]) -> Verdict | None:
        """A difference between repeats of one residency, whatever became of the others."""
        for runs in _by_residency(usable):
            if (distinct := len({run.stream for run in runs})) > 1:
                other = next(run for run in runs if run.stream != runs[0].stream)
                difference = first_difference(other.stream or (), runs[0].stream or ())
                at = "" if difference is None else f", first at token {difference.index}"
                verdict = Verdict(
                    kind=Kind.REPEAT,
                    variant=name,
                    probe=self.probe,
                    result=Result.FAIL,
                    reason=f"{distinct} distinct streams in {len(runs)} repeats "
                    f"({lettering(runs)}){at}",
                    difference=difference,
                )
                return settle(self.record, verdict, other, runs[0])
        return None

    # ---- exact --------------------------------------------------------------------------

    def exact(self) -> list[Verdict]:
        """Every run of every variant against its reference."""
        found: list[Verdict] = []
        for variant in self.planned:
            if variant.id == self.base:
                continue
            covered = False
            for repeat in range(1, self.manifest.repeats + 1):
                run = next((r for r in self._of(variant.id) if r.repeat == repeat), None)
                verdict = self._exact(variant.id, repeat, run, claims=variant.claims)
                is_cover = verdict.repeat is None
                if not (is_cover and covered):  # its own group says so once
                    found.append(verdict)
                covered = covered or is_cover
        return found

    def _exact(self, name: str, repeat: int, run: Run | None, *, claims: bool) -> Verdict:
        def say(result: Result, reason: str) -> Verdict:
            return self._verdict(Kind.EXACT, name, result, reason, repeat=repeat)

        if run is None:
            return say(*self._no_record(name))
        if run.state in NEVER_STARTED:
            return say(Result.SKIPPED, f"{run.state}: {run.reason}")
        if not run.usable and run.state not in WRONG_OUTPUT:
            return say(Result.INCONCLUSIVE, f"{run.state}: {run.reason}")
        if not run.residency.known:
            return say(Result.INCONCLUSIVE, f"the residency is unknown: {run.residency.unknown}")
        group = next((g for g in self.groups if g.residency.equals(run.residency)), None)
        if not claims or (
            group is not None and group.bond is Bond.UNCLAIMED and group.first == name
        ):
            return self._unclaimed(run)
        if run.state in WRONG_OUTPUT:
            return self._wrong_output(run, group)
        assert group is not None, "a usable, claiming run of known residency is in a group"
        reference = self._reference(group)
        if reference is None or reference.variant == name:
            return self._own(group, name, repeat)
        return self._compare(Kind.EXACT, run, reference)

    def _reference(self, group: Group) -> Run | None:
        """The baseline's first run in the group, else the group's first variant's."""
        if group.bond is Bond.BASELINE:
            return next(iter(group.runs_of(self.base)), None)
        if group.bond is Bond.HOME:
            home = (r for r in self._of(group.tie) if r.usable)
            at_home = next((r for r in home if r.residency.equals(group.residency)), None)
            if at_home is not None:
                return at_home
        return next(iter(group.runs_of(group.first)), None)

    def _own(self, group: Group, name: str, repeat: int) -> Verdict:
        """A group's first variant has nobody to be compared with but its anchor."""
        if self._is_covered(group):
            return self._verdict(Kind.EXACT, name, Result.SKIPPED, "covered by its anchor")
        if group.bond is Bond.HOME:
            wanted = group.residency.label
            got = ", ".join(
                dict.fromkeys(
                    run.residency.label if run.usable else str(run.state)
                    for run in self._of(group.tie)
                )
            )
            got = got or "no run"
            why = f"the baseline on that device alone did not give {wanted} (it gave {got})"
        else:
            why = (
                f"no other run has its residency ({group.residency.label}), and no anchor covers it"
            )
            if group.bond is Bond.EXCESS:
                why += ": more residencies than are anchored"
        return self._verdict(Kind.EXACT, name, Result.INCONCLUSIVE, why, repeat=repeat)

    def _is_covered(self, group: Group) -> bool:
        if group.bond is not Bond.ANCHOR:
            return False
        ties = (group.tie, shared_id(group.first))
        return any(
            verdict.result in {Result.PASS, Result.FAIL}
            for verdict in self.anchors()
            if verdict.variant in ties
        )

    def _wrong_output(self, run: Run, group: Group | None) -> Verdict:
        """A stream that cannot be right, against a reference that can."""
        reference = None if group is None else self._reference(group)
        refuses = self._refuses(reference) if reference is not None else "there is no reference"
        if reference is None or refuses is not None or reference.variant == run.variant:
            reason = f"{run.state}: {run.reason}; no reference to hold it against"
            return self._verdict(
                Kind.EXACT, run.variant, Result.INCONCLUSIVE, reason, repeat=run.repeat
            )
        verdict = self._against(
            Kind.EXACT, run, reference, Result.FAIL, f"{run.state}: {run.reason}"
        )
        return settle(self.record, verdict, run, reference)

    def _unclaimed(self, run: Run) -> Verdict:
        """Compared and shown, but neither PASS nor FAIL can come of it."""
        baseline = self._baseline()
        if baseline is None or baseline.stream is None or run.stream is None:
            reason = "not claimed to be equal, and not compared: "
            reason += "the baseline has no usable run" if baseline is None else f"{run.state}"
            return self._verdict(
                Kind.EXACT, run.variant, Result.INCONCLUSIVE, reason, repeat=run.repeat
            )
        difference = first_difference(run.stream, baseline.stream)
        seen = (
            f"equal over {len(run.stream)} tokens"
            if difference is None
            else f"differs from token {difference.index} on"
        )
        if run.state in WRONG_OUTPUT:
            seen += f" ({run.state}: {run.reason})"
        reason = f"not claimed to be equal: {seen}"
        return self._against(Kind.EXACT, run, baseline, Result.NOT_CLAIMED, reason)

    def _no_record(self, name: str) -> tuple[Result, str]:
        """A planned run that is not there: what ended the first one may explain it."""
        for run in self._of(name):
            if run.state in NEVER_STARTED:
                return Result.SKIPPED, f"not run again after {run.state}: {run.reason}"
            if run.state is RunState.TIMED_OUT:
                why = f"not run again after it timed out (repeat {run.repeat})"
                return Result.INCONCLUSIVE, why
        return Result.INCONCLUSIVE, "planned, but there is no record of it"

    # ---- anchor -------------------------------------------------------------------------

    def anchors(self) -> list[Verdict]:
        """Each repeat of an anchor, or of a pair with one shared size, against the baseline."""
        found: list[Verdict] = []
        for tie in dict.fromkeys(g.tie for g in self.groups if g.bond is Bond.ANCHOR):
            if not self._of(tie):
                continue
            first = next(g.first for g in self.groups if g.tie == tie)
            found += self._tie(tie or "", self._baseline(), missed=tie in self.missed)
            if tie in self.missed:
                shared = next((r for r in self._of(shared_id(self.base)) if r.usable), None)
                found += self._tie(shared_id(first), shared, missed=False)
        return found

    def _tie(self, name: str, reference: Run | None, *, missed: bool) -> list[Verdict]:
        out = []
        for repeat in range(1, self.manifest.repeats + 1):
            run = next((r for r in self._of(name) if r.repeat == repeat), None)

            def say(result: Result, reason: str, repeat: int = repeat) -> Verdict:
                return self._verdict(Kind.ANCHOR, name, result, reason, repeat=repeat)

            if missed:
                got = next(r.residency.label for r in self._of(name) if r.usable)
                wanted = "–" if reference is None else reference.residency.label
                out.append(say(Result.SKIPPED, f"forced {wanted}, but the engine opened {got}"))
            elif run is None:
                out.append(say(*self._no_record(name)))
            elif run.state in NEVER_STARTED:
                out.append(say(Result.SKIPPED, f"{run.state}: {run.reason}"))
            elif run.state in WRONG_OUTPUT and reference is not None:
                out.append(self._wrong_anchor(run, reference))
            elif not run.usable:
                out.append(say(Result.INCONCLUSIVE, f"{run.state}: {run.reason}"))
            elif reference is None:
                out.append(say(Result.INCONCLUSIVE, "the baseline's side has no usable run"))
            elif not run.residency.equals(reference.residency):
                numbers = f"{run.residency.label} against {reference.residency.label}"
                out.append(say(Result.INCONCLUSIVE, f"the residencies differ: {numbers}"))
            else:
                out.append(self._compare(Kind.ANCHOR, run, reference))
        return out

    def _wrong_anchor(self, run: Run, reference: Run) -> Verdict:
        reason = f"{run.state}: {run.reason}"
        if not run.residency.equals(reference.residency) or self._refuses(reference):
            return self._verdict(
                Kind.ANCHOR, run.variant, Result.INCONCLUSIVE, reason, repeat=run.repeat
            )
        verdict = self._against(Kind.ANCHOR, run, reference, Result.FAIL, reason)
        return settle(self.record, verdict, run, reference)

    # ---- comparing ----------------------------------------------------------------------

    def _refuses(self, reference: Run) -> str | None:
        """Why a run cannot serve as a reference, or None when it can."""
        mates = [
            run
            for run in self._of(reference.variant)
            if run.usable and run.residency.equals(reference.residency)
        ]
        if len({run.stream for run in mates}) > 1:
            return f"its reference, variant {reference.variant}, does not repeat itself"
        return None

    def _compare(self, kind: Kind, run: Run, reference: Run) -> Verdict:
        """Two usable runs of equal residency."""
        if (why := self._refuses(reference)) is not None:
            return self._against(kind, run, reference, Result.INCONCLUSIVE, why)
        assert run.stream is not None
        assert reference.stream is not None
        difference = first_difference(run.stream, reference.stream)
        if difference is None:
            reason = f"equal over {len(run.stream)} tokens"
            return self._against(kind, run, reference, Result.PASS, reason)
        reason = f"differs from token {difference.index} on"
        if difference.prefix is not None:
            shorter = "it is" if difference.prefix == "this" else "the reference is"
            reason = f"{shorter} a strict prefix: parts at token {difference.index}"
        verdict = self._against(kind, run, reference, Result.FAIL, reason)
        return settle(self.record, verdict, run, reference)

    def _against(
        self, kind: Kind, run: Run, reference: Run, result: Result, reason: str
    ) -> Verdict:
        difference = None
        if run.stream is not None and reference.stream is not None:
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


def _by_residency(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs of known residency, one list each."""
    found: dict[object, list[Run]] = {}
    for run in runs:
        if run.residency.known:
            found.setdefault(run.residency.key, []).append(run)
    return list(found.values())
