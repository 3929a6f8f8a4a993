"""Why two streams part: what the log-probabilities on both sides tell, where there are any.

Two placements that round differently part where their two best candidates are all but equal.
Whether they were is measured, not guessed: the noise of a pair of placements is what the
log-probabilities of the same tokens differ by on its two sides. A gap between the candidates
that is below twice that noise (either can move, in opposite directions) is a near tie.

A near tie is a cause, no excuse: where bit-exactness is claimed, it is a difference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isfinite
from typing import TYPE_CHECKING

from hetero_test.judge.streams import first_difference
from hetero_test.values.reading import differing
from hetero_test.values.verdict import Explanation, Kind, Result, Tie

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hetero_test.values.reading import TokenChance
    from hetero_test.values.record import Record
    from hetero_test.values.run import Run
    from hetero_test.values.verdict import Verdict

LEAST_VALUES = 8
"""With fewer measured values than this the noise of a pair is not known."""
SHOWN = 5
"""How many candidates of each side are shown."""
QUANTILE = 0.95
"""Share of the values that the noise covers: a rare jump, such as another expert chosen in a
near tie of its own, must not make every difference a near tie."""
_MOST_KEPT = 512
NEAR_TIE = "near tie"

_Pair = tuple["Run", "Run"]


def explained(record: Record, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The same verdicts, each with its explanation and, where it is known, its cause.

    Args:
        record: the runs that were judged.
        verdicts: as judged.
    """
    runs = {run.key: run for run in (*record.rechecks, *record.runs)}
    return tuple(_explained(record, verdict, _pair(record, runs, verdict)) for verdict in verdicts)


def explain(this: Run, reference: Run, pairs: Sequence[_Pair]) -> Explanation | None:
    """What the log-probabilities of two runs tell; None where the engine gives none.

    Args:
        this: the judged run.
        reference: what it is compared with.
        pairs: one run of each side for every probe, from which the noise is measured.
    """
    troubles = (run.reading.chances_trouble for run in (this, reference))
    if (trouble := next(filter(None, troubles), None)) is not None:
        return Explanation(text=f"ids only: {trouble}")
    if this.reading.chances is None or reference.reading.chances is None:
        return None
    if this.stream is None or reference.stream is None:
        return None
    measured = _measured(this, reference)
    largest = measured.largest
    difference = first_difference(this.stream, reference.stream)
    if difference is None:
        return Explanation(largest_before=largest, text=f"ids equal, {_extent(measured)}")
    before = f"before it {_extent(measured)}"
    at = difference.index
    if at >= min(len(this.reading.chances), len(reference.reading.chances)):
        return Explanation(tie=Tie.UNKNOWN, largest_before=largest, text=f"unknown; {before}")
    mine, theirs = this.reading.chances[at], reference.reading.chances[at]
    gap = _gap(mine, theirs)
    common = (value for pair in pairs for value in _measured(*pair).values)
    values = sorted([*common, *_bystanders(mine, theirs)])
    bound = _bound(values)
    tie = _tie(mine, theirs, gap, bound)
    return Explanation(
        tie=tie,
        gap=gap,
        bound=bound,
        values=len(values),
        this_top=mine.top[:SHOWN],
        reference_top=theirs.top[:SHOWN],
        largest_before=largest,
        text=f"{_words(tie, mine, theirs, gap, bound, len(values))}; {before}",
    )


def _pair(
    record: Record, runs: Mapping[tuple[str, str, int], Run], verdict: Verdict
) -> _Pair | None:
    """The two runs that a verdict compares."""
    if verdict.kind is Kind.REPEAT:
        every = record.index.by_command.get((verdict.variant, verdict.probe), ())
        mine = [run for run in every if run.usable]
        other = next((run for run in mine if run.stream != mine[0].stream), None)
        if other is None:
            other = mine[1] if len(mine) > 1 else None
        return None if other is None else (other, mine[0])
    if verdict.against is None or verdict.repeat is None:
        return None
    this = runs.get((verdict.variant, verdict.probe, verdict.repeat))
    reference = runs.get((verdict.against[0], verdict.probe, verdict.against[1]))
    return None if this is None or reference is None else (this, reference)


def _explained(record: Record, verdict: Verdict, pair: _Pair | None) -> Verdict:
    if pair is None:
        return verdict
    this, reference = pair
    explanation = explain(this, reference, [*_of_all_probes(record, this, reference)])
    cause = verdict.cause
    if verdict.difference is not None and cause is None and verdict.result is not Result.PASS:
        cause = _cause(this, reference)
        if cause is None and explanation is not None and explanation.tie is Tie.NEAR_TIE:
            cause = NEAR_TIE
    return replace(verdict, explanation=explanation, cause=cause)


def _of_all_probes(record: Record, this: Run, reference: Run) -> Iterator[_Pair]:
    """One pair of runs of the same two sides for every probe, the judged one for its own."""
    yield this, reference
    for probe in record.manifest.probes:
        if probe.name == this.probe:
            continue
        usable = record.index.first_usable
        one, other = (usable.get((side.variant, probe.name)) for side in (this, reference))
        if one is not None and other is not None and one is not other:
            yield one, other


def _cause(this: Run, reference: Run) -> str | None:
    for words, *values in differing(this.reading.causes, reference.reading.causes):
        shown = " against ".join("none" if value is None else str(value) for value in values)
        return f"{words} ({shown})"
    return None


@dataclass(frozen=True, slots=True)
class _Measured:
    """What two runs have in common before they part.

    Attributes:
        values: by how much the log-probability of each token that both emitted differs.
        largest: the largest difference of any candidate that both name, None without any.
        identical: whether every candidate on both sides is the same to the last bit.
    """

    values: tuple[float, ...]
    largest: float | None
    identical: bool


_memo: dict[tuple[int, ...], tuple[tuple[object, ...], _Measured]] = {}
"""Measured pairs by the identity of their parts, which are kept alive with them: a matrix is
judged again and again while it runs, and long streams take a while to compare."""


def _measured(this: Run, reference: Run) -> _Measured:
    parts = (this.reading.chances, reference.reading.chances, this.stream, reference.stream)
    key = tuple(map(id, parts))
    if key not in _memo:
        if len(_memo) >= _MOST_KEPT:
            _memo.clear()
        _memo[key] = (parts, _measure(this, reference))
    return _memo[key][1]


def _measure(this: Run, reference: Run) -> _Measured:
    mine, theirs = this.reading.chances or (), reference.reading.chances or ()
    difference = first_difference(this.stream or (), reference.stream or ())
    end = len(this.stream or ()) if difference is None else difference.index
    values: list[float] = []
    largest: float | None = None
    identical = True
    for one, other in zip(mine[:end], theirs[:end], strict=False):
        value = _distance(one.logprob, other.logprob)
        if value is not None:
            values.append(value)
        if one.top == other.top and one.logprob == other.logprob:
            found = [0.0] if one.top or value is not None else []
        else:
            identical = False
            there = dict(other.top)
            moved = (_distance(logprob, there.get(token)) for token, logprob in one.top)
            found = [each for each in (value, *moved) if each is not None]
        largest = max((each for each in (largest, *found) if each is not None), default=None)
    return _Measured(tuple(values), largest, identical)


def _distance(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return None
    value = abs(one - other)
    return value if isfinite(value) else None


def _bystanders(this: TokenChance, reference: TokenChance) -> Iterator[float]:
    """At the difference itself: the candidates of both sides that neither of them emitted."""
    theirs = dict(reference.top)
    for token, logprob in this.top:
        if token not in {this.id, reference.id}:
            value = _distance(logprob, theirs.get(token))
            if value is not None:
                yield value


def _gap(this: TokenChance, reference: TokenChance) -> float | None:
    """Between the two emitted tokens, the larger of both sides; None where one is not told."""
    gaps = []
    for side in (dict(this.top), dict(reference.top)):
        if this.id not in side or reference.id not in side:
            return None
        gaps.append(abs(side[this.id] - side[reference.id]))
    return max(gaps) if all(map(isfinite, gaps)) else None


def _bound(values: Sequence[float]) -> float | None:
    """Twice the noise; ``values`` in ascending order."""
    if len(values) < LEAST_VALUES:
        return None
    return 2 * values[ceil(QUANTILE * len(values)) - 1]


def _tie(this: TokenChance, reference: TokenChance, gap: float | None, bound: float | None) -> Tie:
    if not this.top or not reference.top:
        return Tie.UNKNOWN
    candidates = {this.id, reference.id}
    if any({token for token, _ in side.top[:2]} != candidates for side in (this, reference)):
        return Tie.NOT_NEAR_TIE
    if gap == 0:
        return Tie.NEAR_TIE
    if bound is None or gap is None:
        return Tie.UNKNOWN
    return Tie.NEAR_TIE if gap < bound else Tie.NOT_NEAR_TIE


def _words(
    tie: Tie,
    this: TokenChance,
    reference: TokenChance,
    gap: float | None,
    bound: float | None,
    values: int,
) -> str:
    if gap is None:
        return f"{tie}: the two candidates are not among the best of both sides"
    apart = f"{this.id} and {reference.id} are {gap:.2g} apart"
    if bound is None:
        return f"{tie}: {apart}, and {values} values are too few to measure the noise"
    measured = f"bound {bound:.2g}, measured from {values} values"
    if tie is Tie.NOT_NEAR_TIE and gap < bound:
        return f"{tie}: {apart}, but they are not the two best of both sides ({measured})"
    return f"{tie}: {apart} ({measured})"


def _extent(measured: _Measured) -> str:
    if measured.largest is None:
        return "no log-probability is shared"
    if measured.identical:
        return "log-probabilities bit-identical"
    return f"log-probabilities differ by up to {measured.largest:.2g}"
