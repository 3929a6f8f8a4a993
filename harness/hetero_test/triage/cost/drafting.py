"""What a round of speculation costs, how many tokens it commits, and when it pays.

speed-up = E / (K r + V(K + 1)): E tokens are committed for K draft steps of r each and one
verification of K + 1 rows. The published formula (Leviathan et al. 2023,
https://arxiv.org/abs/2211.17192) has V = 1; measured, one more row costs β = 0.05 to 0.8 steps.

Runtimes print accepted/drafted, counters or counts by position. None of these is p, the chance
that a draft is accepted *given* that all before it were: with accepted/drafted 0.42 at four drafts
a round commits 2.68 tokens, while 0.42 taken as p would say 1.70.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

KERNEL_ROWS = 8
"""Rows up to which llama.cpp multiplies with its matrix-vector kernels (MMVQ_MAX_BATCH_SIZE,
ggml-cuda; Metal switches at the same count). Beyond, a matrix-matrix kernel makes more rows
nearly free until compute is full."""


def unique_experts(experts: int, used: int, rows: int) -> float:
    """Experts of a layer that `rows` tokens touch together: E (1 − (1 − k/E)^T).

    An upper bound: it takes routing as independent, and real routing is heavy-tailed
    (MoE-Spec, https://arxiv.org/abs/2602.16052).

    Args:
        experts: E, routed experts of the layer.
        used: k, those that one token is routed to.
        rows: T, tokens.

    Raises:
        ValueError: more are used than there are, or none, or there are fewer than no rows.
    """
    if not 0 < used <= experts or rows < 0:
        raise ValueError(f"{used} of {experts} experts for {rows} rows cannot be")
    return float(experts * (1 - (1 - used / experts) ** rows))


def expert_growth(experts: int, used: int, rows: int) -> float:
    """Expert bytes that `rows` rows read, as a multiple of those of one row: U(T) / k.

    Raises:
        ValueError: as `unique_experts`.
    """
    return unique_experts(experts, used, rows) / used


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """What decides the cost of a batch of T rows.

    Where V(T) was measured on this placement, that is used and nothing else.
    """

    beta: float
    """Marginal cost of one more row against a step of one row, for what is read once a batch."""
    kernel_rows: int | None = KERNEL_ROWS
    """Rows beyond which further ones cost nothing; None: each row costs."""
    expert_share: float = 0.0
    """Share of a step's time that goes into reading routed experts."""
    experts: int = 0
    used: int = 0
    eta: float = 1.0
    """Growth of the touched experts, as a share of that with independent routing."""
    measured: Mapping[int, float] = field(default_factory=dict)
    """V by rows, V(1) = 1."""

    def cost(self, rows: int) -> float:
        """V(T): time of a step of `rows` rows in steps of one row.

        Raises:
            ValueError: there is no row, or nothing measured allows an interpolation.
        """
        if rows < 1:
            raise ValueError(f"a step of {rows} rows cannot be")
        if self.measured:
            return _interpolated({1: 1.0, **self.measured}, rows)
        counted = rows if self.kernel_rows is None else min(rows, self.kernel_rows)
        once = 1 + self.beta * (counted - 1)
        if not self.expert_share:
            return once
        grown = 1 + self.eta * (expert_growth(self.experts, self.used, rows) - 1)
        return (1 - self.expert_share) * once + self.expert_share * grown


def _interpolated(known: Mapping[int, float], rows: int) -> float:
    """Straight lines between measured batch sizes; beyond the last, the last slope."""
    if rows in known:
        return known[rows]
    sizes = sorted(known)
    if len(sizes) == 1:
        raise ValueError("V(1) = 1 alone says nothing of larger batches")
    above = next((size for size in sizes if size > rows), sizes[-1])
    below = sizes[sizes.index(above) - 1]
    slope = (known[above] - known[below]) / (above - below)
    return known[below] + slope * (rows - below)


def round_cost(window: int, draft_cost: float, verify: float) -> float:
    """Steps of the target that a round takes: K r + V."""
    return window * draft_cost + verify


def speedup(tokens_per_round: float, cost: float) -> float:
    """Decode speed against the target alone: E / cost."""
    return tokens_per_round / cost


def implied_beta(window: int, draft_cost: float, cost: float) -> float:
    """The β that a measured round cost implies: (cost − 1) / K − r."""
    return (cost - 1) / window - draft_cost


def break_even_p(window: int, cost: float, *, incumbent_speedup: float = 1.0) -> float | None:
    """Conditional acceptance at which a round of this cost equals an incumbent's speed-up.

    Solves (1 − p^(K+1)) / (1 − p) = cost × speed-up for p. With r 0.4, K 3 and free verification,
    a cost of 2.2, it is 0.607.

    Against an incumbent that drafts with its own head a higher p is needed than against one
    that does not draft. None: even p = 1 does not suffice.

    Raises:
        ValueError: the window is below one.
    """
    wanted = cost * incumbent_speedup
    if wanted > from_p(window, 1.0):
        return None
    return to_p(window, max(1.0, wanted))


def from_ratio(window: int, accepted_share: float) -> float:
    """Tokens a round when all `window` drafts are offered: 1 + K × accepted/drafted, exactly.

    Raises:
        ValueError: the window is below one, or the share is not between 0 and 1.
    """
    _window(window)
    _share(accepted_share)
    return 1 + window * accepted_share


def from_positions(accepted_at: Sequence[float]) -> float:
    """Tokens a round from the share of rounds that accepted each position: 1 + Σ.

    Raises:
        ValueError: a share is not between 0 and 1.
    """
    for share in accepted_at:
        _share(share)
    return 1 + sum(accepted_at)


def from_counters(predicted: int, accepted: int) -> float:
    """Tokens a round from a server's counters: predicted / (predicted − accepted).

    Every round commits one token of the target's own, so the difference counts the rounds.
    Right also where drafts are gated and fewer than the window are offered.

    Raises:
        ValueError: as many were accepted as predicted, or more, or fewer than none.
    """
    if not 0 <= accepted < predicted:
        raise ValueError(f"{accepted} accepted of {predicted} predicted cannot be")
    return predicted / (predicted - accepted)


def from_p(window: int, p: float) -> float:
    """Tokens a round with a constant conditional acceptance: (1 − p^(K+1)) / (1 − p).

    Leviathan et al. 2023, https://arxiv.org/abs/2211.17192, equation 1.

    Raises:
        ValueError: the window is below one, or p is not between 0 and 1.
    """
    _window(window)
    _share(p)
    return float(sum(p**i for i in range(window + 1)))


def conditional(accepted_at: Sequence[float]) -> tuple[float, ...]:
    """Each position's acceptance given that the one before was accepted; 0 after a 0.

    Args:
        accepted_at: share of rounds that accepted position 1, 2, …
    """
    before = (1.0, *accepted_at[:-1])
    return tuple(a / b if b else 0.0 for a, b in zip(accepted_at, before, strict=True))


def to_p(window: int, tokens_per_round: float) -> float:
    """The constant p that commits this many tokens a round: the inverse of `from_p`.

    Raises:
        ValueError: no p between 0 and 1 commits so many.
    """
    _window(window)
    if not 1 <= tokens_per_round <= window + 1:
        raise ValueError(f"{window} drafts cannot commit {tokens_per_round} tokens a round")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if from_p(window, middle) < tokens_per_round else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What is known of acceptance; of several given forms the strongest counts.

    Raises:
        ValueError: nothing is given, or the window is below one.
    """

    window: int
    """K: drafts a round."""
    tokens_per_round: float | None = None
    accepted_at: tuple[float, ...] = ()
    """Share of rounds that accepted position 1, 2, …"""
    predicted: int | None = None
    accepted: int | None = None
    accepted_share: float | None = None
    """accepted/drafted with all K drafted."""
    p: float | None = None

    def __post_init__(self) -> None:
        _window(self.window)
        assert self.tokens > 0  # raises here, where it was given, not where it is used

    @property
    def tokens(self) -> float:
        """Tokens committed a round, the target's own among them.

        Raises:
            ValueError: what is given cannot be.
        """
        if self.tokens_per_round is not None:
            return self.tokens_per_round
        if self.accepted_at:
            return from_positions(self.accepted_at)
        if self.predicted is not None and self.accepted is not None:
            return from_counters(self.predicted, self.accepted)
        if self.accepted_share is not None:
            return from_ratio(self.window, self.accepted_share)
        if self.p is not None:
            return from_p(self.window, self.p)
        raise ValueError("nothing is said about acceptance")


def _window(window: int) -> None:
    if window < 1:
        raise ValueError(f"a window of {window} drafts cannot be")


def _share(share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"an acceptance of {share} cannot be")
