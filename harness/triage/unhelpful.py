"""What does not help on this rig with this model, by name, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.triage.memory import Fit, fits, in_system_memory
from harness.triage.rig_devices import accelerators, host, link_gb_s, nominal
from harness.triage.terms import harmonic_tok_s, read_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.triage.model_bytes import ModelBytes
    from harness.triage.option import Option
    from harness.triage.question import Question

NARROW_GB_S = 8.0
"""A link below this is narrow for a parallel split: Gen4 x4, OCuLink, USB4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unhelpful:
    """One idea that comes up, and why it is none here."""

    what: str
    why: str


def unhelpful(question: Question, sizes: ModelBytes, alone: Sequence[Option]) -> list[Unhelpful]:
    """In the order in which people ask."""
    return [
        *_second_card_for_what_fits(question, alone),
        *_shared_memory(question),
        *_parallel(question, sizes),
        *_kv_apart(question, sizes),
        *_over_the_link(question, sizes),
        Unhelpful(
            what="placements meant for prefill",
            why="a prompt is bound by arithmetic and reads each weight once a batch, so the share "
            "of the token that moved says nothing about it; what helps it is a larger batch "
            "(-b, -ub), or fewer bytes that are uploaded for each",
        ),
    ]


def _second_card_for_what_fits(question: Question, alone: Sequence[Option]) -> list[Unhelpful]:
    if len(alone) < 2 or fits(alone[0].fills) is not Fit.YES:
        return []
    # The fastest memory comes first.
    first, second = (question.rig.device(option.devices[0]) for option in alone[:2])
    assert first is not None
    assert second is not None
    why = "layers on slower memory are read more slowly, and layers in sequence wait for each other"
    if nominal(first) and nominal(second):
        halves = [(0.5, nominal(first)), (0.5, nominal(second))]
        ratio = harmonic_tok_s(halves) / nominal(first)
        why += f": half of them on {second.id} is ×{ratio:.2f} by the data sheets"
    return [
        Unhelpful(what=f"a second device for the capacity that {first.id} already has", why=why)
    ]


def _shared_memory(question: Question) -> list[Unhelpful]:
    cpu = host(question.rig)
    found = []
    for device in accelerators(question.rig):
        if not in_system_memory(device):
            continue
        partner = "the CPU" if cpu is None else cpu.id
        found.append(
            Unhelpful(
                what=f"a split between {device.id} and {partner}",
                why="one memory under one controller: a stage there adds arithmetic, neither "
                "capacity nor bandwidth",
            )
        )
        found.append(
            Unhelpful(
                what=f"fencing more memory for {device.id} (carve-out, amdgpu.gttsize)",
                why="it moves bytes from the CPU to the GPU and makes none",
            )
        )
    return found


def _parallel(question: Question, sizes: ModelBytes) -> list[Unhelpful]:
    cards = accelerators(question.rig)
    discrete = [device for device in cards if not in_system_memory(device)]
    found = []
    if any(in_system_memory(device) for device in cards) and discrete:
        found.append(
            Unhelpful(
                what="tensor parallel between a card and an integrated GPU, or a CPU",
                why=f"{2 * sizes.layers} meetings a token, each as slow as the slower side and "
                "the host between them",
            )
        )
    narrow = link_gb_s(question, *discrete) if len(discrete) > 1 else None
    if narrow is not None and narrow[0] < NARROW_GB_S:
        found.append(
            Unhelpful(
                what="collectives over the narrowest link here",
                why=f"{narrow[0]:.2f} GB/s; a second, unequal card behind such a link has made "
                "decode slower where it was tried",
            )
        )
    return found


def _kv_apart(question: Question, sizes: ModelBytes) -> list[Unhelpful]:
    discrete = [d for d in accelerators(question.rig) if not in_system_memory(d)]
    link = link_gb_s(question, *discrete[:1])
    if link is None or not sizes.kv_gb:
        return []
    return [
        Unhelpful(
            what="KV on the far device (-nkvo)",
            why=f"{sizes.kv_gb:.2f} GB a token over {link[0]:.2f} GB/s: "
            f"{read_ms(sizes.kv_gb, link[0]):.1f} ms",
        )
    ]


def _over_the_link(question: Question, sizes: ModelBytes) -> list[Unhelpful]:
    discrete = [d for d in accelerators(question.rig) if not in_system_memory(d)]
    link = link_gb_s(question, *discrete[:1])
    if link is None:
        return []
    active = sizes.trunk_gb + sizes.experts_gb
    rate = nominal(discrete[0])
    told = f", against {rate:.0f} GB/s of its own memory" if rate else ""
    return [
        Unhelpful(
            what="reading weights over the link for every token",
            why=f"{active:.2f} GB a token at {link[0]:.2f} GB/s{told}: "
            f"{read_ms(active, link[0]):.0f} ms",
        )
    ]
