"""What does not help on this rig with this model, and what of its bandwidths is in doubt.

Each goes out with its reason; a bandwidth may be assumed, uncertain or unbelievable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.triage.answer.baselines import baseline
from hetero_test.triage.cost.memory import Fit, fits, in_system_memory
from hetero_test.triage.cost.terms import harmonic_tok_s, read_ms
from hetero_test.triage.options.devices import (
    COPY_LIMIT,
    accelerators,
    assumed_gb_s,
    host,
    is_cpu,
    link_gb_s,
    nominal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.option import Option
    from hetero_test.triage.options.question import TriageQuestion

NARROW_GB_S = 8.0
"""A link below this is narrow for a parallel split: Gen4 x4, OCuLink, USB4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotHelpful:
    """One idea that comes up, and why it does not help here."""

    what: str
    why: str


def not_helpful(
    question: TriageQuestion, sizes: ModelBytes, alone: Sequence[Option]
) -> list[NotHelpful]:
    """In the order in which people ask."""
    return [
        *_second_card_for_what_fits(question, alone),
        *_shared_memory(question),
        *_parallel(question, sizes),
        *_kv_apart(question, sizes),
        *_over_the_link(question, sizes),
        NotHelpful(
            what="placements meant for prefill",
            why="a prompt is bound by arithmetic and reads each weight once a batch, so the share "
            "of the token that moved says nothing about it; what helps it is a larger batch "
            "(-b, -ub), or fewer bytes that are uploaded for each",
        ),
    ]


def _second_card_for_what_fits(
    question: TriageQuestion, alone: Sequence[Option]
) -> list[NotHelpful]:
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
        NotHelpful(what=f"a second device for the capacity that {first.id} already has", why=why)
    ]


def _shared_memory(question: TriageQuestion) -> list[NotHelpful]:
    cpu = host(question.rig)
    found = []
    for device in accelerators(question.rig):
        if not in_system_memory(device):
            continue
        partner = "the CPU" if cpu is None else cpu.id
        found.append(
            NotHelpful(
                what=f"a split between {device.id} and {partner}",
                why="one memory under one controller: a stage there adds arithmetic, neither "
                "capacity nor bandwidth",
            )
        )
        found.append(
            NotHelpful(
                what=f"fencing more memory for {device.id} (carve-out, amdgpu.gttsize)",
                why="it moves bytes from the CPU to the GPU and makes none",
            )
        )
    return found


def _parallel(question: TriageQuestion, sizes: ModelBytes) -> list[NotHelpful]:
    cards = accelerators(question.rig)
    discrete = [device for device in cards if not in_system_memory(device)]
    found = []
    if any(in_system_memory(device) for device in cards) and discrete:
        found.append(
            NotHelpful(
                what="tensor parallel between a card and an integrated GPU, or a CPU",
                why=f"{2 * sizes.layers} meetings a token, each as slow as the slower side and "
                "the host between them",
            )
        )
    narrow = link_gb_s(question, *discrete) if len(discrete) > 1 else None
    if narrow is not None and narrow[0] < NARROW_GB_S:
        found.append(
            NotHelpful(
                what="collectives over the narrowest link here",
                why=f"{narrow[0]:.2f} GB/s; a second, unequal card behind such a link has made "
                "decode slower where it was tried",
            )
        )
    return found


def _kv_apart(question: TriageQuestion, sizes: ModelBytes) -> list[NotHelpful]:
    discrete = [d for d in accelerators(question.rig) if not in_system_memory(d)]
    link = link_gb_s(question, *discrete[:1])
    if link is None or not sizes.kv_gb:
        return []
    return [
        NotHelpful(
            what="KV on the far device (-nkvo)",
            why=f"{sizes.kv_gb:.2f} GB a token over {link[0]:.2f} GB/s: "
            f"{read_ms(sizes.kv_gb, link[0]):.1f} ms",
        )
    ]


def _over_the_link(question: TriageQuestion, sizes: ModelBytes) -> list[NotHelpful]:
    discrete = [d for d in accelerators(question.rig) if not in_system_memory(d)]
    link = link_gb_s(question, *discrete[:1])
    if link is None:
        return []
    active = sizes.trunk_gb + sizes.experts_gb
    rate = nominal(discrete[0])
    told = f", against {rate:.0f} GB/s of its own memory" if rate else ""
    return [
        NotHelpful(
            what="reading weights over the link for every token",
            why=f"{active:.2f} GB a token at {link[0]:.2f} GB/s{told}: "
            f"{read_ms(active, link[0]):.0f} ms",
        )
    ]


UNEVEN = 1.5
"""Upper over lower end from which a bandwidth should be measured again."""
LITTLE = 0.5
"""Share of the data sheet below which a measurement gets a remark."""


def cautions(question: TriageQuestion) -> list[str]:
    """One sentence each, devices in the order of the rig."""
    return [text for device in question.rig.devices for text in _of(question, device)]


def _of(question: TriageQuestion, device: DeviceFacts) -> Iterator[str]:
    assumed = assumed_gb_s(device)
    if assumed is not None and baseline(question, device) is None:
        yield f"{device.id}: {_assumed(device, assumed)}"
    told, read = device.bandwidth_specified_gb_s, device.bandwidth_measured_gb_s
    if read is None or device.bandwidth_effective:
        return
    rate = float(read.value)
    if read.low and read.high and read.high > UNEVEN * read.low:
        yield (
            f"{device.id}: its bandwidth was measured as {rate:.4g} GB/s, but {read.low:.4g} to "
            f"{read.high:.4g} is possible ({read.source}): measure it again at rest, with "
            "hetero-test rig"
        )
    if told is not None and contradicts_its_data_sheet(device):
        sheet = float(told.value)
        more = "what was measured is believed" if rate < sheet else "it is not believed"
        yield (
            f"{device.id}: the {rate:.4g} GB/s that were measured contradict the {sheet:.4g} GB/s "
            f"of its data sheet; {more}"
        )


def contradicts_its_data_sheet(device: DeviceFacts) -> bool:
    """Whether the measured bandwidth of its memory is far from the specified one."""
    told, read = device.bandwidth_specified_gb_s, device.bandwidth_measured_gb_s
    if told is None or read is None or device.bandwidth_effective:
        return False
    return not LITTLE * told.value <= read.value <= COPY_LIMIT * told.value


def _assumed(device: DeviceFacts, gb_s: float) -> str:
    what = "its memory" if device.name is None else device.name.value
    if is_cpu(device):
        return (
            f"memory bandwidth not measured, assumed {gb_s:.0f} GB/s, no figure for {what}: "
            "run hetero-test rig"
        )
    return (
        f"assumed {gb_s:.0f} GB/s, no figure for {what}: give its bandwidth in the rig file, or "
        f"--baseline {device.id}=TOK_S"
    )
