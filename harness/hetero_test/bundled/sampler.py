"""From logits to a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hetero_test.bundled.weights import mix

if TYPE_CHECKING:
    from hetero_test.bundled.arith import Floats
    from hetero_test.bundled.flags import Flags

Pick = Callable[["Floats", int], int]
"""Takes a row of logits and the number of the token to be made, from 0; returns its id."""


def greedy(logits: Floats, index: int) -> int:
    """The most probable token; the lower id wins a tie."""
    del index
    return int(logits.argmax())


def sampling(*, seed: int, temperature: float, top_k: int, top_p: float) -> Pick:
    """A rule that draws a token.

    The draw depends on the seed and the index alone, so drafts cannot change it.

    Args:
        seed: of the draws.
        temperature: above 0; the higher, the flatter.
        top_k: how many tokens are considered; 0 for all.
        top_p: the considered tokens together reach this probability.
    """

    def pick(logits: Floats, index: int) -> int:
        order = np.argsort(-logits, kind="stable")[: top_k or None]
        shares = np.exp((logits[order] - logits[order[0]]) / temperature)
        reached = np.cumsum(shares / shares.sum())
        kept = int(np.searchsorted(reached, top_p)) + 1
        drawn = mix(seed, index) / 2**64 * reached[min(kept, len(reached)) - 1]
        return int(order[np.searchsorted(reached, drawn, side="right")])

    return pick


def sampler_of(flags: Flags) -> tuple[Pick, str]:
    """The rule that the flags ask for, and what the log calls it."""
    if flags.greedy or flags.temperature <= 0:
        return greedy, "greedy"
    told = (
        f"temperature={flags.temperature:g} top_k={flags.top_k} top_p={flags.top_p:g} "
        f"seed={flags.seed}"
    )
    pick = sampling(
        seed=flags.seed, temperature=flags.temperature, top_k=flags.top_k, top_p=flags.top_p
    )
    return pick, told
