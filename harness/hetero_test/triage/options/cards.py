"""Two cards: every layer over both at once, or layers by memory with experts on the host too.

Tensor parallel where a link allows it; and a mixture whose experts fill both cards, the rest
of them on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp import placement_flags
from hetero_test.rig.facts import DeviceFacts
from hetero_test.triage.cost.memory import capacity, fill
from hetero_test.triage.cost.prompt import Regime
from hetero_test.triage.cost.terms import wire_us
from hetero_test.triage.options.alone import host_fill, placement_on, prompt_on, reads_on
from hetero_test.triage.options.devices import link_gb_s, peer_access, told_us
from hetero_test.triage.options.option import Option, OptionFamily
from hetero_test.triage.options.room import buffers, layer_fill, room, upload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hetero_test.triage.cost.memory import Fill
    from hetero_test.triage.cost.placement import Placement, Read
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import TriageQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPart:
    """What one card of a layer split has.

    Attributes:
        layers: a range of them, with attention, shared weights and KV.
        layers_share: of the model's layers.
        expert_layers: those of its layers whose experts it has too.
        expert_bytes: size of these experts.
    """

    card: DeviceFacts
    layers: range
    layers_share: float
    expert_layers: tuple[int, ...]
    expert_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPart:
    """What the CPU has beside a layer split: experts that fit on no card."""

    cpu: DeviceFacts
    expert_layers: tuple[int, ...]
    expert_bytes: int


def two_cards_and_host(
    question: TriageQuestion,
    sizes: ModelBytes,
    cards: tuple[DeviceFacts, DeviceFacts],
    cpu: DeviceFacts,
) -> Option | None:
    """Layers over two cards by memory; of the experts what fits, the others on the CPU.

    Without peer access every split also waits for copies between the cards: four published
    placements that added a second card this way were slower than before.

    None: the model is dense, a card holds no experts at all, or both hold all.
    """
    if not sizes.expert_layers:
        return None
    parts = _layer_split(question, sizes, cards)
    host = _left_over(sizes, parts, cpu)
    if not host.expert_layers or not all(part.expert_layers for part in parts):
        return None
    ids = (*(card.id for card in cards), cpu.id)
    option = Option(
        key=f"resident:{'+'.join(ids)}",
        title=f"layers over {cards[0].id} and {cards[1].id}, experts of "
        f"{len(host.expert_layers)} of {len(sizes.expert_layers)} layers on {cpu.id}",
        family=OptionFamily.RESIDENT,
        devices=ids,
        placement=_placement(question, sizes, parts, host),
        fills=_fills(question, sizes, parts, host),
        flags=placement_flags.cards_and_host(
            [card.id for card in cards], [len(part.layers) for part in parts], host.expert_layers
        ),
        notes=("each split waits for copies between the cards unless they have peer access",),
    )
    return _with_prompt(question, sizes, option, parts, host)


def _layer_split(
    question: TriageQuestion, sizes: ModelBytes, cards: tuple[DeviceFacts, DeviceFacts]
) -> tuple[CardPart, CardPart]:
    """Layers by card in proportion to what each has free, and the experts that then fit."""
    free = [max(1.0, room(question, sizes, card, trunk=False)) for card in cards]
    first = round(sizes.layers * free[0] / sum(free))
    return (
        _card_part(question, sizes, cards[0], range(first)),
        _card_part(question, sizes, cards[1], range(first, sizes.layers)),
    )


def _card_part(
    question: TriageQuestion, sizes: ModelBytes, card: DeviceFacts, layers: range
) -> CardPart:
    """A card with the experts of as many of its layers as fit it, from the last backward."""
    share = len(layers) / sizes.layers
    free = room(question, sizes, card, trunk=False)
    free -= share * (sizes.trunk_bytes + sizes.nextn_bytes + sizes.kv_bytes)
    held, held_bytes = [], 0
    by_layer = zip(sizes.expert_layers, sizes.expert_layer_bytes, strict=True)
    for layer, size in reversed([pair for pair in by_layer if pair[0] in layers]):
        free -= size
        if free < 0:
            break
        held.append(layer)
        held_bytes += size
    return CardPart(
        card=card,
        layers=layers,
        layers_share=share,
        expert_layers=tuple(sorted(held)),
        expert_bytes=held_bytes,
    )


def _left_over(sizes: ModelBytes, parts: tuple[CardPart, ...], cpu: DeviceFacts) -> HostPart:
    held = {layer for part in parts for layer in part.expert_layers}
    return HostPart(
        cpu=cpu,
        expert_layers=tuple(layer for layer in sizes.expert_layers if layer not in held),
        expert_bytes=sizes.experts_bytes - sum(part.expert_bytes for part in parts),
    )


def _placement(
    question: TriageQuestion, sizes: ModelBytes, parts: tuple[CardPart, CardPart], host: HostPart
) -> Placement:
    """Splits: as counted, else two per layer with experts on the CPU and two per card."""
    first, second = (part.card for part in parts)
    counted = question.splits
    splits = 2 * len(host.expert_layers) + 2 * len(parts) if counted is None else counted.count
    return replace(
        placement_on(question, sizes, first, second, host.cpu),
        reads=_reads(sizes, parts, host),
        splits=splits,
        split_us=told_us(question.rig.sync_us),
        staged_splits=0.0 if peer_access(question, first, second) else splits,
    )


def _reads(sizes: ModelBytes, parts: tuple[CardPart, CardPart], host: HostPart) -> tuple[Read, ...]:
    """What a token reads where: a card its layers and experts, the CPU the other experts."""
    found: list[Read] = []
    for part in parts:
        share = part.layers_share
        experts = part.expert_bytes / sizes.experts_bytes
        found += reads_on(part.card.id, sizes, trunk=share, kv=share, experts=experts)
    rest = host.expert_bytes / sizes.experts_bytes
    return (*found, *reads_on(host.cpu.id, sizes, trunk=0, kv=0, experts=rest))


def _fills(
    question: TriageQuestion, sizes: ModelBytes, parts: tuple[CardPart, CardPart], host: HostPart
) -> tuple[Fill, ...]:
    """The bytes on each card and in host memory."""
    on_cards = (
        fill(
            part.card,
            question.rig,
            {
                "attention and shared": sizes.trunk_bytes * part.layers_share,
                "experts": float(part.expert_bytes),
                "KV": sizes.kv_bytes * part.layers_share,
                **buffers(question, part.card),
            },
        )
        for part in parts
    )
    on_cpu = {"experts": float(host.expert_bytes), **buffers(question, host.cpu)}
    return (
        *on_cards,
        fill(host.cpu, question.rig, on_cpu),
        *host_fill(question, sizes, host.cpu),
    )


def _with_prompt(
    question: TriageQuestion,
    sizes: ModelBytes,
    option: Option,
    parts: tuple[CardPart, CardPart],
    host: HostPart,
) -> Option:
    """The option with its prompt: a large batch has the CPU's experts uploaded to one card."""
    held = (*((part.card, part.expert_bytes) for part in parts), (host.cpu, host.expert_bytes))
    shares = [(device, size / sizes.experts_bytes) for device, size in held]
    in_place = prompt_on(question, sizes, shares)
    read = upload(question, sizes, parts[0].card, host.expert_bytes, in_place)
    return replace(option, prompt=read.prompt, regime=read.regime, prompt_note=read.prompt_note)


MEETINGS = 2
"""All-reduces a layer: after attention and after the feed-forward block."""
LEAST_SHARE = 0.01
"""A smaller share is 0.00 in ``-ts`` with two decimals."""


def tensor_parallel(
    question: TriageQuestion,
    sizes: ModelBytes,
    first: DeviceFacts,
    second: DeviceFacts,
    speeds: Mapping[str, float],
) -> Option | None:
    """Every layer over two cards, shares by the speed of each as far as it has the room.

    None: one card's share is too small for ``-ts``, so nothing would be split.

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
        family=OptionFamily.PARALLEL,
        devices=(first.id, second.id),
        placement=_parallel_placement(question, sizes, devices, shares),
        fills=_parallel_fills(question, sizes, devices, shares),
        flags=placement_flags.parallel((first.id, second.id), shares),
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
    question: TriageQuestion,
    sizes: ModelBytes,
    devices: tuple[DeviceFacts, DeviceFacts],
    speeds: Mapping[str, float],
) -> tuple[float, float]:
    """Shares by speed; what does not fit one card goes to the other, fitting or not."""
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


def _interconnect_gb_s(
    question: TriageQuestion, first: DeviceFacts, second: DeviceFacts
) -> float | None:
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


def _parallel_placement(
    question: TriageQuestion,
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


def _parallel_fills(
    question: TriageQuestion,
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
