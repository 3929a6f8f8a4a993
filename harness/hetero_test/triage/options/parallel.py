"""Both devices on every layer at once: tensor parallel, where a link allows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.triage.cost.memory import capacity
from hetero_test.triage.cost.prompt import Regime
from hetero_test.triage.cost.terms import wire_us
from hetero_test.triage.options import engine_flags
from hetero_test.triage.options.alone import host_fill, placement_on, prompt_on, reads_on
from hetero_test.triage.options.devices import link_gb_s, peer_access
from hetero_test.triage.options.option import Family, Option
from hetero_test.triage.options.room import layer_fill, room

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.cost.memory import Fill
    from hetero_test.triage.cost.placement import Placement
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import Question

MEETINGS = 2
"""All-reduces a layer: after attention and after the feed-forward block."""
LEAST_SHARE = 0.01
"""Below it ``-ts`` with two decimals says nothing of a device."""


def tensor_parallel(
    question: Question,
    sizes: ModelBytes,
    first: DeviceFacts,
    second: DeviceFacts,
    speeds: Mapping[str, float],
) -> Option | None:
    """Every layer over two cards, shares by the speed of each as far as it has the room.

    None: one card's share is too small to be said, so that it is no split at all.

    Args:
        question: what is asked.
        sizes: the model's.
        first: one card.
        second: another.
        speeds: tok/s of each device by reading everything alone, by its id.
    """
    devices = (first, second)
    shares = _shares(question, sizes, devices, speeds)
    if min(shares) < LEAST_SHARE:
        return None
    return Option(
        key=f"parallel:{first.id}+{second.id}",
        title=f"every layer over {first.id} and {second.id}",
        family=Family.PARALLEL,
        devices=(first.id, second.id),
        placement=_placement(question, sizes, devices, shares),
        fills=_fills(question, sizes, devices, shares),
        words=engine_flags.parallel((first.id, second.id), shares),
        prompt=replace(
            prompt_on(question, sizes, tuple(zip(devices, shares, strict=True))), parallel=True
        ),
        regime=Regime.RESIDENT,
        notes=(
            _all_reduce_note(sizes, _interconnect_gb_s(question, *devices)),
            "llama.cpp's --fit refuses it; it is a different sum of products than one card's",
        ),
    )


def _shares(
    question: Question,
    sizes: ModelBytes,
    devices: tuple[DeviceFacts, DeviceFacts],
    speeds: Mapping[str, float],
) -> tuple[float, float]:
    """Shares by speed; what does not fit one card goes to the other, which may not hold it."""
    rates = [speeds[device.id] for device in devices]
    share = rates[0] / sum(rates)
    limits = [
        1.0
        if capacity(device, question.rig) is None
        else max(0.0, room(question, sizes, device, trunk=False))
        / (sizes.resident_bytes + sizes.kv_bytes)
        for device in devices
    ]
    share = min(max(share, 1 - limits[1]), limits[0]) if sum(limits) >= 1 else share
    return share, 1 - share


def _interconnect_gb_s(question: Question, first: DeviceFacts, second: DeviceFacts) -> float | None:
    """GB/s between two cards: as measured between them, else of the narrower link to the host.

    None: neither is known.
    """
    pair = question.rig.pair(first.id, second.id)
    if pair is not None and pair.gb_s is not None and pair.gb_s.value:
        return float(pair.gb_s.value)
    link = link_gb_s(question, first, second)
    return None if link is None else link[0]


def _all_reduce_note(sizes: ModelBytes, gb_s: float | None) -> str:
    if gb_s is None:
        return "the link is not known: its bytes are left out"
    us = wire_us(sizes.hidden_bytes, gb_s)
    meetings = MEETINGS * sizes.layers
    return f"{meetings} meetings a token, each {us:.1f} µs on the wire and more in waiting"


def _placement(
    question: Question,
    sizes: ModelBytes,
    devices: tuple[DeviceFacts, DeviceFacts],
    shares: tuple[float, float],
) -> Placement:
    """An all-reduce sends the hidden state of one token, `MEETINGS` times a layer."""
    meetings = MEETINGS * sizes.layers
    return replace(
        placement_on(question, sizes, *devices, of_trunk=True),
        reads=tuple(
            part
            for device, share in zip(devices, shares, strict=True)
            for part in reads_on(device.id, sizes, trunk=share, experts=share, kv=share)
        ),
        parallel=True,
        all_reduces=meetings,
        peer=peer_access(question, *devices),
        link_bytes=float(meetings * sizes.hidden_bytes),
        link_gb_s=_interconnect_gb_s(question, *devices),
    )


def _fills(
    question: Question,
    sizes: ModelBytes,
    devices: tuple[DeviceFacts, DeviceFacts],
    shares: tuple[float, float],
) -> tuple[Fill, ...]:
    """Each card has its share of every layer, of its KV, and buffers of its own."""
    on_cards = (
        layer_fill(question, sizes, device, share)
        for device, share in zip(devices, shares, strict=True)
    )
    return (*on_cards, *host_fill(question, sizes))
