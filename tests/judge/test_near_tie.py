"""Near ties: measured noise decides, not a guess; and a near tie is a cause, no excuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.judge.near_tie import LEAST_VALUES, NEAR_TIE, SHOWN, explain, explained
from hetero_test.judge.streams import first_difference
from hetero_test.values.reading import Factor, TokenChance
from hetero_test.values.record import EngineFacts, Limits, Manifest, MatrixFacts, Record, Rig
from hetero_test.values.run import Probe, Purpose, Run, RunState
from hetero_test.values.variant import PlannedVariant, Variant
from hetero_test.values.verdict import Kind, Result, Tie, Verdict
from tests.runs import made

if TYPE_CHECKING:
    from collections.abc import Sequence

ENGINE = EngineFacts(
    name="llama_cpp", path="e", sha256="0" * 64, size_bytes=1, version=None, build_dir="."
)


def chance(token: int, *others: tuple[int, float], logprob: float = -0.5) -> TokenChance:
    """One emitted token and what else was likely."""
    return TokenChance(id=token, logprob=logprob, top=((token, logprob), *others))


def run(
    chances: Sequence[TokenChance] | None,
    *,
    stream: Sequence[int] | None = None,
    variant: str = "1",
    probe: str = "p",
    repeat: int = 1,
    **facts: Any,
) -> Run:
    """A usable run with log-probabilities."""
    if stream is None:
        stream = [each.id for each in chances or ()]
    return made(
        variant=variant,
        of=variant,
        probe=probe,
        repeat=repeat,
        order=0,
        purpose=Purpose.ROUND,
        state=RunState.OK,
        stream=tuple(stream),
        chances=None if chances is None else tuple(chances),
        **facts,
    )


def repacked(value: str) -> Factor:
    """A cause that explains a difference by itself."""
    return Factor(name="repacked", value=value, words="the CPU repacks these weights")


def common(count: int, noise: float = 0.0) -> list[TokenChance]:
    """Tokens that both sides emit, moved by some noise."""
    return [chance(10 + n, (99, -3.0), logprob=-0.5 + noise) for n in range(count)]


def split(first: int, second: int, gap: float, *bystanders: tuple[int, float]) -> TokenChance:
    """A token with a close second."""
    return TokenChance(
        id=first, logprob=-0.7, top=((first, -0.7), (second, -0.7 - gap), *bystanders)
    )


def pair(
    *, before: int = 20, noise: float = 0.001, gaps: tuple[float, float] = (0.0005, 0.0002)
) -> tuple[Run, Run]:
    """Two runs that part after some common tokens."""
    this = run([*common(before, noise), split(1, 2, gaps[0]), chance(5)])
    reference = run([*common(before), split(2, 1, gaps[1]), chance(6)], variant="0")
    return this, reference


def tie(this: Run, reference: Run) -> Tie | None:
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    return found.tie


# ---- one pair ------------------------------------------------------------------------------


def test_gap_below_the_noise_is_a_near_tie() -> None:
    """The larger gap of both sides, below twice the noise of the pair, is a near tie."""
    this, reference = pair()
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    assert found.tie is Tie.NEAR_TIE
    assert found.gap == pytest.approx(0.0005)
    assert found.bound == pytest.approx(0.002)
    assert found.values == 20
    assert found.largest_before == pytest.approx(0.001)
    assert found.this_top[0] == (1, -0.7)
    assert found.reference_top[0] == (2, -0.7)
    assert "near tie: 1 and 2 are 0.0005 apart (bound 0.002, measured from 20 values)" in found.text
    assert "before it log-probabilities differ by up to 0.001" in found.text


def test_gap_above_the_noise_is_none() -> None:
    """Two tokens that are further apart than anything moved were no tie."""
    assert tie(*pair(gaps=(0.02, 0.0002))) is Tie.NOT_NEAR_TIE
    assert tie(*pair(gaps=(0.0002, 0.02))) is Tie.NOT_NEAR_TIE


def test_without_noise_a_difference_is_no_tie() -> None:
    """Where every log-probability before is bit-identical, a flipped token is no rounding."""
    this, reference = pair(noise=0.0)
    assert tie(this, reference) is Tie.NOT_NEAR_TIE
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    assert "before it log-probabilities bit-identical" in found.text


def test_an_exact_tie_needs_no_noise() -> None:
    """Two tokens with one log-probability are a tie, whatever breaks it."""
    assert tie(*pair(noise=0.0, gaps=(0.0, 0.0))) is Tie.NEAR_TIE


@pytest.mark.parametrize("third", [-0.701, -0.7])
def test_both_sides_must_have_the_same_two_candidates(third: float) -> None:
    """A third token among the two best of one side means that they were not the two."""
    this, reference = pair()
    assert this.reading.chances is not None
    other = TokenChance(id=1, logprob=-0.7, top=((1, -0.7), (3, third), (2, -0.7005)))
    this = run([*this.reading.chances[:20], other])
    assert tie(this, reference) is Tie.NOT_NEAR_TIE


def test_a_candidate_that_one_side_does_not_name() -> None:
    """Where the other side's token is not among the best there is no gap, and no tie."""
    this, reference = pair()
    assert this.reading.chances is not None
    this = run([*this.reading.chances[:20], chance(1, (7, -0.71))])
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    assert found.tie is Tie.NOT_NEAR_TIE
    assert found.gap is None
    assert "not among the best of both sides" in found.text


@pytest.mark.parametrize(("before", "known"), [(LEAST_VALUES - 1, False), (LEAST_VALUES, True)])
def test_too_few_values(before: int, known: bool) -> None:
    """Fewer than 8 values measure no noise: unknown, said so with the number."""
    this, reference = pair(before=before)
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    assert (found.tie is Tie.NEAR_TIE) is known
    assert (found.tie is Tie.UNKNOWN) is not known
    assert (found.bound is not None) is known
    assert found.values == before


def test_candidates_that_neither_chose_are_values_too() -> None:
    """At the split itself, what both sides name and neither emitted measures the noise."""
    tokens = [(30 + n, -4.0 - n) for n in range(LEAST_VALUES)]
    this = run([split(1, 2, 0.0005, *((t, lp + 0.001) for t, lp in tokens))])
    reference = run([split(2, 1, 0.0002, *tokens)], variant="0")
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    assert found.values == LEAST_VALUES
    assert found.tie is Tie.NEAR_TIE
    assert len(found.this_top) == SHOWN
    assert found.largest_before is None
    assert "before it no log-probability is shared" in found.text


def test_other_probes_measure_the_same_pair_of_placements() -> None:
    """Values of all probes count, each up to its own first difference."""
    this, reference = pair(before=3)
    assert tie(this, reference) is Tie.UNKNOWN
    others = (
        run([*common(10, 0.001), chance(1)], probe="q"),
        run([*common(10), chance(2)], probe="q", variant="0"),
    )
    found = explain(this, reference, [(this, reference), others])
    assert found is not None
    assert found.values == 13
    assert found.tie is Tie.NEAR_TIE


def test_a_rare_jump_does_not_widen_the_bound() -> None:
    """One value in a hundred that jumps, as when another expert is chosen, is not the noise."""
    this, reference = pair(before=80, gaps=(0.02, 0.02))
    assert this.reading.chances is not None
    jumped = [*this.reading.chances]
    jumped[50] = chance(60, (99, -3.0), logprob=-1.5)
    this = run(jumped)
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    assert found.largest_before == pytest.approx(1.0)
    assert found.bound == pytest.approx(0.002)
    assert found.tie is Tie.NOT_NEAR_TIE


def test_equal_and_bit_identical() -> None:
    """Equal ids with equal log-probabilities are said to be bit-identical."""
    this, reference = run(common(9)), run(common(9), variant="0")
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    assert found.tie is None
    assert found.largest_before == 0
    assert found.text == "ids equal, log-probabilities bit-identical"


def test_equal_ids_are_not_equal_probabilities() -> None:
    """Equal ids with log-probabilities that moved are another fact, with the largest move."""
    this, reference = run(common(9, 0.004)), run(common(9), variant="0")
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    assert found.text == "ids equal, log-probabilities differ by up to 0.004"


def test_a_candidate_that_moved_is_seen() -> None:
    """The emitted tokens may be identical while others moved: that is not bit-identical."""
    this = run([chance(1, (2, -3.0))])
    reference = run([chance(1, (2, -3.25))], variant="0")
    found = explain(this, reference, [(this, reference)])
    assert found is not None
    assert found.text == "ids equal, log-probabilities differ by up to 0.25"


def test_speculation_has_ids_only() -> None:
    """Log-probabilities of accepted drafts are not real, so none is shown."""
    drafting = run(None, stream=(1, 2), chances_trouble="none is real")
    other = run([chance(1), chance(2)], variant="0")
    found = explain(drafting, other, [(drafting, other)])
    assert found is not None
    assert (found.tie, found.gap, found.text) == (None, None, "ids only: none is real")


def test_engines_without_log_probabilities() -> None:
    """Where the engine gives none there is nothing to explain."""
    this, other = run(None, stream=(1, 2)), run(None, stream=(1, 3), variant="0")
    assert explain(this, other, [(this, other)]) is None


def test_a_prefix_has_no_candidates() -> None:
    """Where one stream ended there are no two candidates to compare."""
    this, other = run(common(4)), run(common(6), variant="0")
    assert tie(this, other) is Tie.UNKNOWN


_CHANCES = st.lists(
    st.builds(
        lambda token, logprob, top: TokenChance(id=token, logprob=logprob, top=tuple(top)),
        st.integers(0, 3),
        st.none() | st.floats(),
        st.lists(st.tuples(st.integers(0, 5), st.floats()), max_size=4),
    ),
    max_size=12,
)


@given(_CHANCES, _CHANCES)
def test_any_values(one: list[TokenChance], other: list[TokenChance]) -> None:
    """Whatever an engine gives, infinities included: no error, and both orders agree on the tie."""
    this, reference = run(one), run(other, variant="0")
    found = explain(this, reference, [(this, reference)])
    back = explain(reference, this, [(reference, this)])
    assert found is not None
    assert back is not None
    assert (found.tie, found.gap, found.bound) == (back.tie, back.gap, back.bound)
    assert found.values <= 12 + 4


# ---- a whole record ------------------------------------------------------------------------


def record(*runs: Run, rechecks: tuple[Run, ...] = ()) -> Record:
    """Some runs of variants 0 and 1 over probes p and q."""
    probes = tuple(Probe(name=name, ids=(1,), max_new=8) for name in "pq")
    manifest = Manifest(
        harness="0",
        argv=("hetero-test",),
        started="2026-01-01T00:00:00+00:00",
        engine=ENGINE,
        matrix=MatrixFacts(name="m", path="m", sha256="0" * 64),
        model_flags=(),
        model=(),
        env=(),
        rig=Rig(),
        probes=probes,
        variants=tuple(
            PlannedVariant(variant=Variant(id=name, name=name), planned=True) for name in "01"
        ),
        repeats=2,
        warmup=0,
        limits=Limits(run_s=1, idle_s=1),
    )
    return Record(manifest=manifest, runs=runs, rechecks=rechecks)


def exact(this: Run, reference: Run, result: Result = Result.FAIL) -> Verdict:
    assert this.stream is not None
    assert reference.stream is not None
    return Verdict(
        kind=Kind.EXACT,
        variant=this.variant,
        probe=this.probe,
        result=result,
        reason="r",
        repeat=this.repeat,
        against=(reference.variant, reference.repeat),
        difference=first_difference(this.stream, reference.stream),
    )


@pytest.mark.parametrize("result", [Result.FAIL, Result.NOT_CLAIMED])
def test_a_near_tie_is_a_cause_and_changes_no_result(result: Result) -> None:
    """A near tie keeps its result, FAIL included, and names its cause."""
    this, reference = pair()
    (found,) = explained(record(reference, this), [exact(this, reference, result)])
    assert found.result is result
    assert found.cause == NEAR_TIE
    assert found.explanation is not None
    assert found.explanation.tie is Tie.NEAR_TIE


def test_repacked_weights_are_the_cause() -> None:
    """Weights that one side repacked explain a difference better than a near tie does."""
    this, reference = pair()
    reference = run(
        reference.reading.chances, variant="0", causes=(repacked("1.85 MiB in CPU_REPACK"),)
    )
    (found,) = explained(record(reference, this), [exact(this, reference)])
    assert found.cause == ("the CPU repacks these weights (none against 1.85 MiB in CPU_REPACK)")


def test_equal_streams_have_no_cause() -> None:
    """A PASS says how equal the log-probabilities are, and needs no cause."""
    this, reference = run(common(9)), run(common(9), variant="0", causes=(repacked("x"),))
    (found,) = explained(record(reference, this), [exact(this, reference, Result.PASS)])
    assert found.cause is None
    assert found.explanation is not None
    assert found.explanation.text == "ids equal, log-probabilities bit-identical"


def test_probes_of_the_record_are_used() -> None:
    """The noise of a pair of variants is measured over every probe of the record."""
    this, reference = pair(before=3)
    q = run(common(10, 0.001), probe="q"), run(common(10), probe="q", variant="0")
    (found,) = explained(record(reference, this, *q), [exact(this, reference)])
    assert found.explanation is not None
    assert found.explanation.values == 13


def test_repeats() -> None:
    """Repeats of one variant are compared with the first; equal ones are said to be."""
    this, reference = pair()
    again = run(this.reading.chances, variant="0", repeat=2)
    verdict = Verdict(kind=Kind.REPEAT, variant="0", probe="p", result=Result.FAIL, reason="r")
    (found,) = explained(record(reference, again), [verdict])
    assert found.explanation is not None
    assert found.explanation.tie is Tie.NEAR_TIE


def test_verdicts_without_two_runs_stay_as_they_are() -> None:
    """Nothing is explained where nothing was compared."""
    verdict = Verdict(kind=Kind.EXACT, variant="1", probe="p", result=Result.SKIPPED, reason="r")
    assert explained(record(), [verdict]) == (verdict,)
