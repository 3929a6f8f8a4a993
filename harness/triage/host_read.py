"""A small test of how fast the host reads its memory.

Every thread sums its own slice of a large array of int64: one pass over memory with no more
arithmetic than the vector units do on the way, as decoding reads weights. One thread cannot
fill many channels, so all cores take part; numpy lets go of the interpreter meanwhile.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from harness.triage.sourced import Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable

GIB = 2**30
MOST_BYTES = 2 * GIB
LEAST_BYTES = 2**26
"""Below this the caches would be measured."""
SHARE_OF_FREE = 8
"""At most one part in so many of the free memory is taken."""
REPEATS = 7


def size_for(available_bytes: int) -> int | None:
    """How much memory the test takes; None where so little is free that it would tell nothing."""
    size = min(MOST_BYTES, available_bytes // SHARE_OF_FREE)
    return size if size >= LEAST_BYTES else None


def read_bandwidth(
    size_bytes: int,
    threads: int,
    *,
    repeats: int = REPEATS,
    clock: Callable[[], float] = time.perf_counter,
) -> Sourced[float]:
    """GB/s that the threads read together: median of the repeats, interval from their spread.

    Args:
        size_bytes: how much is read in one repeat; see `size_for`.
        threads: how many read at once, each its own part.
        repeats: how often, after one pass that is not counted.
        clock: seconds.
    """
    import numpy as np

    elements = size_bytes // 8 // threads * threads
    array = np.zeros(elements, dtype=np.int64)
    array += 1  # touch every page: zeros alone would all be one page of the system's
    slices = np.split(array, threads)
    speeds = []
    with ThreadPoolExecutor(threads) as pool:
        for repeat in range(repeats + 1):
            start = clock()
            list(pool.map(np.add.reduce, slices))
            elapsed = clock() - start
            if repeat and elapsed > 0:
                speeds.append(array.nbytes / elapsed / 1e9)
    speeds.sort()
    tenth = len(speeds) // 10
    return Sourced(
        value=round(statistics.median(speeds), 2),
        origin=Origin.MEASURED,
        source=(
            f"read test: {array.nbytes / GIB:.2f} GiB, {threads} threads, "
            f"median of {len(speeds)} passes"
        ),
        low=min(round(speeds[tenth], 2), round(statistics.median(speeds), 2)),
        high=max(round(speeds[-1 - tenth], 2), round(statistics.median(speeds), 2)),
    )
