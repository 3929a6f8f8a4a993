"""How many tokens a round of speculation commits, from whatever a runtime prints.

Runtimes print accepted/drafted, counters or counts by position. None of these is p, the
chance that a draft is accepted *given* that all before it were: with accepted/drafted 0.42 at
four drafts a round commits 2.68 tokens, while 0.42 taken as p would say 1.70.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    """Each position's acceptance given that the one before was accepted; 0 behind one of 0.

    Args:
        accepted_at: share of rounds that accepted position 1, 2, …
    """
    before = (1.0, *accepted_at[:-1])
    return tuple(a / b if b else 0.0 for a, b in zip(accepted_at, before, strict=True))


def to_p(window: int, tokens_per_round: float) -> float:
    """The constant p that commits so many tokens a round: `from_p`, inverted.

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
    """What is known of acceptance; the strongest that is given counts.

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
        assert self.tokens > 0  # complains here, where it was said, not where it is used

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
