"""Weights: whole numbers from -127 to 127, drawn from a seed in a few milliseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hetero_test.bundled.arith import Floats

if TYPE_CHECKING:
    from hetero_test.bundled.pack import Dimensions

_MASK = 2**64 - 1
_DRAFT_STEP = 8.0  # the drafter's copy keeps 5 of 8 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One block; gains are what its two halves weigh in the residual stream."""

    qkv: Floats  # (width, 3 * width)
    out: Floats  # (width, width)
    router: Floats  # (width, experts)
    gate_up: Floats  # (experts, width, 2 * hidden)
    down: Floats  # (experts, hidden, width)
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A whole model: embedding (vocab, width), blocks, head (width, vocab)."""

    embedding: Floats
    layers: tuple[Layer, ...]
    head: Floats

    @property
    def expert_bytes(self) -> int:
        """Bytes that the experts take in this process."""
        return sum(layer.gate_up.nbytes + layer.down.nbytes for layer in self.layers)


def make_weights(shape: Dimensions, seed: int) -> Weights:
    """The model of a pack; the same numbers on every machine."""
    width, hidden, experts = shape.width, shape.hidden, shape.experts
    layers = []
    for index in range(shape.layers):
        first = 16 * (index + 1)
        layers.append(
            Layer(
                qkv=_draw(seed, first, width, 3 * width),
                out=_draw(seed, first + 1, width, width),
                router=_draw(seed, first + 2, width, experts),
                gate_up=_draw(seed, first + 3, experts, width, 2 * hidden),
                down=_draw(seed, first + 4, experts, hidden, width),
                gain=shape.first_gain if index == 0 else shape.later_gain,
            )
        )
    return Weights(
        embedding=_draw(seed, 0, shape.vocab, width),
        layers=tuple(layers),
        head=_draw(seed, 1, width, shape.vocab),
    )


def draft_weights(model: Weights) -> Weights:
    """The drafter: the model's first block, kept in fewer bits, and the model's head.

    The first block weighs most in the residual stream, so the drafter agrees with the
    whole model on some of the tokens, as a trained draft block does.
    """
    first = model.layers[0]
    coarse = Layer(
        qkv=_coarse(first.qkv),
        out=_coarse(first.out),
        router=_coarse(first.router),
        gate_up=_coarse(first.gate_up),
        down=_coarse(first.down),
        gain=first.gain,
    )
    return Weights(embedding=model.embedding, layers=(coarse,), head=model.head)


def mix(seed: int, index: int) -> int:
    """One 64-bit number for a seed and an index (splitmix64, Steele et al. 2014)."""
    z = (seed * 0xD1B54A32D192ED03 + (index + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def _draw(seed: int, tensor: int, *shape: int) -> Floats:
    count = math.prod(shape)
    z = np.arange(1, (count + 7) // 8 + 1, dtype=np.uint64)
    z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(mix(seed, tensor))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    values = z.astype("<u8").view(np.int8)[:count]  # the same bytes on either byte order
    return np.maximum(values, -127).astype(np.float64).reshape(shape)


def _coarse(weights: Floats) -> Floats:
    return np.rint(weights / _DRAFT_STEP) * _DRAFT_STEP
