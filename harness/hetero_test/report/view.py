"""A judged record, indexed for rendering, with every text already fit for publishing.

:meth:`View.of` takes record, judgment and redactor; all builders read what it gives, and none of
them redacts. :func:`texts_of` finds every text that a report may show, so that addresses can be
numbered once.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hetero_test.publish.printable import clip, visible
from hetero_test.publish.redact import Redactor
from hetero_test.store.run_dir import list_of
from hetero_test.values.record import Record
from hetero_test.values.run import Effect, Purpose, RunState
from hetero_test.values.verdict import Judgment, Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hetero_test.values.record import Manifest
    from hetero_test.values.run import Run
    from hetero_test.values.verdict import Cluster, VariantSummary, Verdict

_LINE_END = re.compile(r"\s*[\r\n]+\s*")
RunKey = tuple[str, str, int]

LONG_LABEL = 20
"""Characters of a residency's label that still fit into a narrow column."""

WORST_FIRST = (
    Result.FAIL,
    Result.INCONCLUSIVE,
    Result.PASS,
    Result.NOT_CLAIMED,
    Result.SKIPPED,
)
"""Which result stands for a variant that has several."""

PURPOSES = {
    Purpose.ANCHOR: "anchor: variant {of} with the baseline's residency forced",
    Purpose.SHARED: "variant {of} with one size shared with the baseline",
    Purpose.HOME: "the baseline on one device alone, where that variant put the main model",
    Purpose.RECHECK: "variant {of} run again with the pinned recipe",
    Purpose.AFTER_HANG: "the baseline run again after a hang",
    Purpose.WARMUP: "warm-up",
}


@dataclass(frozen=True)
class View:
    """What the builders ask of a record and its judgment."""

    record: Record
    judgment: Judgment
    redactor: Redactor

    @classmethod
    def of(cls, record: Record, judgment: Judgment, redactor: Redactor) -> View:
        """A view whose addresses are numbered over the whole record."""
        learned = redactor.learn(texts_of(record, judgment), versions=_versions(record))
        return cls(record=record, judgment=judgment, redactor=learned)

    def say(self, text: str, limit: int = 400) -> str:
        """One line: redacted, nothing unseen, not longer than ``limit``."""
        # An invisible character in the middle of a name must not keep it from being seen.
        shown = self.said.get(text)
        if shown is None:
            line = visible(self.redactor(_LINE_END.sub(" ", text)))
            self.said[text] = shown = self.redactor(line)
        return clip(shown, limit)

    def command(self, argv: Iterable[str], env: Iterable[tuple[str, str]] = ()) -> str:
        """A line for a shell: the environment's delta, then the quoted arguments."""
        words = [
            f"{_quoted(self.say(name, 200))}={_quoted(self.say(value, 4000))}"
            for name, value in env
        ]
        words += [_quoted(self.say(arg, 4000)) for arg in self.redactor.argv(argv)]
        return " ".join(words)

    @cached_property
    def said(self) -> dict[str, str]:
        """What :meth:`say` made of each text; a report says most things many times."""
        return {}

    # ---- variants and their runs ----------------------------------------------------------

    @cached_property
    def base(self) -> str:
        """The baseline's id; empty where nothing was planned."""
        variants = self.record.manifest.variants
        return variants[0].variant.id if variants else ""

    @cached_property
    def ran(self) -> dict[str, tuple[Run, ...]]:
        """Runs by variant id: the matrix's order, then extra runs as they appeared."""
        found: dict[str, list[Run]] = {
            entry.variant.id: [] for entry in self.record.manifest.variants if entry.planned
        }
        for run in self.record.runs:
            found.setdefault(run.variant, []).append(run)
        probes = {probe.name: place for place, probe in enumerate(self.record.manifest.probes)}
        return {
            name: tuple(sorted(runs, key=lambda run: (probes.get(run.probe, 0), run.repeat)))
            for name, runs in found.items()
        }

    @cached_property
    def names(self) -> dict[str, str]:
        """What each variant id means, for people."""
        names = {e.variant.id: e.variant.name for e in self.record.manifest.variants}
        for name, runs in self.ran.items():
            if name not in names and runs:
                text = PURPOSES.get(runs[0].purpose, "extra runs of variant {of}")
                names[name] = text.format(of=runs[0].of)
        return names

    @cached_property
    def numerals(self) -> dict[object, str]:
        """Roman numbers for residencies, where labels are too long or do not tell them apart."""
        labels = {
            place_of(run): run.residency.label
            for runs in self.ran.values()
            for run in runs
            if run.usable
        }
        distinct = len(set(labels.values())) == len(labels)
        if distinct and all(len(label) <= LONG_LABEL for label in labels.values()):
            return {}
        return {place: roman(number) for number, place in enumerate(labels, start=1)}

    def residency_text(self, run: Run) -> str:
        """A run's residency for a narrow column."""
        return self.numerals.get(place_of(run)) or self.say(run.residency.label, 80)

    @cached_property
    def summaries(self) -> dict[str, VariantSummary]:
        """The judge's summary of each variant."""
        return {summary.id: summary for summary in self.judgment.summaries}

    @cached_property
    def verdicts(self) -> dict[str, tuple[Verdict, ...]]:
        """Verdicts by the judged variant's id."""
        found: dict[str, list[Verdict]] = {}
        for verdict in self.judgment.verdicts:
            found.setdefault(verdict.variant, []).append(verdict)
        return {name: tuple(verdicts) for name, verdicts in found.items()}

    @cached_property
    def cluster_of(self) -> dict[RunKey, Cluster]:
        """The cluster of each run that has a stream."""
        return {key: cluster for cluster in self.judgment.clusters for key in cluster.runs}

    @cached_property
    def run_of(self) -> dict[RunKey, Run]:
        """Each run by its key."""
        return {run.key: run for run in self.record.runs}

    def effect(self, name: str) -> Effect | None:
        """The effect of a variant, an anchor's from its own runs."""
        if name in self.summaries:
            return self.summaries[name].effect
        return Effect.worst(run.effect for run in self.ran.get(name, ()))

    def result(self, name: str) -> Result | None:
        """The result that stands for a variant; None without any comparison."""
        results = {verdict.result for verdict in self.verdicts.get(name, ())}
        return next((result for result in WORST_FIRST if result in results), None)

    @cached_property
    def _results(self) -> dict[RunKey, set[Result]]:
        """Results of the comparisons of each single run."""
        found: dict[RunKey, set[Result]] = {}
        for verdict in self.judgment.verdicts:
            if verdict.repeat is not None:
                key = (verdict.variant, verdict.probe, verdict.repeat)
                found.setdefault(key, set()).add(verdict.result)
        return found

    def result_of(self, run: Run) -> Result | None:
        """The result that stands for one run; None where it was compared with nothing."""
        results = self._results.get(run.key, set())
        return next((result for result in WORST_FIRST if result in results), None)

    def telling_first(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names with the baseline and all that did not simply pass in front."""
        dull = {n for n in names if n != self.base and self.result(n) is Result.PASS}
        return (*(n for n in names if n not in dull), *(n for n in names if n in dull))

    @cached_property
    def troubled(self) -> tuple[Run, ...]:
        """Every run that is not OK, warm-ups and re-checks included."""
        every = (*self.record.runs, *self.record.warmup, *self.record.rechecks)
        return tuple(run for run in every if run.state is not RunState.OK)

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """(variant, probe) in the report's order, where there is a run."""
        return tuple(
            dict.fromkeys((name, run.probe) for name, runs in self.ran.items() for run in runs)
        )

    def letters(self, name: str, probe: str) -> str:
        """The clusters of a variant's runs in order of repeat: ``A``, or ``A B B``."""
        runs = [run for run in self.ran.get(name, ()) if run.probe == probe]
        letters = [self.cluster_of[r.key].letter for r in runs if r.key in self.cluster_of]
        return letters[0] if letters and len(set(letters)) == 1 else " ".join(letters)


def place_of(run: Run) -> object:
    """What makes runs comparable; an unknown residency is a place of its own kind."""
    residency = run.residency
    return residency.key if residency.known else residency.unknown


def roman(number: int) -> str:
    """I, II, III, IV and so on."""
    out = ""
    for value, sign in (
        (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"),
        (1, "I"),
    ):  # fmt: skip
        out += sign * (number // value)
        number %= value
    return out


def folder(run: Run) -> str:
    """Where a run's own files are, below the run directory."""
    return f"{list_of(run.purpose)}/V{run.variant}/{run.probe}-{run.repeat}"


def _quoted(word: str) -> str:
    """One shell word; a home that was redacted to ``~`` stays usable."""
    if word.startswith("~/"):
        rest = shlex.quote(word[2:]) if word[2:] else ""
        return f"~/{rest}"
    return shlex.quote(word)


def _versions(record: Record) -> tuple[str, ...]:
    every = (record.manifest.engine.version, *(run.reading.version for run in record.runs))
    return tuple(version for version in every if version)


def texts_of(record: Record, judgment: Judgment) -> Iterator[str]:
    """All texts in a fixed order: the manifest's, then each run's, then the judge's."""
    yield from _asked(record.manifest)
    for run in (*record.runs, *record.warmup, *record.rechecks):
        yield from _ran(run)
    yield from record.warnings
    yield record.ending_reason or ""
    yield judgment.reason
    yield from judgment.warnings
    for verdict in judgment.verdicts:
        yield verdict.reason
    told = judgment.evidence
    yield from (*told.everywhere, *told.acknowledged)
    for lines in (*told.only.values(), *told.missing.values()):
        yield from lines
    for doubts in told.doubts.values():
        yield from (doubt.line for doubt in doubts)


def _asked(manifest: Manifest) -> Iterator[str]:
    yield from manifest.argv
    yield from manifest.model_flags
    for _, value in (*manifest.env, *manifest.inherited, *manifest.rig.facts):
        yield value
    yield manifest.rig.how
    yield from manifest.rig.notes
    for device in manifest.rig.devices:
        yield f"{device.name} {device.note or ''}"
    yield from manifest.warnings


def _ran(run: Run) -> Iterator[str]:
    yield from run.outcome.argv
    for _, value in run.cell.env:
        yield value
    yield run.reason or ""
    yield run.quote or ""
    yield from (*run.reading.lines, *run.reading.tail, *run.warnings, *run.reading.devices)
