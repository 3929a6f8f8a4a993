"""What an engine and whole layers take on a device, and what is left for more of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.triage.memory import (
    CONTEXT_BYTES,
    capacity,
    compute_buffer_bytes,
    fill,
    in_system_memory,
)

if TYPE_CHECKING:
    from harness.triage.memory import Fill
    from harness.triage.model_bytes import ModelBytes
    from harness.triage.question import Question
    from harness.triage.rigfile import DeviceFacts


def room(question: Question, sizes: ModelBytes, device: DeviceFacts, *, trunk: bool) -> float:
    """Bytes that are left on a device for more; below zero where it holds too much already.

    Args:
        question: batch and rig.
        sizes: the model's.
        device: on which.
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


def buffers(question: Question, device: DeviceFacts) -> dict[str, float]:
    """What an engine takes on a device beside weights and KV, bytes."""
    return {
        "compute buffer": compute_buffer_bytes(question.model, question.ubatch),
        "driver": 0.0 if in_system_memory(device) else float(CONTEXT_BYTES),
    }


def layer_fill(question: Question, sizes: ModelBytes, device: DeviceFacts, share: float) -> Fill:
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
