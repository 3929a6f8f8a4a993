"""The expert cache: how many experts a device holds, and where the others are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hetero_test.bundled.failures import failed
from hetero_test.bundled.pack import Layout, Pack, Pair
from hetero_test.bundled.weights import mix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.bundled.arith import Ints

MAIN, HOST = 0, 1  # places of an expert; helper devices are 2, 3, …


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A cache as it was opened on one device.

    Args:
        slots: how many were opened.
        held: the pairs in them, in profile order.
        size_mib: memory taken.
    """

    slots: int
    held: tuple[Pair, ...]
    size_mib: int


def automatic_slots(pack: Pack, *, free_mib: int, reserve_mib: int, head_mib: int) -> int:
    """How many slots of the largest blob's size fit into the memory that is left.

    Args:
        pack: tells the largest blob's size and the number of pairs, which bounds the slots.
        free_mib: free memory of the device.
        reserve_mib: left free for what comes later.
        head_mib: left free for the draft head, which is built after the cache.
    """
    room = free_mib - reserve_mib - head_mib
    return min(max(room, 0) // pack.largest_mib, pack.shape.pairs)


def open_cache(
    pack: Pack, ranked: Sequence[Pair], *, slots: int, free_mib: int, head_mib: int
) -> Opening:
    """Open the main device's cache.

    On a native pack ``slots`` is a budget in largest blobs. The budget is cut silently to what is
    free, and filled with blobs of their own sizes.

    Raises:
        EngineStopError: it does not fit, on a canonical pack.
    """
    match pack.layout:
        case Layout.CANONICAL:
            return fixed_slots(pack, ranked, slots=slots, free_mib=free_mib)
        case Layout.NATIVE:
            budget = min(slots * pack.largest_mib, max(free_mib - head_mib, 0))
            return _sized_slots(pack, ranked, budget_mib=budget)


def fixed_slots(pack: Pack, ranked: Sequence[Pair], *, slots: int, free_mib: int) -> Opening:
    """A cache of equal slots for the first of the ranked pairs.

    Raises:
        EngineStopError: it does not fit.
    """
    size = slots * pack.largest_mib
    if size > free_mib:
        raise failed(
            f"ExpertCache: {slots} slots x {pack.largest_mib * 2**20} B = {size / 1024:.2f} GiB, "
            f"but only {free_mib / 1024:.2f} GiB of VRAM is free (weights, session and drafter "
            "are loaded). Lower --expert-cache."
        )
    return Opening(slots=slots, held=tuple(ranked[:slots]), size_mib=size)


def _sized_slots(pack: Pack, ranked: Sequence[Pair], *, budget_mib: int) -> Opening:
    held: list[Pair] = []
    size = 0
    for pair in ranked:
        blob = pack.expert_mib[pair[0]]
        if size + blob > budget_mib:
            break
        held.append(pair)
        size += blob
    return Opening(slots=len(held), held=tuple(held), size_mib=size)


class ExpertPlaces:
    """Which place computes each expert; adaptive swaps may change the places between rounds.

    The host computes the experts that no device holds, except for a share that the main device
    reads over the link and computes itself. Whether an expert belongs to that share depends on its
    pair alone: if it depended on what else a window needs, drafts would change the stream.
    """

    def __init__(self, pack: Pack, held: Sequence[Sequence[Pair]], *, pcie_share: int) -> None:
        shape = pack.shape
        self._holder = np.full((shape.layers, shape.experts), HOST)
        self._linked = np.array(
            [
                [
                    mix(pack.seed, 4096 + layer * shape.experts + expert) % 256 < pcie_share
                    for expert in range(shape.experts)
                ]
                for layer in range(shape.layers)
            ]
        )
        for place, pairs in zip((MAIN, *range(2, 2 + len(held))), held, strict=False):
            for layer, expert in pairs:
                self._holder[layer, expert] = place
        self._settle()

    @property
    def resident(self) -> int:
        """Pairs held by any device."""
        return int((self._holder != HOST).sum())

    def place(self, layer: int, expert: int) -> int:
        """Where an expert is computed."""
        return int(self._place[layer, expert])

    def places_of(self, layer: int, experts: Ints) -> list[int]:
        """Every place that takes part in computing some experts."""
        return sorted(set(self._place[layer, experts].ravel().tolist()))

    def is_host(self, place: int) -> bool:
        """Whether a place is the host."""
        return place == HOST

    def is_resident(self, layer: int, expert: int) -> bool:
        """Whether a device holds an expert."""
        return bool(self._holder[layer, expert] != HOST)

    def swap(self, used: Ints, *, most: int) -> int:
        """Exchange experts that the main device holds for ones that were used more, layer by layer.

        Args:
            used: how often each expert was used (layers, experts).
            most: exchanges that one call may make.

        Returns:
            The exchanges made.
        """
        done = 0
        for layer, counts in enumerate(used.tolist()):
            inside = np.flatnonzero(self._holder[layer] == MAIN).tolist()
            outside = np.flatnonzero(self._holder[layer] == HOST).tolist()
            inside.sort(key=lambda expert: (counts[expert], -expert))
            outside.sort(key=lambda expert: (-counts[expert], expert))
            for cold, hot in zip(inside, outside, strict=False):
                if done == most or counts[hot] <= counts[cold]:
                    break
                self._holder[layer, cold], self._holder[layer, hot] = HOST, MAIN
                done += 1
        self._settle()
        return done

    def _settle(self) -> None:
        missed = self._holder == HOST
        self._place = np.where(missed & self._linked, MAIN, self._holder)
