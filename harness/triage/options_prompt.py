"""How a split reads a prompt: in place, or uploaded to the card a batch at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from harness.triage.memory import in_system_memory
from harness.triage.options_alone import prompt_on
from harness.triage.prefill import Regime, upload_starts_at
from harness.triage.rig_devices import link_gb_s

if TYPE_CHECKING:
    from harness.triage.model_bytes import ModelBytes
    from harness.triage.option import Option
    from harness.triage.prefill_time import Prompt
    from harness.triage.question import Question
    from harness.triage.rigfile import DeviceFacts


class Reading(NamedTuple):
    """How a prompt is read, as `Option` takes it."""

    prompt: Prompt | None
    regime: Regime | None
    prompt_note: str


def upload(
    question: Question,
    sizes: ModelBytes,
    card: DeviceFacts,
    elsewhere_bytes: float,
    in_place: Prompt,
) -> Reading:
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
        return Reading(in_place, Regime.IN_PLACE, note)
    link = link_gb_s(question, card)
    if link is None:
        return Reading(None, None, f"the link of {card.id} is not known; give --link GB_S")
    size_gb = elsewhere_bytes / 1e9
    batches = f"every batch of {question.ubatch} tokens; a larger -ub takes them less often"
    prompt = replace(
        prompt_on(question, sizes, ((card, 1.0),)),
        upload_gb=size_gb,
        link_gb_s=link[0],
        link_measured=link[1],
    )
    note = f"{size_gb:.1f} GB cross the link for {batches}"
    return Reading(prompt, Regime.UPLOADED, note)


def with_prompt(
    question: Question,
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
