"""The model of time, one term a function.

Units: bytes as GB (1e9 bytes), bandwidth as GB/s (1e9 bytes a second), time as milliseconds a
token unless a name says otherwise. A term never guesses: it is given what it needs, and refuses an
impossible quantity (a bandwidth of zero, a negative count).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class TermKind(StrEnum):
    """Where time goes; the bars of the picture are stacked in this order."""

    WEIGHTS = "weights"
    KV = "KV"
    SYNC = "sync"
    LINK = "link"
    LAYERS = "layers"
    DRAFT = "draft"
    VERIFY = "verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One part of the time, on one device or between devices."""

    kind: TermKind
    where: str
    """Device id, or two joined by ``-``, or empty for the host."""
    amount: float
    """Milliseconds a token."""
    because: str = ""
    """The arithmetic in words: ``5.75 GB at 166 GB/s``."""


def total(terms: Iterable[Term]) -> float:
    """The sum of terms, ms a token; 0.0 of none."""
    return math.fsum(term.amount for term in terms)


def wire_us(size_bytes: float, link_gb_s: float) -> float:
    """Microseconds that bytes spend on a link: bytes / (GB/s × 1e3). 10 KiB at 7.88: 1.3."""
    _at_least_zero(size_bytes=size_bytes)
    _above_zero(link_gb_s=link_gb_s)
    return size_bytes / (link_gb_s * 1e3)


def read_ms(size_gb: float, effective_gb_s: float) -> float:
    """Milliseconds to read weights once: GB / (GB/s) × 1e3.

    The bandwidth is what the device reaches on such weights, not what its data sheet says.
    """
    _at_least_zero(size_gb=size_gb)
    _above_zero(effective_gb_s=effective_gb_s)
    return size_gb / effective_gb_s * 1e3


def kv_ms(size_gb: float, nominal_gb_s: float, share: float) -> float:
    """Milliseconds to read the KV cache of one token: GB / (share × nominal GB/s) × 1e3.

    `share` is what attention kernels reach of the nominal bandwidth: 0.49 to 0.74 where
    it was measured.
    """
    _above_zero(share=share)
    return read_ms(size_gb, nominal_gb_s * share)


def sync_ms(count: float, cost_us: float) -> float:
    """Milliseconds of synchronization: count (graph splits, hops, all-reduces) × µs × 1e-3."""
    _at_least_zero(count=count, cost_us=cost_us)
    return count * cost_us * 1e-3


def parallel_ms(device_ms: Sequence[float]) -> float:
    """Stages that run at once and meet (``-sm tensor``): the slowest; 0.0 of none."""
    return max(device_ms, default=0.0)


def harmonic_tok_s(shares: Sequence[tuple[float, float]]) -> float:
    """Tokens a second when a share of the token is done at each device's own rate.

    1 / Σ share / rate over (share, rate); shares add to one. Exact for whole layers in
    sequence; the rate is that of the device doing all of it alone.

    Raises:
        ValueError: the shares do not add to one, or a rate is not above zero.
    """
    if not math.isclose(sum(share for share, _ in shares), 1.0, abs_tol=1e-9):
        raise ValueError("shares add to one")
    for share, rate in shares:
        _at_least_zero(share=share)
        _above_zero(rate=rate)
    return 1 / math.fsum(share / rate for share, rate in shares)


def _at_least_zero(**quantities: float) -> None:
    for name, quantity in quantities.items():
        if not (math.isfinite(quantity) and quantity >= 0):
            raise ValueError(f"{name} = {quantity} cannot be")


def _above_zero(**quantities: float) -> None:
    for name, quantity in quantities.items():
        if not (math.isfinite(quantity) and quantity > 0):
            raise ValueError(f"{name} = {quantity} cannot be")
