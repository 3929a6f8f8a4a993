"""One process over two devices, in sequence.

By role, by layer, with some experts elsewhere, and with experts by how often they are used:
the hot ones on the card, the others computed or copied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp import placement_flags
from hetero_test.triage.cost.memory import (
    CONTEXT_BYTES,
    capacity,
    compute_buffer_bytes,
    fill,
    in_system_memory,
)
from hetero_test.triage.cost.placement import Hot
from hetero_test.triage.cost.prompt import Regime
from hetero_test.triage.cost.terms import read_ms
from hetero_test.triage.options.alone import host_fill, placement_on, prompt_on, reads_on
from hetero_test.triage.options.devices import is_cpu, link_gb_s, nominal, pair_sync_us, peer_access
from hetero_test.triage.options.option import Option, OptionFamily
from hetero_test.triage.options.room import buffers, layer_fill, layers_that_fit, room, with_prompt

if TYPE_CHECKING:
    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.cost.memory import Fill
    from hetero_test.triage.cost.placement import Placement, Read
    from hetero_test.triage.cost.prompt import Prompt
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import TriageQuestion


def by_role(
    question: TriageQuestion, sizes: ModelBytes, fast: DeviceFacts, slow: DeviceFacts
) -> Option | None:
    """Attention, KV and shared weights on the fast device; experts there as far as they fit.

    None: the model is dense, or all of it fits the fast device anyway.
    """
    if not sizes.expert_layers:
        return None
    held = layers_that_fit(sizes, room(question, sizes, fast, trunk=True))
    if held >= len(sizes.expert_layers):
        return None
    slow_layers = sizes.expert_layers[: len(sizes.expert_layers) - held]
    on_slow = sum(sizes.expert_layer_bytes[: len(slow_layers)])
    share = 1 - on_slow / sizes.experts_bytes
    option = Option(
        key=f"resident:{fast.id}+{slow.id}",
        title=f"attention and KV on {fast.id}, experts of {len(slow_layers)} of "
        f"{len(sizes.expert_layers)} layers on {slow.id}",
        family=OptionFamily.RESIDENT,
        devices=(fast.id, slow.id),
        placement=_sequence(
            question,
            sizes,
            (fast, slow),
            2 * len(slow_layers) + 2,
            (
                *reads_on(fast.id, sizes, experts=share),
                *reads_on(slow.id, sizes, trunk=0, kv=0, experts=1 - share),
            ),
        ),
        fills=(
            _fast_fill(question, sizes, fast, sizes.experts_bytes - on_slow),
            fill(slow, question.rig, {"experts": float(on_slow), **buffers(question, slow)}),
            *host_fill(question, sizes, slow),
        ),
        flags=placement_flags.by_role(
            fast.id, slow.id, slow_layers, slow_is_cpu=is_cpu(slow), all_layers=not held
        ),
        notes=_role_notes(question, sizes, fast, slow),
    )
    return with_prompt(question, sizes, option, fast, slow, on_slow, fast_share=share)


def some_experts(
    question: TriageQuestion, sizes: ModelBytes, big: DeviceFacts, card: DeviceFacts
) -> Option | None:
    """All stays on the big device but the experts of as many layers as the card holds.

    None: the model is dense, or the experts of no layer fit the card.
    """
    if not sizes.expert_layers or big.id == card.id:
        return None
    held = layers_that_fit(sizes, room(question, sizes, card, trunk=False))
    held = min(held, len(sizes.expert_layers))
    if not held:
        return None
    moved = sum(sizes.expert_layer_bytes[-held:])
    share = moved / sizes.experts_bytes
    rest = sizes.resident_bytes - moved
    option = Option(
        key=f"experts:{big.id}+{card.id}",
        title=f"{big.id}, with the experts of {held} of {len(sizes.expert_layers)} layers "
        f"({share:.1%}) on {card.id}",
        family=OptionFamily.EXPERTS,
        devices=(big.id, card.id),
        placement=_sequence(
            question,
            sizes,
            (big, card),
            2 * held + 2,
            (
                *reads_on(big.id, sizes, experts=1 - share),
                *reads_on(card.id, sizes, trunk=0, kv=0, experts=share),
            ),
        ),
        fills=(
            _big_fill(question, sizes, big, rest),
            fill(card, question.rig, {"experts": float(moved), **buffers(question, card)}),
            *host_fill(question, sizes, big),
        ),
        flags=placement_flags.some_experts(
            big.id, card.id, sizes.expert_layers[-held:], big_is_cpu=is_cpu(big)
        ),
    )
    return with_prompt(question, sizes, option, card, big, rest, fast_share=share)


def contiguous(
    question: TriageQuestion, sizes: ModelBytes, fast: DeviceFacts, slow: DeviceFacts
) -> Option | None:
    """Whole layers in two ranges, as many on the fast device as fit with their KV.

    None: all of it fits the fast device, or not even one layer does.
    """
    per_layer = (sizes.resident_bytes + sizes.kv_bytes) / max(1, sizes.layers)
    held = int(max(0.0, room(question, sizes, fast, trunk=False)) // per_layer)
    if not 0 < held < sizes.layers:
        return None
    share = held / sizes.layers
    on_slow = sizes.resident_bytes * (1 - share)
    option = Option(
        key=f"layers:{fast.id}+{slow.id}",
        title=f"{held} layers on {fast.id}, {sizes.layers - held} on {slow.id}",
        family=OptionFamily.CONTIGUOUS,
        devices=(fast.id, slow.id),
        placement=_sequence(
            question,
            sizes,
            (fast, slow),
            3,
            (
                *reads_on(fast.id, sizes, trunk=share, experts=share, kv=share),
                *reads_on(slow.id, sizes, trunk=1 - share, experts=1 - share, kv=1 - share),
            ),
            hops=2,
        ),
        fills=(
            layer_fill(question, sizes, fast, share),
            layer_fill(question, sizes, slow, 1 - share),
            *host_fill(question, sizes, slow),
        ),
        flags=placement_flags.partly_host(fast.id, held)
        if is_cpu(slow)
        else placement_flags.contiguous((fast.id, slow.id), (held, sizes.layers - held)),
        notes=_range_notes(sizes, fast, slow, share),
    )
    return with_prompt(question, sizes, option, fast, slow, on_slow, fast_share=share)


def _sequence(
    question: TriageQuestion,
    sizes: ModelBytes,
    devices: tuple[DeviceFacts, DeviceFacts],
    splits: int,
    reads: tuple[Read, ...],
    *,
    hops: int | None = None,
) -> Placement:
    first, second = devices
    two_cards = not in_system_memory(first) and not in_system_memory(second)
    counted = splits if question.splits is None or hops == 2 else question.splits.count
    link = link_gb_s(question, *(d for d in devices if not in_system_memory(d)))
    staged = counted if two_cards and not peer_access(question, first, second) else 0
    return replace(
        placement_on(question, sizes, first, second),
        reads=reads,
        splits=counted,
        split_us=pair_sync_us(question, first, second),
        staged_splits=staged,
        link_bytes=float(sizes.hidden_bytes * (counted if hops is None else hops)),
        link_gb_s=None if link is None else link[0],
    )


def _fast_fill(
    question: TriageQuestion, sizes: ModelBytes, device: DeviceFacts, experts: float
) -> Fill:
    return fill(
        device,
        question.rig,
        {
            "attention and shared": float(sizes.trunk_bytes),
            "own draft head": float(sizes.nextn_bytes),
            "experts": float(experts),
            "KV": sizes.kv_bytes,
            **buffers(question, device),
        },
    )


def _big_fill(
    question: TriageQuestion, sizes: ModelBytes, device: DeviceFacts, weights: float
) -> Fill:
    """Everything but the experts that were moved away."""
    return fill(
        device,
        question.rig,
        {
            "weights": float(weights + sizes.nextn_bytes),
            "KV": sizes.kv_bytes,
            **buffers(question, device),
        },
    )


def _role_notes(
    question: TriageQuestion, sizes: ModelBytes, fast: DeviceFacts, slow: DeviceFacts
) -> tuple[str, ...]:
    """What contiguous ranges, or KV apart from its attention, would cost."""
    notes = []
    link = link_gb_s(question, fast)
    if link is not None and sizes.kv_gb:
        apart = read_ms(sizes.kv_gb, link[0])
        notes.append(
            f"KV apart from its attention (-nkvo) would put {sizes.kv_gb:.2f} GB a token over "
            f"the link: {apart:.1f} ms"
        )
    slow_rate, fast_rate = nominal(slow), nominal(fast)
    if sizes.kv_gb and slow_rate and fast_rate > slow_rate:
        dragged = 0.5 * (read_ms(sizes.kv_gb, slow_rate) - read_ms(sizes.kv_gb, fast_rate))
        if dragged > 0.1:
            word = "are wrong here: they" if sizes.kv_heavy else ""
            notes.append(
                f"contiguous ranges (-ts) {word} would drag half of the KV to {slow.id}, at least "
                f"{dragged:.1f} ms a token more".replace("  ", " ")
            )
    return tuple(notes)


def _range_notes(
    sizes: ModelBytes, fast: DeviceFacts, slow: DeviceFacts, share: float
) -> tuple[str, ...]:
    if not sizes.expert_layers:
        return ()
    told = f"{1 - share:.0%} of the KV is read on {slow.id} rather than {fast.id}"
    return (f"ranges move attention and its KV with the experts: {told}",)


HOT_EXPONENT = 0.8
"""Middle of the unknown ``traffic``, for the figures in notes."""
NO_WORDS = "neither llama.cpp nor ik_llama.cpp can say this: KTransformers and others can"


def hot_experts(
    question: TriageQuestion, sizes: ModelBytes, card: DeviceFacts, slow: DeviceFacts
) -> Option | None:
    """The most used experts of every layer on the card, the others computed where they are.

    None: the model is dense, or all or none of its experts fit the card.
    """
    share = _held(question, sizes, card)
    if not 0 < share < 1:
        return None
    hot = Hot(
        device=card.id,
        share=share,
        experts_gb=sizes.experts_gb,
        cold_device=slow.id,
        quantization=sizes.expert_quantization,
    )
    return Option(
        key=f"hot:{card.id}+{slow.id}",
        title=f"the hottest {share:.0%} of experts on {card.id}, the others on {slow.id}",
        family=OptionFamily.EXPERTS,
        devices=(card.id, slow.id),
        placement=replace(
            placement_on(question, sizes, card, slow),
            reads=reads_on(card.id, sizes, experts=0),
            splits=2 * len(sizes.expert_layers) + 2,
            split_us=pair_sync_us(question, card, slow),
            hot=hot,
        ),
        fills=_hot_fills(question, sizes, card, slow, share),
        prompt=_uploading(question, sizes, card, share),
        regime=Regime.UPLOADED,
        prompt_note="a prompt touches all experts, and the cold ones are uploaded for each batch",
        notes=(NO_WORDS, f"counts on {share**HOT_EXPONENT:.0%} of the traffic being hot"),
    )


def streamed(
    question: TriageQuestion, sizes: ModelBytes, card: DeviceFacts, slow: DeviceFacts
) -> Option | None:
    """The card computes everything; experts that it does not hold are copied for each use.

    None: the model is dense, all experts fit, or no link is known.
    """
    share = _held(question, sizes, card)
    link = link_gb_s(question, card)
    if not sizes.expert_layers or share >= 1 or link is None:
        return None
    missed = sizes.experts_gb * (1 - share**HOT_EXPONENT if share else 1.0)
    ms = read_ms(missed, link[0])
    return Option(
        key=f"streamed:{card.id}",
        title=f"experts streamed to {card.id}, {share:.0%} of them kept",
        family=OptionFamily.STREAMED,
        devices=(card.id, slow.id),
        placement=replace(
            placement_on(question, sizes, card),
            reads=reads_on(card.id, sizes, experts=0),
            link_gb_s=link[0],
            hot=Hot(
                device=card.id,
                share=share,
                experts_gb=sizes.experts_gb,
                quantization=sizes.expert_quantization,
            ),
        ),
        fills=_hot_fills(question, sizes, card, slow, share),
        prompt=_uploading(question, sizes, card, share),
        regime=Regime.UPLOADED,
        notes=(f"misses × bytes: {missed:.2f} GB a token, {ms:.1f} ms of the link", NO_WORDS),
    )


def _uploading(
    question: TriageQuestion, sizes: ModelBytes, card: DeviceFacts, share: float
) -> Prompt | None:
    """The card computes the prompt and is sent what it does not hold; None: no link is known."""
    link = link_gb_s(question, card)
    if link is None:
        return None
    return replace(
        prompt_on(question, sizes, ((card, 1.0),)),
        upload_gb=sizes.experts_bytes * (1 - share) / 1e9,
        link_gb_s=link[0],
        link_measured=link[1],
    )


def _held(question: TriageQuestion, sizes: ModelBytes, card: DeviceFacts) -> float:
    """Share of the experts' bytes that fits beside trunk and KV."""
    if not sizes.experts_bytes:
        return 0.0
    free = capacity(card, question.rig) or 0.0
    free -= sizes.trunk_bytes + sizes.nextn_bytes + sizes.kv_bytes + CONTEXT_BYTES
    free -= compute_buffer_bytes(question.model, question.ubatch)
    return max(0.0, min(1.0, free / sizes.experts_bytes))


def _hot_fills(
    question: TriageQuestion, sizes: ModelBytes, card: DeviceFacts, slow: DeviceFacts, share: float
) -> tuple[Fill, ...]:
    return (
        fill(
            card,
            question.rig,
            {
                "attention and shared": float(sizes.trunk_bytes),
                "own draft head": float(sizes.nextn_bytes),
                "experts": sizes.experts_bytes * share,
                "KV": sizes.kv_bytes,
                "compute buffer": compute_buffer_bytes(question.model, question.ubatch),
                "driver": float(CONTEXT_BYTES),
            },
        ),
        fill(slow, question.rig, {"experts": sizes.experts_bytes * (1 - share)}),
        *host_fill(question, sizes, slow),
    )
