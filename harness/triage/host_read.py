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
USUAL_BYTES = GIB // 2
MOST_BYTES = 4 * GIB
CACHES = 4
"""How many times the last cache the array is: less would be read from the cache in part."""
SHARE_OF_FREE = 8
"""At most one part in so many of the free memory is taken."""


def size_for(available_bytes: int, cache_bytes: int = 0) -> int | None:
    """How much memory the test takes; None where too little is free to tell anything.

    Args:
        available_bytes: what is free.
        cache_bytes: size of the last level of caches, all of them together; 0: unknown.
    """
    least = CACHES * cache_bytes
    size = min(max(USUAL_BYTES, least), MOST_BYTES, available_bytes // SHARE_OF_FREE)
    return size if size >= max(least, USUAL_BYTES // 8) else None


def read_bandwidth(
    size_bytes: int,
    threads: int,
    *,
    repeats: int,
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
