"""The arithmetic, in which a row comes out the same whatever is computed beside it.

A row is rounded to integers of a few bits, as real engines round activations before
a quantized product. Weights are integers too, so a matrix product adds integers below
2**53, which a double adds exactly in any order: the library may choose its kernel by
shape, use fused operations or threads, and the bits stay the same. The rest is done by single
IEEE operations (+, -, *, /, sqrt, rint), element by element, which are correctly rounded
everywhere. No exponential or tangent of a library takes part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

WEIGHT_RMS = 73.3  # of bytes drawn evenly from -127..127
RESIDUAL_UNIT = 2048.0  # the residual stream counts in 1/2048, so its squares add exactly

_STEPS_PER_E = 16
# exp(-i / 16) in 1/4096: rounding hides the last bit in which libraries differ.
_DECAY = np.array([round(4096 * math.exp(-i / _STEPS_PER_E)) for i in range(256)], np.float64)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How one kind of hardware rounds a row before it multiplies it.

    Args:
        bits: width of the signed integers that a row is rounded to.
    """

    bits: int

    def quantize(self, rows: Floats) -> tuple[Floats, Floats]:
        """Integer rows of at most ``bits`` bits, and the scale of each (rows, 1)."""
        top = float(2 ** (self.bits - 1) - 1)
        peak = np.abs(rows).max(axis=-1, keepdims=True)
        peak[peak == 0.0] = 1.0
        return np.rint(rows * (top / peak)), peak / top

    def linear(self, rows: Floats, weights: Floats) -> Floats:
        """``rows @ weights`` for integer weights (inputs, outputs), rows near 1 in size."""
        quantized, scale = self.quantize(rows)
        return product(quantized, scale, weights)


def product(quantized: Floats, scale: Floats, weights: Floats) -> Floats:
    """The exact integer product of quantized rows, scaled back once for each row."""
    size = WEIGHT_RMS * math.sqrt(weights.shape[-2])
    return (quantized @ weights) * (scale / size)


def normalize(rows: Floats) -> Floats:
    """Residual rows (whole numbers) divided by their root mean square."""
    mean_square = (rows * rows).sum(axis=-1, keepdims=True) / rows.shape[-1]
    return cast("Floats", rows / np.sqrt(mean_square + 1.0))


def to_residual(rows: Floats, gain: float) -> Floats:
    """A block's output in whole units of the residual stream."""
    return np.rint(rows * (gain * RESIDUAL_UNIT))


def sigmoid(values: Floats) -> Floats:
    """A rational sigmoid: 1/2 at 0, towards 0 and 1 at the ends."""
    return 0.5 + 0.5 * (values / (1.0 + np.abs(values)))


def decay(distance: Floats) -> Floats:
    """``exp(-distance)`` for distances >= 0, as whole 1/4096."""
    steps = np.minimum(np.rint(distance * _STEPS_PER_E), 255.0)
    return _DECAY[steps.astype(np.int64)]
