"""The unknowns of the arithmetic, and what is assumed of each before anything was measured.

The priors are wide on purpose: the calibration points narrow them (`learn.fit`), the user's
baselines further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol


class Reader(Protocol):
    """How the arithmetic looks up an unknown: the class's value times one device's part."""

    def __call__(self, name: str, *, at: str = "") -> float:
        """The unknown in its own unit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """A log-normal prior."""

    middle: float
    """In the unit of the unknown."""
    sigma: float
    """Standard deviation of the logarithm of the class's middle."""
    spread: float
    """Standard deviation of the logarithm of one device's or rig's deviation from it."""
    unit: str
    why: str


def _share(middle: float, sigma: float, spread: float, why: str) -> Prior:
    return Prior(middle=middle, sigma=sigma, spread=spread, unit="of nominal GB/s", why=why)


def _deviation(spread: float) -> Prior:
    why = "one device against its class"
    return Prior(middle=1.0, sigma=0.0, spread=spread, unit="of its class", why=why)


def _told(sigma: float, why: str) -> Prior:
    return Prior(middle=1.0, sigma=sigma, spread=0.0, unit="of what was told", why=why)


_GEMV = "matrix-vector kernels reach this share of the data sheet"
_BATCH = "between free verification (0.03) and one that costs a step a row (0.8)"

PRIORS = {
    "weights:discrete_gpu:dense": _share(0.72, 0.15, 0.12, _GEMV),
    "weights:discrete_gpu:moe": _share(0.55, 0.3, 0.2, f"{_GEMV}; experts are many small reads"),
    "weights:apu:dense": _share(0.72, 0.15, 0.12, _GEMV),
    "weights:apu:moe": _share(0.6, 0.3, 0.2, f"{_GEMV}; experts are many small reads"),
    "weights:apple:dense": _share(0.68, 0.15, 0.12, _GEMV),
    "weights:apple:moe": _share(0.55, 0.3, 0.2, f"{_GEMV}; experts are many small reads"),
    "weights:desktop_cpu:dense": _share(0.75, 0.2, 0.15, "two channels are filled by few cores"),
    "weights:desktop_cpu:moe": _share(0.7, 0.25, 0.2, "two channels are filled by few cores"),
    "weights:server_cpu:dense": _share(0.5, 0.35, 0.3, "many channels, NUMA and core count"),
    "weights:server_cpu:moe": _share(0.4, 0.35, 0.3, "many channels, NUMA and core count"),
    "device:discrete_gpu": _deviation(0.12),
    "device:apu": _deviation(0.12),
    "device:apple": _deviation(0.12),
    "device:desktop_cpu": _deviation(0.18),
    "device:server_cpu": _deviation(0.3),
    "nominal:discrete_gpu": Prior(
        middle=600, sigma=0.0, spread=0.6, unit="GB/s", why="no bandwidth was told"
    ),
    "nominal:apu": Prior(
        middle=150, sigma=0.0, spread=0.6, unit="GB/s", why="no bandwidth was told"
    ),
    "nominal:apple": Prior(
        middle=300, sigma=0.0, spread=0.65, unit="GB/s", why="no bandwidth was told"
    ),
    "nominal:desktop_cpu": Prior(
        middle=70, sigma=0.4, spread=0.3, unit="GB/s", why="no bandwidth was told"
    ),
    "nominal:server_cpu": Prior(
        middle=300, sigma=0.0, spread=0.8, unit="GB/s", why="no bandwidth was told"
    ),
    "kv": _share(0.6, 0.25, 0.2, "attention reads less evenly than weights"),
    "quant:trellis": Prior(
        middle=0.45, sigma=0.3, spread=0.2, unit="of other types", why="decoding is arithmetic"
    ),
    "quant:nonlinear": Prior(
        middle=0.75, sigma=0.25, spread=0.15, unit="of other types", why="table look-ups on a CPU"
    ),
    "split": Prior(
        middle=25, sigma=0.6, spread=0.4, unit="µs", why="a launch, a wait and a wake-up of threads"
    ),
    "latency:peer": Prior(middle=1.5, sigma=0.4, spread=0.3, unit="µs", why="a write over the bus"),
    "latency:staged": Prior(
        middle=25, sigma=0.5, spread=0.3, unit="µs", why="two copies through the host: 11 to 46"
    ),
    "staged": Prior(
        middle=1.0, sigma=0.4, spread=0.3, unit="latencies a split", why="one staged copy a split"
    ),
    "layer:dense": Prior(
        middle=15, sigma=0.8, spread=0.8, unit="µs a layer", why="a dozen kernels' launches"
    ),
    "layer:moe": Prior(
        middle=25, sigma=0.8, spread=0.8, unit="µs a layer", why="the same, and routing"
    ),
    "layer:cpu_experts": Prior(
        middle=60, sigma=0.8, spread=0.8, unit="µs a layer", why="threads wake and meet"
    ),
    "all_reduce:llama.cpp": Prior(
        middle=35, sigma=0.6, spread=0.4, unit="µs", why="two staged copies"
    ),
    "all_reduce:other": Prior(
        middle=60, sigma=0.9, spread=0.5, unit="µs", why="a collective through the host's memory"
    ),
    "link": Prior(
        middle=0.84, sigma=0.1, spread=0.06, unit="of the link", why="6.6 of 7.88 GB/s at x4"
    ),
    "compute:discrete_gpu": Prior(
        middle=0.045,
        sigma=0.6,
        spread=0.4,
        unit="ms a token and 1e9 parameters",
        why="27B at 582 to 3203 tok/s on cards of 2023 to 2025",
    ),
    "compute:apu": Prior(
        middle=0.17,
        sigma=0.4,
        spread=0.4,
        unit="ms a token and 1e9 parameters",
        why="27B at 268 tok/s, 5B active at 998 on a Strix Halo",
    ),
    "compute:apple": Prior(
        middle=0.15,
        sigma=0.6,
        spread=0.4,
        unit="ms a token and 1e9 parameters",
        why="between an APU and a card",
    ),
    "compute:desktop_cpu": Prior(
        middle=0.7,
        sigma=0.6,
        spread=0.4,
        unit="ms a token and 1e9 parameters",
        why="2.4B active at 631 tok/s on a Ryzen 7950X",
    ),
    "compute:server_cpu": Prior(
        middle=0.35,
        sigma=0.7,
        spread=0.4,
        unit="ms a token and 1e9 parameters",
        why="twice to four times a desktop's cores",
    ),
    "rpc": Prior(
        middle=400, sigma=0.8, spread=0.5, unit="µs a message", why="serialized graph and wake-ups"
    ),
    "beta:gpu:dense": Prior(middle=0.12, sigma=0.7, spread=0.45, unit="steps a row", why=_BATCH),
    "beta:gpu:moe": Prior(middle=0.25, sigma=0.8, spread=0.6, unit="steps a row", why=_BATCH),
    "beta:apple:dense": Prior(middle=0.4, sigma=0.7, spread=0.4, unit="steps a row", why=_BATCH),
    "beta:apple:moe": Prior(middle=0.4, sigma=0.7, spread=0.5, unit="steps a row", why=_BATCH),
    "beta:cpu:dense": Prior(middle=0.2, sigma=0.7, spread=0.5, unit="steps a row", why=_BATCH),
    "beta:cpu:moe": Prior(middle=0.2, sigma=0.7, spread=0.5, unit="steps a row", why=_BATCH),
    "eta": Prior(
        middle=0.92, sigma=0.1, spread=0.1, unit="of independent routing", why="routing repeats"
    ),
    "expert_time:cpu": Prior(
        middle=0.78, sigma=0.1, spread=0.1, unit="of a step", why="experts on a CPU dominate"
    ),
    "expert_time:gpu": Prior(
        middle=0.5, sigma=0.25, spread=0.2, unit="of a step", why="half of the active bytes"
    ),
    "draft:own_head": Prior(
        middle=0.075, sigma=0.3, spread=0.25, unit="steps", why="one block and the output matrix"
    ),
    "draft:external": Prior(
        middle=0.2, sigma=0.7, spread=0.4, unit="steps", why="a tenth to a third of the bytes"
    ),
    "draft:block": Prior(
        middle=0.2, sigma=0.5, spread=0.4, unit="steps a round", why="all drafts in one forward"
    ),
    "rate": Prior(
        middle=1.0, sigma=0.0, spread=3.0, unit="shares a second", why="nothing is known of it"
    ),
    "step": Prior(middle=30, sigma=3.0, spread=0.0, unit="ms", why="nothing is known of it"),
    "told:split": _told(0.2, "fitted to a run of another placement"),
    "told:layer": _told(0.2, "fitted to a run of another placement"),
    "told:link": _told(0.05, "a copy test"),
    "told:bandwidth": _deviation(0.06),
    "told:copy": _deviation(0.05),
    # Certain until a baseline contradicts it.
    "told:nominal": _deviation(0.0),
    "drafting:tokens": _told(0.03, "acceptance differs by prompt"),
    "drafting:draft": _told(0.15, "told of another run"),
    "drafting:beta": _told(0.2, "measured in another run or on a like device"),
    "drafting:verify": _told(0.1, "measured in another run"),
    "traffic": Prior(
        middle=0.8, sigma=0.15, spread=0.1, unit="exponent", why="hot experts serve more than count"
    ),
}
"""Priors by name. The part of one device is looked up as ``name@device``."""


def first_estimate(name: str) -> tuple[float, float]:
    """Mean and standard deviation of the logarithm, of the class or of one device's part.

    Raises:
        KeyError: there is no such unknown.
    """
    base, _, device = name.partition("@")
    prior = PRIORS[base]
    return (0.0, prior.spread) if device else (math.log(prior.middle), prior.sigma)
