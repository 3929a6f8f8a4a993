"""Keys and values of the positions read so far; rolled back when drafts are rejected."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hetero_test.bundled.arith import Floats


class KvFormat(Enum):
    """How keys and values are kept: bits of each, and the share of fp16's memory."""

    FP16 = ("fp16", 12, 12, 1.0)
    INT8 = ("int8", 8, 8, 0.5)
    Q4_0 = ("q4_0", 5, 5, 0.28)
    K8V4 = ("k8v4", 8, 5, 0.39)

    def __init__(self, flag: str, key_bits: int, value_bits: int, share: float) -> None:
        self.flag = flag
        self.key_bits = key_bits
        self.value_bits = value_bits
        self.share = share


class KeysValues:
    """Keys and values as whole numbers of ``1 / key_step`` and ``1 / value_step``.

    Args:
        layers, heads, head_width: the model's dimensions.
        capacity: how many positions fit.
        kept: the format.
    """

    def __init__(
        self, *, layers: int, heads: int, head_width: int, capacity: int, kept: KvFormat
    ) -> None:
        self.keys = np.zeros((layers, heads, capacity, head_width))
        self.values = np.zeros((layers, heads, capacity, head_width))
        self.length = 0
        self.key_step, self._key_top = _grid(kept.key_bits)
        self.value_step, self._value_top = _grid(kept.value_bits)

    def write(self, layer: int, keys: Floats, values: Floats) -> None:
        """Put rows (rows, heads, head width) behind the positions that count."""
        rows = slice(self.length, self.length + len(keys))
        self.keys[layer, :, rows] = _round(keys, self.key_step, self._key_top).swapaxes(0, 1)
        self.values[layer, :, rows] = _round(values, self.value_step, self._value_top).swapaxes(
            0, 1
        )

    def advance(self, rows: int) -> None:
        """Count the rows just written in every layer."""
        self.length += rows

    def roll_back(self, length: int) -> None:
        """Forget every position from ``length`` on."""
        self.length = min(self.length, length)


def _grid(bits: int) -> tuple[float, float]:
    """Steps in 1, and the largest whole number; values up to 4 are kept."""
    top = 2.0 ** (bits - 1)
    return top / 4.0, top - 1.0


def _round(rows: Floats, step: float, top: float) -> Floats:
    return np.clip(np.rint(rows * step), -top, top)
