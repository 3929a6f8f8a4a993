"""Room on a device: what an engine and whole layers take, and what is left for more of a model.

Also how a split reads a prompt: in place, or uploaded to the card a batch at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from hetero_test.triage.cost.memory import (
    CONTEXT_BYTES,
    capacity,
    compute_buffer_bytes,
    fill,
    in_system_memory,
)
from hetero_test.triage.cost.prompt import Regime, upload_starts_at
from hetero_test.triage.options.alone import prompt_on
from hetero_test.triage.options.devices import link_gb_s

if TYPE_CHECKING:
    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.cost.memory import Fill
    from hetero_test.triage.cost.prompt import Prompt
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.option import Option
    from hetero_test.triage.options.question import TriageQuestion


def room(question: TriageQuestion, sizes: ModelBytes, device: DeviceFacts, *, trunk: bool) -> float:
    """Bytes that are left on a device; below zero where it holds too much already.

    Args:
        question: batch and rig.
        sizes: the model's.
        device: the device.
        trunk: whether attention, shared weights, draft head and all KV are there.
    """
    free = capacity(device, question.rig) or 0.0
    free -= sum(buffers(question, device).values())
    if trunk:
        free -= sizes.trunk_bytes + sizes.nextn_bytes + sizes.kv_bytes
    return free


def layers_that_fit(sizes: ModelBytes, room: float) -> int:
    """How many layers' experts fit into so many bytes, taken from the last layer backward."""
    held = 0
    for size in reversed(sizes.expert_layer_bytes):
        room -= size
        if room < 0:
            break
        held += 1
    return held


def buffers(question: TriageQuestion, device: DeviceFacts) -> dict[str, float]:
    """What an engine takes on a device beside weights and KV, bytes."""
    return {
        "compute buffer": compute_buffer_bytes(question.model, question.ubatch),
        "driver": 0.0 if in_system_memory(device) else float(CONTEXT_BYTES),
    }


def layer_fill(
    question: TriageQuestion, sizes: ModelBytes, device: DeviceFacts, share: float
) -> Fill:
    """What a share of all layers puts on a device: weights, their KV, and the engine's buffers."""
    return fill(
        device,
        question.rig,
        {
            "weights": sizes.resident_bytes * share,
            "KV": sizes.kv_bytes * share,
            **buffers(question, device),
        },
    )


class PromptReading(NamedTuple):
    """How a prompt is read, as `Option` takes it."""

    prompt: Prompt | None
    regime: Regime | None
    prompt_note: str


def upload(
    question: TriageQuestion,
    sizes: ModelBytes,
    card: DeviceFacts,
    elsewhere_bytes: float,
    in_place: Prompt,
) -> PromptReading:
    """A prompt where part of the weights is in host memory: uploaded in batches that are large.

    Args:
        question: batch and runtime, which decide whether anything is uploaded.
        sizes: the model's bytes.
        card: what computes, and is uploaded to.
        elsewhere_bytes: weights in host memory.
        in_place: the prompt where every device computes its own.
    """
    starts = upload_starts_at(question.runtime, sizes.shape.experts, sizes.shape.used)
    if question.ubatch < starts:
        note = f"batches of {question.ubatch} are below {starts}, from which experts are uploaded"
        return PromptReading(in_place, Regime.IN_PLACE, note)
    link = link_gb_s(question, card)
    if link is None:
        return PromptReading(None, None, f"the link of {card.id} is not known; give --link GB_S")
    size_gb = elsewhere_bytes / 1e9
    batches = f"every batch of {question.ubatch} tokens; a larger -ub takes them less often"
    prompt = replace(
        prompt_on(question, sizes, ((card, 1.0),)),
        upload_gb=size_gb,
        link_gb_s=link[0],
        link_measured=link[1],
    )
    note = f"{size_gb:.1f} GB cross the link for {batches}"
    return PromptReading(prompt, Regime.UPLOADED, note)


def with_prompt(
    question: TriageQuestion,
    sizes: ModelBytes,
    option: Option,
    card: DeviceFacts,
    other: DeviceFacts,
    elsewhere_bytes: float,
    *,
    fast_share: float,
) -> Option:
    """The option with its prompt: uploaded only from host memory.

    Args:
        question: batch and runtime.
        sizes: the model's.
        option: of two devices, without its prompt.
        card: the one that computes attention, and is uploaded to.
        other: the one that has the rest.
        elsewhere_bytes: weights on the other.
        fast_share: the card's share of the arithmetic where each computes its own.
    """
    shared = prompt_on(question, sizes, ((card, fast_share), (other, 1 - fast_share)))
    if not in_system_memory(other):
        return replace(option, prompt=shared, regime=Regime.IN_PLACE)
    read = upload(question, sizes, card, elsewhere_bytes, shared)
    return replace(option, prompt=read.prompt, regime=read.regime, prompt_note=read.prompt_note)
