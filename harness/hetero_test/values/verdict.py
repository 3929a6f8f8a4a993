"""The values at the end of the road: verdict, cluster, conclusion, and what explains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hetero_test.values.run import Effect

LEAST_TOKENS = 4
"""Fewer pass nothing: they cannot be told from garbage, and most differences come later."""


class Result(StrEnum):
    """What one comparison came to."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    SKIPPED = "SKIPPED"
    NOT_CLAIMED = "NOT_CLAIMED"

    @property
    def words(self) -> str:
        """The result for people."""
        return self.value.replace("_", " ")

    @property
    def sign(self) -> str:
        """What stands beside the word, never instead of it; empty where nothing does."""
        return SIGNS.get(self.value, "")


class Kind(StrEnum):
    """Which question a comparison answers."""

    REPEAT = "repeat"
    EXACT = "exact"
    ANCHOR = "anchor"


class Conclusion(StrEnum):
    """What the whole matrix came to."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"

    @property
    def sign(self) -> str:
        """What stands beside the word, never instead of it."""
        return SIGNS[self.value]


SIGNS = {"PASS": "✅", "FAIL": "❌", "INCONCLUSIVE": "⚠️"}
"""Signs of results and conclusions, by their words."""


class Tie(StrEnum):
    """Whether two streams part where their two candidates were all but equal."""

    NEAR_TIE = "near tie"
    NOT_NEAR_TIE = "not a near tie"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What log-probabilities tell of two streams, where the engine gives any.

    Attributes:
        tie: at the first difference; None for equal streams.
        gap: between the two candidates at the first difference, the larger of both sides,
            in nats.
        bound: below which a gap is no larger than the noise of this pair, in nats.
        values: how many log-probability differences the bound was measured from.
        this_top: best candidates of the judged run at the first difference, as
            (id, log-probability).
        reference_top: likewise of the reference.
        largest_before: the largest log-probability difference before the first difference
            (over the whole stream where there is none), in nats; 0.0 means bit-identical.
        text: all of this in a sentence.
    """

    tie: Tie | None = None
    gap: float | None = None
    bound: float | None = None
    values: int = 0
    this_top: tuple[tuple[int, float], ...] = ()
    reference_top: tuple[tuple[int, float], ...] = ()
    largest_before: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first place at which two streams part.

    Attributes:
        index: position in the stream, from 0.
        this: the ids from there on in the judged run, a few of them.
        reference: likewise in the reference.
        prefix: which side ended first: ``this``, ``reference`` or None.
    """

    index: int
    this: tuple[int, ...]
    reference: tuple[int, ...]
    prefix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One comparison's result.

    Attributes:
        against: (variant id, repeat) of the reference; None for ``repeat``.
        repeat: of the judged run; None where the verdict is of all repeats.
        cause: a known cause of the difference, in words.
        recheck: letter of the extra runs that tell more of a difference, if any would.
        explanation: what log-probabilities tell, where there are any.
    """

    kind: Kind
    variant: str
    probe: str
    result: Result
    reason: str
    repeat: int | None = None
    against: tuple[str, int] | None = None
    difference: Difference | None = None
    cause: str | None = None
    recheck: str | None = None
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """All runs with one stream."""

    letter: str
    md5: str
    residencies: tuple[str, ...]
    runs: tuple[tuple[str, str, int], ...]


class Moved(StrEnum):
    """Whether a variant's placement is another one than the baseline's."""

    YES = "yes"
    SAME = "same as the baseline"
    UNTOLD = "no line tells"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSummary:
    """What became of one variant over all its runs and verdicts.

    Attributes:
        effect: whether the log proves that the placement is as asked; None without a usable run.
        moved: whether it is another one than the baseline's; None where that is not known.
        doubts: lines that no reader knows and that speak against it.
    """

    id: str
    effect: Effect | None
    moved: Moved | None
    doubts: tuple[str, ...]
    text: str
    exact: bool
    own_residency: bool
    baseline_residency: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A line that speaks against a placement.

    Attributes:
        line: verbatim.
        undone: it says of a flag of the placement that it was not carried out.
    """

    line: str
    undone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What unknown lines say of a matrix.

    Attributes:
        doubts: by variant, the lines that speak against its placement.
        everywhere: lines that speak of a failure and that the baseline printed, too.
        only: by variant, further lines that its runs print and no run without its flags does.
        missing: by variant, lines that every baseline run prints and none of its runs does.
        acknowledged: lines that the matrix file names as harmless.
    """

    doubts: Mapping[str, tuple[Doubt, ...]] = field(default_factory=dict)
    everywhere: tuple[str, ...] = ()
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    acknowledged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """All that the judge concludes from a plan and its runs."""

    conclusion: Conclusion
    headline: str
    reason: str
    verdicts: tuple[Verdict, ...]
    clusters: tuple[Cluster, ...]
    summaries: tuple[VariantSummary, ...]
    warnings: tuple[str, ...]
    evidence: Evidence = Evidence()

    def count(self, result: Result) -> int:
        """How many verdicts came to this result."""
        return sum(verdict.result is result for verdict in self.verdicts)
