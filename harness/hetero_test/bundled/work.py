"""What decoding cost: times, experts by place, drafts by fate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class Work:
    """Counters and seconds, added to by the model and by the decoder."""

    rounds: int = 0
    host_distinct: int = 0  # experts computed on the host, once a layer and window
    host_routed: int = 0  # rows that were routed to them
    pcie_distinct: int = 0  # experts that no cache held but the device computed
    resident_routed: int = 0
    expert_bytes: int = 0  # of weights that the host read
    attention_s: float = 0.0
    plan_s: float = 0.0
    quantize_s: float = 0.0
    jobs_s: float = 0.0
    run_s: float = 0.0
    gate_up_s: float = 0.0
    requantize_s: float = 0.0
    down_s: float = 0.0
    host_s: float = 0.0
    device_s: float = 0.0
    commit_s: float = 0.0
    draft_s: float = 0.0
    adapt_s: float = 0.0

    def reset(self) -> None:
        """Start counting afresh."""
        for counter in fields(self):
            setattr(self, counter.name, type(getattr(self, counter.name))())

    def per_round(self, total: float) -> float:
        """A total divided by the rounds; 0 when there was none."""
        return total / self.rounds if self.rounds else 0.0


@dataclass(slots=True)
class DraftCounts:
    """What became of the drafts.

    Attributes:
        offered: drafts that were verified.
        accepted: those of them that the model agreed with.
        lookup_windows: windows whose drafts were looked up in the tokens so far.
        draft_rounds: windows that the drafter proposed for.
        sizes: windows by their size in tokens.
        accepted_per_round: windows by how many of their drafts were accepted.
        swapped: experts exchanged between a device and the host.
    """

    offered: int = 0
    accepted: int = 0
    lookup_windows: int = 0
    lookup_offered: int = 0
    lookup_accepted: int = 0
    draft_rounds: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    accepted_per_round: Counter[int] = field(default_factory=Counter)
    swapped: int = 0
