"""One way to run the model, before its speed is computed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hetero_test.engines.llama_cpp.placement_flags import EngineFlags
from hetero_test.triage.cost.memory import Fill
from hetero_test.triage.cost.placement import Placement
from hetero_test.triage.cost.prompt import Prompt, Regime


class OptionFamily(StrEnum):
    """Kinds of options, the boring ones first: equal gains are listed in this order."""

    ALONE = "one device alone"
    ENDPOINTS = "independent endpoints"
    RESIDENT = "weights resident, KV with its attention"
    EXPERTS = "some experts elsewhere"
    DRAFTER = "drafting"
    CONTIGUOUS = "contiguous layers"
    PARALLEL = "parallel split"
    STREAMED = "experts streamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A placement with what it needs, and the flags that ask an engine for it."""

    key: str
    """Short and unique: ``resident:CUDA0+CPU``."""
    title: str
    family: OptionFamily
    devices: tuple[str, ...]
    """Ids of all devices that it occupies."""
    placement: Placement
    fills: tuple[Fill, ...] = ()
    flags: tuple[EngineFlags, ...] = ()
    prompt: Prompt | None = None
    """None: its prefill cannot be predicted; `prompt_note` says why."""
    regime: Regime | None = None
    prompt_note: str = ""
    notes: tuple[str, ...] = ()
    lacking: str | None = None
    """An input without which the gain is unknown; None: all are known."""
    impossible: str | None = None
    """Why it cannot pay whatever is measured; None: it can."""
    streams: int = 1
    """Independent streams that share the sum of the speeds (endpoints)."""
