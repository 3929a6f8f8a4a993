"""What Strata's flags ask of the expert cache, and how a residency is forced.

The cache flag means different things. On a canonical pack ``--expert-cache N`` opens N slots. On
a native pack N is a budget of N times the largest expert, which holds more of the smaller ones;
the auto-sizer's estimate is such a budget too, never the number of slots that are opened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.values.run import Run

CACHE = "--expert-cache"
PROFILE = "--expert-profile"
MAIN_DEVICE = "--main-device"
DRAFT_DEVICE = "--draft-device"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAsked:
    """What the flags ask of the main device's expert cache.

    Attributes:
        forced: a size given as a number; 0 where the cache is off; None where it is automatic.
    """

    forced: int | None

    @property
    def is_asked(self) -> bool:
        """Whether the log must tell of a cache."""
        return self.forced != 0


def last_value(flags: Sequence[str], name: str) -> str | None:
    """The value of the last occurrence of a flag, which is the one that counts."""
    values = [flags[place + 1] for place, flag in enumerate(flags[:-1]) if flag == name]
    return values[-1] if values else None


def whole(text: str) -> int:
    """A number as C's ``atoll`` reads it: what is none is 0."""
    match = re.match(r"\s*([-+]?[0-9]{1,18})", text)
    return 0 if match is None else int(match[1])


def cache_asked(flags: Sequence[str]) -> CacheAsked:
    """The cache that the flags ask for; with a profile, a size of 0 means automatic."""
    value = last_value(flags, CACHE)
    if value == "auto":
        return CacheAsked(forced=None)
    size = 0 if value is None else whole(value)
    if size <= 0:
        return CacheAsked(forced=None if PROFILE in flags else 0)
    return CacheAsked(forced=size)


def forced(flags: Sequence[str], size: int) -> tuple[str, ...]:
    """The flags with one cache size, in place of every one that was there."""
    kept: list[str] = []
    skip = False
    for flag in flags:
        if skip or flag == CACHE:
            skip = not skip
            continue
        kept.append(flag)
    return (*kept, CACHE, str(size))


def size_behind(run: Run) -> int | None:
    """The cache size that, forced, yields a run's final residency; None if it cannot be known."""
    found = slots(run)
    if found is None:
        return None
    native = run.reading.context.get("native_pack")
    if native is False:
        return found
    if native is not True or run.reading.context.get("cache_shrunk"):
        return None
    for size in (_forced(run), run.reading.context.get("auto_slots")):
        if isinstance(size, int) and size > 0:
            return size
    return None


def force(flags: Sequence[str], wanted: Run) -> tuple[str, ...] | None:
    """The flags so that the residency of `wanted` is forced; None if that cannot be."""
    size = size_behind(wanted)
    if size is None or (size == 0 and PROFILE in flags):  # there, 0 would mean automatic
        return None
    return forced(flags, size)


def share(flags: Sequence[str], baseline: Run, got: Run) -> tuple[str, ...] | None:
    """The flags with one size that both the baseline and a clipped anchor can hold.

    Returns:
        None where none is known, or only one of less than half of the baseline's.
    """
    size, wanted, opened = size_behind(baseline), slots(baseline), slots(got)
    if not size or not wanted or not opened:
        return None
    if baseline.residency.main_kind != got.residency.main_kind:
        return None  # no size makes two kinds of device round alike
    if baseline.reading.context.get("native_pack") is True:
        given = _forced(got)
        budget = given if given is not None and given > 0 else size
        common = min(budget, budget * opened // wanted)
    else:
        common = min(opened, wanted)
    return forced(flags, common) if 2 * common >= size else None


def slots(run: Run) -> int | None:
    """Final slots of the main device's expert cache."""
    return None if run.reading.cache is None else run.reading.cache.opened


def _forced(run: Run) -> int | None:
    return None if run.reading.cache is None else run.reading.cache.forced
