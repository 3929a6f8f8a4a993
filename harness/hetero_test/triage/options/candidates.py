"""Every option for a model on a rig, before any is judged."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from hetero_test.triage.cost.memory import Fit, fits, in_system_memory
from hetero_test.triage.options import split
from hetero_test.triage.options.alone import alone, endpoints
from hetero_test.triage.options.cards import tensor_parallel, two_cards_and_host
from hetero_test.triage.options.devices import accelerators, host

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.option import Option
    from hetero_test.triage.options.question import TriageQuestion

ENDPOINT_RATIO = 5.0
"""How many times as fast as the other one endpoint may be."""
MOST_CARDS = 4
"""Devices that are paired, the fastest first; nobody reads more pairs than theirs."""


def alone_options(question: TriageQuestion, sizes: ModelBytes) -> list[Option]:
    """Every device alone, fastest first, the CPU last."""
    return [alone(question, sizes, device) for device in _devices(question)]


def split_options(
    question: TriageQuestion, sizes: ModelBytes, speeds: Mapping[str, float]
) -> list[Option]:
    """Every way over two devices, and over two cards and the host, without drafting.

    Args:
        question: what is asked.
        sizes: the model's.
        speeds: tok/s of each device by reading everything alone, by its id.
    """
    each = alone_options(question, sizes)
    found = [
        endpoints(first, second)
        for first, second in combinations(each, 2)
        if _worth_an_endpoint(question, first.devices[0], second.devices[0], speeds)
        and Fit.NO not in (fits(first.fills), fits(second.fills))
    ]
    # Where the fastest device holds everything, a split without it is pointless.
    needed = each[0].devices[0] if each and fits(each[0].fills) is Fit.YES else None
    for fast, slow in _pairs(question):
        if needed not in (None, fast.id, slow.id):
            continue
        options = [
            split.by_role(question, sizes, fast, slow),
            split.some_experts(question, sizes, slow, fast),
            split.contiguous(question, sizes, fast, slow),
        ]
        if not in_system_memory(fast) and not in_system_memory(slow):
            options.append(tensor_parallel(question, sizes, fast, slow, speeds))
        found += [option for option in options if option is not None]
    found += _by_use(question, sizes)
    cards = [d for d in accelerators(question.rig) if not in_system_memory(d)][:2]
    cpu = host(question.rig)
    if len(cards) == 2 and cpu is not None:
        three = two_cards_and_host(question, sizes, (cards[0], cards[1]), cpu)
        found += [] if three is None else [three]
    return found


def _by_use(question: TriageQuestion, sizes: ModelBytes) -> list[Option]:
    """Experts by use: only between the fastest card and the fastest device of host memory."""
    pairs = [(fast, slow) for fast, slow in _pairs(question) if in_system_memory(slow)]
    for fast, slow in pairs[:1]:
        options = (
            split.hot_experts(question, sizes, fast, slow),
            split.streamed(question, sizes, fast, slow),
        )
        return [option for option in options if option is not None]
    return []


def _devices(question: TriageQuestion) -> list[DeviceFacts]:
    cpu = host(question.rig)
    return [*accelerators(question.rig)[:MOST_CARDS], *([cpu] if cpu is not None else [])]


def _pairs(question: TriageQuestion) -> Iterator[tuple[DeviceFacts, DeviceFacts]]:
    """Faster and slower device of every pair that does not share one memory."""
    for fast, slow in combinations(_devices(question), 2):
        if not (in_system_memory(fast) and in_system_memory(slow)):
            yield fast, slow


def _worth_an_endpoint(
    question: TriageQuestion, first: str, second: str, speeds: Mapping[str, float]
) -> bool:
    """Two memories, of which neither is many times as fast as the other."""
    one, two = question.rig.device(first), question.rig.device(second)
    assert one is not None
    assert two is not None
    if in_system_memory(one) and in_system_memory(two):
        return False
    rates = sorted((speeds[first], speeds[second]))
    return rates[0] * ENDPOINT_RATIO >= rates[1]
