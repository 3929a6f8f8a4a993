"""The drafter: proposes tokens that the model then verifies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hetero_test.bundled.cache import ExpertPlaces
from hetero_test.bundled.kv import KvFormat
from hetero_test.bundled.model import Kernels, Model
from hetero_test.bundled.weights import draft_weights
from hetero_test.bundled.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.bundled.arith import Arithmetic, Floats
    from hetero_test.bundled.pack import Pack
    from hetero_test.bundled.weights import Weights


class Drafter:
    """One block with keys and values of its own, in the arithmetic of its device.

    Args:
        capacity: positions there is room for.
    """

    def __init__(
        self, weights: Weights, pack: Pack, arithmetic: Arithmetic, *, capacity: int
    ) -> None:
        every = [(0, expert) for expert in range(pack.shape.experts)]
        self._model = Model(
            draft_weights(weights),
            pack.shape,
            Kernels(main=arithmetic, places=(arithmetic, arithmetic)),
            ExpertPlaces(pack, [every], pcie_share=0),
            Work(),
        )
        self._kv = self._model.memory(capacity, KvFormat.FP16)

    def read_prompt(self, ids: Sequence[int]) -> None:
        """Read the prompt; the caller leaves out the last token."""
        if ids:
            self._model.read(ids, self._kv, last_only=True)

    def propose(self, history: Sequence[int], *, count: int, least: float) -> list[int]:
        """At most ``count`` tokens that may follow the history.

        Args:
            history: all tokens so far, the prompt included.
            count: how many tokens are wanted.
            least: the proposal ends before a token whose probability is smaller.
        """
        proposed: list[int] = []
        feed = list(history[self._kv.length :])
        while len(proposed) < count:
            logits, _ = self._model.read(feed, self._kv, last_only=True)
            token = int(logits[-1].argmax())
            if least > 0 and _probability(logits[-1], token) < least:
                break
            proposed.append(token)
            feed = [token]
        return proposed

    def keep(self, length: int) -> None:
        """Forget the positions from ``length`` on: their drafts were rejected."""
        self._kv.roll_back(length)


def look_up(history: Sequence[int], *, width: int, count: int) -> list[int]:
    """What followed the last earlier occurrence of the last ``width`` tokens, if any."""
    if width < 1 or len(history) <= width:
        return []
    tail = list(history[-width:])
    for start in range(len(history) - width - 1, -1, -1):
        if list(history[start : start + width]) == tail:
            return list(history[start + width : start + width + count])
    return []


def _probability(logits: Floats, token: int) -> float:
    return float(1.0 / np.exp(logits - logits[token]).sum())
