"""How many lines of the corpus are taken for what they are, from the log to the verdict.

A failure is noticed if no PASS comes without a warning that quotes it, and none at all under
``--strict``; a run that is not OK counts as noticed. A harmless line is quiet if it changes
neither the state nor the conclusion and gives no warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hetero_test.judge.judge import judge
from hetero_test.session.state import state_of
from hetero_test.values.run import RunState
from hetero_test.values.verdict import Conclusion
from tests.corpus.lines import OUTCOME, Drawn, drawn, healthy
from tests.judge.factories import changed, record

if TYPE_CHECKING:
    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Judgment

RIG = record("0: A A", "1: A A", "2: A A")
QUOTED = 40
"""Characters of a line by which a warning is seen to quote it."""
QUIET = frozenset(judge(RIG).warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one drawn line came to.

    Attributes:
        drawn: the line and its reading.
        passed: by (in all variants, strict), whether the matrix passes.
        failed: the matrix fails, which no line alone may cause.
        warned: a warning quotes the line, whoever printed it.
        state: of the run that printed it.
    """

    drawn: Drawn
    passed: dict[tuple[bool, bool], bool]
    failed: bool
    warned: dict[bool, bool]
    state: RunState

    @property
    def noticed(self) -> bool:
        """No PASS without a quoted warning, none under strict; of one variant and of all."""
        return self.state is not RunState.OK or all(
            not self.passed[everywhere, True]
            and (self.warned[everywhere] or not self.passed[everywhere, False])
            for everywhere in (False, True)
        )

    @property
    def undisturbed(self) -> bool:
        """The run is OK and the matrix passes, but for what ``--strict`` asks."""
        passes = self.passed[False, False] and self.passed[True, False]
        return self.state is RunState.OK and passes and not self.failed

    @property
    def quiet(self) -> bool:
        """Nothing came of it at all."""
        return self.undisturbed and not any(self.warned.values()) and all(self.passed.values())


def taken(found: Drawn) -> Taken:
    """Judge matrices in which one variant, and in which every one, prints the line."""
    probe = healthy(found.engine).probe
    finding = state_of(OUTCOME, found.reading, probe)
    values = {"finding": finding, "remarks": found.reading.remarks, "signs": found.reading.signs}
    one = changed(RIG, "1", 2, **values)
    every = changed(changed(changed(RIG, "0", **values), "1", **values), "2", **values)
    judged = {
        (everywhere, strict): judge(strictly(made) if strict else made)
        for everywhere, made in ((False, one), (True, every))
        for strict in (False, True)
    }
    return Taken(
        drawn=found,
        passed={key: each.conclusion is Conclusion.PASS for key, each in judged.items()},
        failed=any(each.conclusion is Conclusion.FAIL for each in judged.values()),
        warned={each: _warned(judged[each, False], found) for each in (False, True)},
        state=finding.state,
    )


def strictly(made: Record) -> Record:
    """The same under ``--strict``."""
    return replace(made, manifest=replace(made.manifest, strict=True))


def _warned(judgment: Judgment, found: Drawn) -> bool:
    end = found.line.text.strip()[-20:]
    heads = [each.line[:QUOTED] for each in found.reading.remarks if end in each.line]
    return any(head in warning for head in heads for warning in set(judgment.warnings) - QUIET)


@dataclass(slots=True)
class Count:
    """So many of so many."""

    good: int = 0
    all: int = 0
    others: list[Taken] = field(default_factory=list)

    def add(self, each: Taken, *, good: bool) -> None:
        """One more."""
        self.all += 1
        self.good += good
        if not good:
            self.others.append(each)

    def __str__(self) -> str:
        return f"{self.good} of {self.all}"


@dataclass(slots=True)
class Score:
    """One half of the corpus, borderline lines apart.

    Attributes:
        noticed: failures that are noticed, by class.
        undisturbed: harmless lines that make no run and no matrix worse.
        quiet: harmless lines of which nothing came at all.
        borderline: disputed lines that are taken as their class says.
    """

    noticed: dict[str, Count] = field(default_factory=dict)
    undisturbed: Count = field(default_factory=Count)
    quiet: Count = field(default_factory=Count)
    borderline: Count = field(default_factory=Count)
    known: int = 0


def score(half: str, among: Sequence[Drawn] | None = None) -> Score:
    """Score one half."""
    made = Score()
    for found in drawn() if among is None else among:
        line = found.line
        if line.half != half:
            continue
        if line.known:
            made.known += 1
            continue
        each = taken(found)
        if line.borderline:
            made.borderline.add(each, good=each.quiet if line.harmless else each.noticed)
        elif line.harmless:
            made.undisturbed.add(each, good=each.undisturbed)
            made.quiet.add(each, good=each.quiet)
        else:
            made.noticed.setdefault(line.kind, Count()).add(each, good=each.noticed)
    return made
