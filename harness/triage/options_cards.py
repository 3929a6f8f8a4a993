"""Two cards and the host: a mixture whose experts fill both cards, the rest on the CPU."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.triage import engine_words
from harness.triage.memory import fill
from harness.triage.option import Family, Option
from harness.triage.options_alone import host_fill, prompt_on, reads_on
from harness.triage.options_prompt import upload
from harness.triage.options_room import buffers, room
from harness.triage.placement import Placement
from harness.triage.rig_devices import device_of, peer_access, told_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.triage.model_bytes import ModelBytes
    from harness.triage.question import Question
    from harness.triage.rigfile import DeviceFacts


def two_cards_and_host(
    question: Question,
    sizes: ModelBytes,
    cards: tuple[DeviceFacts, DeviceFacts],
    cpu: DeviceFacts,
) -> Option | None:
    """Layers over two cards by memory; of the experts what fits, the others on the CPU.

    Every split then also waits for copies between the cards, where these have no peer access:
    four published placements that added a second card so were slower than before.

    None: the model is dense, a card holds no experts at all, or both hold all.
    """
    if not sizes.expert_layers:
        return None
    ranges = _ranges(question, sizes, cards)
    held = [_held(question, sizes, card, part) for card, part in zip(cards, ranges, strict=True)]
    on_cards = sum(len(part) for part in held)
    if not all(held) or on_cards == len(sizes.expert_layers):
        return None
    slow = [n for n in sizes.expert_layers if not any(n in part for part in held)]
    by_layer = dict(zip(sizes.expert_layers, sizes.expert_layer_bytes, strict=True))
    bytes_on = [sum(by_layer[n] for n in part) for part in held]
    rest = sum(by_layer[n] for n in slow)
    shares = [len(part) / sizes.layers for part in ranges]
    splits = 2 * len(slow) + 4 if question.splits is None else question.splits.count
    option = Option(
        key=f"resident:{cards[0].id}+{cards[1].id}+{cpu.id}",
        title=f"layers over {cards[0].id} and {cards[1].id}, experts of {len(slow)} of "
        f"{len(sizes.expert_layers)} layers on {cpu.id}",
        family=Family.RESIDENT,
        devices=(cards[0].id, cards[1].id, cpu.id),
        placement=Placement(
            devices=tuple(device_of(d, sizes.expert_quantization) for d in (*cards, cpu)),
            shape=sizes.shape,
            reads=(
                *(
                    part
                    for card, share, size in zip(cards, shares, bytes_on, strict=True)
                    for part in reads_on(
                        card.id,
                        sizes,
                        trunk=share,
                        kv=share,
                        experts=size / sizes.experts_bytes,
                    )
                ),
                *reads_on(cpu.id, sizes, trunk=0, kv=0, experts=rest / sizes.experts_bytes),
            ),
            splits=splits,
            split_us=told_us(question.rig.sync_us),
            staged_splits=0.0 if peer_access(question, *cards) else splits,
            layer_us=told_us(question.rig.layer_us),
            cpu_layer_us=told_us(question.rig.cpu_layer_us),
            main_class=cards[0].device_class.value,
        ),
        fills=(
            *(
                fill(
                    card,
                    question.rig,
                    {
                        "attention and shared": sizes.trunk_bytes * share,
                        "experts": float(size),
                        "KV": sizes.kv_bytes * share,
                        **buffers(question, card),
                    },
                )
                for card, share, size in zip(cards, shares, bytes_on, strict=True)
            ),
            fill(cpu, question.rig, {"experts": float(rest), **buffers(question, cpu)}),
            *host_fill(question, sizes, cpu),
        ),
        words=engine_words.cards_and_host(
            [card.id for card in cards], [len(part) for part in ranges], slow
        ),
        notes=("each split waits for copies between the cards unless they have peer access",),
    )
    parts = [*zip(cards, bytes_on, strict=True), (cpu, rest)]
    shares_of_experts = [(device, size / sizes.experts_bytes) for device, size in parts]
    shared = prompt_on(question, sizes, shares_of_experts)
    read = upload(question, sizes, cards[0], rest, shared)
    return replace(option, prompt=read.prompt, regime=read.regime, prompt_note=read.prompt_note)


def _ranges(question: Question, sizes: ModelBytes, cards: Sequence[DeviceFacts]) -> list[range]:
    """Layers by card, in proportion to what each has free."""
    free = [max(1.0, room(question, sizes, card, trunk=False)) for card in cards]
    first = round(sizes.layers * free[0] / sum(free))
    return [range(first), range(first, sizes.layers)]


def _held(question: Question, sizes: ModelBytes, card: DeviceFacts, part: range) -> list[int]:
    """Layers of a card's range whose experts fit it, from the last backward."""
    share = len(part) / sizes.layers
    free = room(question, sizes, card, trunk=False)
    free -= share * (sizes.trunk_bytes + sizes.nextn_bytes + sizes.kv_bytes)
    found = []
    by_layer = zip(sizes.expert_layers, sizes.expert_layer_bytes, strict=True)
    for layer, size in reversed([pair for pair in by_layer if pair[0] in part]):
        free -= size
        if free < 0:
            break
        found.append(layer)
    return sorted(found)
