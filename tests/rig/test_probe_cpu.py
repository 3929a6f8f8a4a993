"""The read test of the host's memory."""

from __future__ import annotations

import itertools

import pytest

from hetero_test.rig.probe_cpu import GIB, read_bandwidth, size_for
from hetero_test.rig.sourced import Origin


@pytest.mark.parametrize(
    ("available", "cache", "size"),
    [
        (64 * GIB, 0, GIB // 2),
        (64 * GIB, 256 * 2**20, GIB),
        (64 * GIB, 2 * GIB, None),
        (2 * GIB, 0, GIB // 4),
        (100 * 2**20, 0, None),
        (0, 0, None),
    ],
)
def test_the_size_is_beyond_the_caches_and_a_small_part_of_what_is_free(
    available: int, cache: int, size: int | None
) -> None:
    """Four times the last cache, an eighth of the free memory at most, else no test."""
    assert size_for(available, cache) == size


def test_the_speed_is_bytes_over_time() -> None:
    """With a clock that jumps half a second a pass, 8 MB are 16 MB a second."""
    ticks = itertools.count()
    fact = read_bandwidth(8_000_000, 2, repeats=3, clock=lambda: next(ticks) * 0.5)
    assert fact.value == pytest.approx(0.016, abs=0.005)
    assert fact.origin is Origin.MEASURED
    assert "2 threads, median of 3 passes" in fact.source


def test_this_machine_reads_memory() -> None:
    """A real test gives a positive speed with an interval around it."""
    fact = read_bandwidth(2**25, 1, repeats=3)
    assert fact.low is not None
    assert fact.high is not None
    assert 0 < fact.low <= fact.value <= fact.high
