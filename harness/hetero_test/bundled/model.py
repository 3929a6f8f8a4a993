"""The model: attention with distance decay, two experts of sixteen, a head.

Each row passes through the model alone; ``arith`` says why computing rows together changes no bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from hetero_test.bundled.arith import Arithmetic, decay, normalize, product, sigmoid, to_residual
from hetero_test.bundled.kv import KeysValues, KvFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.bundled.arith import Bools, Floats, Ints
    from hetero_test.bundled.cache import ExpertPlaces
    from hetero_test.bundled.pack import Dimensions
    from hetero_test.bundled.weights import Layer, Weights
    from hetero_test.bundled.work import Work

EMBEDDING_SCALE = 28.0  # bytes to residual units: a row of the table is about 1 in size
LOGIT_SCALE = 6.0
_SHARPNESS = 2.0
_FAR = 1.0e9

Quantized = dict[int, tuple["Floats", "Floats"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """The arithmetic of the main device and of every place where an expert may be computed.

    ``places`` starts with the main device (0) and the host (1); helper devices follow.
    """

    main: Arithmetic
    places: tuple[Arithmetic, ...]


class Model:
    """Weights on a main device, with experts wherever the residency puts them."""

    def __init__(
        self,
        weights: Weights,
        shape: Dimensions,
        kernels: Kernels,
        residency: ExpertPlaces,
        work: Work,
    ) -> None:
        self.residency = residency
        self.work = work
        self._weights = weights
        self._shape = shape
        self._kernels = kernels
        # Nearer positions weigh more, differently in each head, so the next token depends
        # on the last few and greedy decoding does not fall into a loop.
        slopes = [2.0 ** -(head + 1) for head in range(shape.heads - 1)] + [1 / 32]
        self._slopes = np.array(slopes)[:, None, None]

    @property
    def experts(self) -> int:
        """Experts in a layer."""
        return self._shape.experts

    def memory(self, capacity: int, kept: KvFormat) -> KeysValues:
        """Empty keys and values for this model."""
        return KeysValues(
            layers=len(self._weights.layers),
            heads=self._shape.heads,
            head_width=self._shape.width // self._shape.heads,
            capacity=capacity,
            kept=kept,
        )

    def read(
        self, ids: Sequence[int], kv: KeysValues, *, last_only: bool = False
    ) -> tuple[Floats, Ints]:
        """Compute tokens at the positions that follow those in ``kv``, and add them to ``kv``.

        An id beyond the vocabulary is taken modulo the vocabulary's size: the engine does not
        check ids.

        Returns:
            Logits (rows, vocab), of the last row alone if ``last_only``; and the experts
            of every row (layers, rows, 2).
        """
        shape = self._shape
        rows = self._weights.embedding[np.asarray(ids) % shape.vocab] * EMBEDDING_SCALE
        routes = np.empty((len(self._weights.layers), len(ids), shape.used), np.int64)
        for index, layer in enumerate(self._weights.layers):
            started = perf_counter()
            mixed = self._attend(index, layer, normalize(rows), kv)
            rows = rows + to_residual(mixed, layer.gain)
            self.work.attention_s += perf_counter() - started
            mixed, routes[index] = self._experts(index, layer, normalize(rows))
            rows = rows + to_residual(mixed, layer.gain)
        kv.advance(len(ids))
        started = perf_counter()
        rows = normalize(rows[-1:] if last_only else rows)
        logits = self._kernels.main.linear(rows, self._weights.head) * LOGIT_SCALE
        self.work.attention_s += perf_counter() - started
        return logits, routes

    def _attend(self, index: int, layer: Layer, rows: Floats, kv: KeysValues) -> Floats:
        heads = self._shape.heads
        split = self._kernels.main.linear(rows, layer.qkv).reshape(len(rows), 3, heads, -1)
        kv.write(index, split[:, 1], split[:, 2])
        start, end = kv.length, kv.length + len(rows)
        queries = np.rint(split[:, 0] * kv.key_step).swapaxes(0, 1)
        scores = queries @ kv.keys[index, :, :end].swapaxes(1, 2)
        scores *= _SHARPNESS / (kv.key_step * kv.key_step * np.sqrt(queries.shape[-1]))
        distance = np.arange(start, end)[:, None] - np.arange(end)
        scores = np.where(distance < 0, -_FAR, scores - self._slopes * distance)
        shares = decay(scores.max(axis=-1, keepdims=True) - scores)
        mixed = (shares @ kv.values[index, :, :end]) / (
            shares.sum(axis=-1, keepdims=True) * kv.value_step
        )
        return self._kernels.main.linear(mixed.swapaxes(0, 1).reshape(len(rows), -1), layer.out)

    def _experts(self, index: int, layer: Layer, rows: Floats) -> tuple[Floats, Ints]:
        work = self.work
        started = perf_counter()
        chosen, first_share = _route(self._kernels.main.linear(rows, layer.router))
        planned = perf_counter()
        quantized = {
            place: self._kernels.places[place].quantize(rows)
            for place in self.residency.places_of(index, chosen)
        }
        ready = perf_counter()
        work.plan_s += planned - started
        work.quantize_s += ready - planned
        outputs = np.zeros((*chosen.shape, rows.shape[1]))
        for expert in sorted(set(chosen.ravel().tolist())):
            self._expert(index, layer, expert, chosen == expert, quantized, outputs)
        work.run_s += perf_counter() - ready
        return (
            first_share * outputs[:, 0] + (1.0 - first_share) * outputs[:, 1],
            chosen,
        )

    def _expert(
        self,
        index: int,
        layer: Layer,
        expert: int,
        wanted: Bools,
        quantized: Quantized,
        outputs: Floats,
    ) -> None:
        """Compute one expert for the rows that chose it."""
        started = perf_counter()
        place = self.residency.place(index, expert)
        rows, ranks = np.nonzero(wanted)
        values, scales = quantized[place]
        values, scales = values[rows], scales[rows]
        listed = perf_counter()
        both = product(values, scales, layer.gate_up[expert])
        hidden = both.shape[1] // 2
        gate, up = both[:, :hidden], both[:, hidden:]
        activated = gate * sigmoid(gate) * up
        multiplied = perf_counter()
        values, scales = self._kernels.places[place].quantize(activated)
        rounded = perf_counter()
        outputs[rows, ranks] = product(values, scales, layer.down[expert])
        done = perf_counter()
        self.work.jobs_s += listed - started
        if self.residency.is_host(place):
            self.work.host_distinct += 1
            self.work.host_routed += len(rows)
            self.work.expert_bytes += layer.gate_up[expert].nbytes + layer.down[expert].nbytes
            self.work.gate_up_s += multiplied - listed
            self.work.requantize_s += rounded - multiplied
            self.work.down_s += done - rounded
            self.work.host_s += done - started
        else:
            self.work.device_s += done - started
            if self.residency.is_resident(index, expert):
                self.work.resident_routed += len(rows)
            else:
                self.work.pcie_distinct += 1


def _route(scores: Floats) -> tuple[Ints, Floats]:
    """The two best experts of each row (the lower number wins a tie), the share of the first."""
    scores = scores.copy()
    every = np.arange(len(scores))
    first = scores.argmax(axis=-1)
    best = scores[every, first]
    scores[every, first] = -_FAR
    second = scores.argmax(axis=-1)
    lead = best - scores[every, second]
    return np.stack([first, second], axis=1), sigmoid(lead)[:, None]
