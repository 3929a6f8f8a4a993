"""What a stretch of work cost, and how many experts were computed where."""

from __future__ import annotations

from dataclasses import dataclass, fields


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
        for field in fields(self):
            setattr(self, field.name, type(getattr(self, field.name))())

    def per_round(self, total: float) -> float:
        """A total divided by the rounds; 0 when there was none."""
        return total / self.rounds if self.rounds else 0.0
