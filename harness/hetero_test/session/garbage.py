"""Whether a stream is garbage: told by what dominates its tail, not by an exact cycle.

Two runs that got stuck alike are equal and prove nothing, so a stream must show that its engine
still computed something. Each rule looks at the last half of a stream, at least `TAIL_IDS` ids.
How often the rules err on streams of text, of code and of random ids is printed by
``python -m tests.session.garbage_rates``; the bounds below were set so that text of ordinary
repetitiveness passes.
"""

from __future__ import annotations

from collections import Counter
from operator import eq, sub
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TAIL_IDS = 16
"""The least tail that is looked at, of a stream that has as many ids."""
LEAST_IDS = 4
"""A shorter stream is no garbage by its ids: two or three equal ids in a row are text."""
FEW_DISTINCT = 0.2
"""A tail with at most this share of distinct ids is dominated by few of them."""
DOMINATED = 0.7
"""One id that fills at least this share of a tail dominates it."""
LOOPED = 0.8
"""A tail of which this share repeats the id one loop earlier is a loop."""
LEAST_LOOPS = 3
"""A loop must have been gone through this often within the tail."""
LONG_TAIL = 1024
"""Above this many ids periods are looked for with numpy."""
COUNTED = 0.8
"""A tail of which this share is the id before plus one same step is a counter."""
COPIED_IDS = 16
"""A stream that begins with this many ids of the prompt's beginning repeats the prompt."""


def garbage(stream: Sequence[int], prompt: Sequence[int] = ()) -> str | None:
    """Why a stream is garbage, as the end of "the stream of N ids …"; None if it is not.

    Args:
        stream: token ids as the engine emitted them.
        prompt: the ids that were asked; a stream that copies them computed nothing new.
    """
    tail = stream[-max(TAIL_IDS, len(stream) // 2) :]
    if len(tail) < LEAST_IDS:
        return None
    ending = "… " + " ".join(map(str, tail[-4:]))
    top, times = Counter(tail).most_common(1)[0]
    if times >= DOMINATED * len(tail):
        return f"got stuck: id {top} is {times} of its last {len(tail)} ids; it ends in {ending}"
    period = _loop(tail)
    if period is not None:
        return f"got stuck in a loop of {period} ids; it ends in {ending}"
    distinct = len(set(tail))
    if len(tail) >= TAIL_IDS and distinct <= max(2.0, FEW_DISTINCT * len(tail)):
        return f"got stuck: {distinct} different ids in its last {len(tail)}; it ends in {ending}"
    if _counter(tail):
        return f"counts: each id is the one before plus a step; it ends in {ending}"
    copied = min(len(stream), len(prompt))
    if copied >= COPIED_IDS and tuple(stream[:copied]) == tuple(prompt[:copied]):
        return f"repeats the prompt from its beginning; it ends in {ending}"
    return None


def _loop(tail: Sequence[int]) -> int | None:
    """The shortest period that most of a tail repeats; None without one."""
    same = _repeats(tail)
    third = len(tail) // LEAST_LOOPS
    for period in range(1, third + 1):
        pairs = len(tail) - period
        # What the last third misses by itself rules out almost every period.
        missed = third - same(period, len(tail) - third)
        if pairs - missed >= LOOPED * pairs and same(period, period) >= LOOPED * pairs:
            return period
    return None


def _repeats(tail: Sequence[int]) -> Callable[[int, int], int]:
    """Counts the ids, from a place on, that are those of one period earlier: ``(period, place)``.

    There are as many periods as a third of the tail, so that 16,000 ids are compared 50 million
    times: numpy does that in some hundredths of a second, but takes longer to load than short
    tails to compare.
    """
    if len(tail) <= LONG_TAIL:
        return lambda period, place: sum(map(eq, tail[place:], tail[place - period :]))
    import numpy as np

    ids = np.asarray(tail)
    return lambda period, place: int(
        np.count_nonzero(ids[place:] == ids[place - period : len(tail) - period])
    )


def _counter(tail: Sequence[int]) -> bool:
    """Whether most ids of a tail are the one before plus one same step other than 0."""
    if len(tail) < TAIL_IDS:
        return False
    steps = Counter(map(sub, tail[1:], tail))
    step, times = steps.most_common(1)[0]
    return step != 0 and times >= COUNTED * (len(tail) - 1)
