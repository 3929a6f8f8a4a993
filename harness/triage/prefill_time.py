"""The time of a prompt: the regimes of `prefill`, with the unknowns filled in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.triage.prefill import resident_ms, uploaded_ms

if TYPE_CHECKING:
    from harness.triage.beliefs import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt on a placement whose fast device computes everything."""

    tokens: int
    ubatch: int
    active_parameters_b: float
    """Parameters that compute a token, 1e9."""
    upload_gb: float = 0.0
    """GB of weights elsewhere, that cross the link once a batch."""
    link_gb_s: float | None = None
    """By generation and width; what a copy reaches is an unknown."""


def prompt_log_ms(prompt: Prompt, read: Reader) -> float:
    """The logarithm of the milliseconds a token of the prompt takes."""
    compute = prompt.active_parameters_b * read("compute", at="rig")
    if not prompt.upload_gb or not prompt.link_gb_s:
        return math.log(resident_ms(prompt.tokens, compute) / prompt.tokens)
    reached = prompt.link_gb_s * read("link", at="rig")
    ms = uploaded_ms(prompt.tokens, prompt.ubatch, prompt.upload_gb, reached, compute)
    return math.log(ms / prompt.tokens)
