"""Experts by how often they are used: kept on the card, the others computed or copied."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.triage.cost.memory import CONTEXT_BYTES, capacity, compute_buffer_bytes, fill
from hetero_test.triage.cost.placement import Hot
from hetero_test.triage.cost.prompt import Regime
from hetero_test.triage.cost.terms import read_ms
from hetero_test.triage.options.alone import host_fill, placement_on, prompt_on, reads_on
from hetero_test.triage.options.devices import link_gb_s, pair_sync_us
from hetero_test.triage.options.option import Family, Option

if TYPE_CHECKING:
    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.cost.memory import Fill
    from hetero_test.triage.cost.prompt import Prompt
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import Question

HOT_EXPONENT = 0.8
"""Middle of the unknown ``traffic``, for what is told in words."""
NO_WORDS = "neither llama.cpp nor ik_llama.cpp can say this: KTransformers and others can"


def hot_experts(
    question: Question, sizes: ModelBytes, card: DeviceFacts, slow: DeviceFacts
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
        family=Family.EXPERTS,
        devices=(card.id, slow.id),
        placement=replace(
            placement_on(question, sizes, card, slow),
            reads=reads_on(card.id, sizes, experts=0),
            splits=2 * len(sizes.expert_layers) + 2,
            split_us=pair_sync_us(question, card, slow),
            hot=hot,
        ),
        fills=_fills(question, sizes, card, slow, share),
        prompt=_uploading(question, sizes, card, share),
        regime=Regime.UPLOADED,
        prompt_note="a prompt touches all experts, and the cold ones are uploaded for each batch",
        notes=(NO_WORDS, f"counts on {share**HOT_EXPONENT:.0%} of the traffic being hot"),
    )


def streamed(
    question: Question, sizes: ModelBytes, card: DeviceFacts, slow: DeviceFacts
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
        family=Family.STREAMED,
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
        fills=_fills(question, sizes, card, slow, share),
        prompt=_uploading(question, sizes, card, share),
        regime=Regime.UPLOADED,
        notes=(f"misses × bytes: {missed:.2f} GB a token, {ms:.1f} ms of the link", NO_WORDS),
    )


def _uploading(
    question: Question, sizes: ModelBytes, card: DeviceFacts, share: float
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


def _held(question: Question, sizes: ModelBytes, card: DeviceFacts) -> float:
    """Share of the experts' bytes that fits beside trunk and KV."""
    if not sizes.experts_bytes:
        return 0.0
    free = capacity(card, question.rig) or 0.0
    free -= sizes.trunk_bytes + sizes.nextn_bytes + sizes.kv_bytes + CONTEXT_BYTES
    free -= compute_buffer_bytes(question.model, question.ubatch)
    return max(0.0, min(1.0, free / sizes.experts_bytes))


def _fills(
    question: Question, sizes: ModelBytes, card: DeviceFacts, slow: DeviceFacts, share: float
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
