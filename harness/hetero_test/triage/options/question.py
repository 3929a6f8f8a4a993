"""What is asked of triage: the model, the rig, how it is used, and what has been measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hetero_test.rig.facts import RigFacts
from hetero_test.triage.cost.placement import DraftKind
from hetero_test.triage.cost.prompt import Runtime
from hetero_test.triage.model.bytes import ModelBytes, model_bytes
from hetero_test.triage.model.facts import ModelFacts, TokenLists


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """A decode speed and, where it is known, that of reading a prompt."""

    decode_tok_s: float
    prefill_tok_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitCount:
    """Graph splits a token, and where they were read."""

    count: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftQuestion:
    """A drafter that might run on another device than the target."""

    model: ModelFacts | None = None
    """The drafter; None: the target's own head."""
    device: str | None = None
    """Where it would run; None: on the first device that is not the target's."""
    kind: DraftKind = DraftKind.EXTERNAL
    window: int = 3
    tokens_per_round: float | None = None
    """From acceptance as it was given; None: nothing is known of it."""
    acceptance_source: str = "not given"
    beta: float | None = None
    verify: Mapping[int, float] = field(default_factory=dict)
    tok_s: float | None = None
    """Measured decode speed of the drafter on that device."""
    tokens: TokenLists = TokenLists.NOT_CHECKED
    """The drafter's token list against the target's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageQuestion:
    """Everything that the arithmetic needs."""

    model: ModelFacts
    rig: RigFacts
    context: int = 8192
    """Positions a slot is allocated."""
    depth: int | None = None
    """Positions that decoding reads; None: the whole context."""
    slots: int = 1
    kv_type: str = "f16"
    ubatch: int = 512
    runtime: Runtime = Runtime.LLAMA_CPP
    prompt_per_reply: float = 4.0
    """Prompt tokens read for every token written, to weigh prefill against decode."""
    baselines: Mapping[str, Speeds] = field(default_factory=dict)
    """Measured speed of this model wholly on a device, without drafting."""
    incumbent: Speeds | None = None
    """What runs today, with its own drafting."""
    splits: SplitCount | None = None
    link_gb_s: float | None = None
    draft: DraftQuestion | None = None
    build_dir: Path | None = None

    @property
    def read_depth(self) -> int:
        """Positions of KV that a decoded token reads."""
        return self.context if self.depth is None else min(self.depth, self.context)

    def sizes_of(self, model: ModelFacts) -> ModelBytes:
        """The sizes of a model (this question's, or its drafter) used as this question says.

        Raises:
            UsageError: there is no such KV type.
        """
        return model_bytes(
            model,
            context=self.context,
            depth=self.read_depth,
            slots=self.slots,
            kv_type=self.kv_type,
        )
