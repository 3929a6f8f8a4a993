"""The time of a prompt: the regimes of `prefill`, with the unknowns filled in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.triage.prefill import resident_ms, uploaded_ms
from harness.triage.rigfile import DeviceClass

if TYPE_CHECKING:
    from harness.triage.beliefs import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Computing:
    """A device that computes a share of a prompt's arithmetic."""

    device: str
    device_class: DeviceClass
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt on a placement: who computes, and what is uploaded meanwhile."""

    tokens: int
    ubatch: int
    active_parameters_b: float
    """Parameters that compute a token, 1e9."""
    computing: tuple[Computing, ...]
    parallel: bool = False
    upload_gb: float = 0.0
    """GB of weights elsewhere, that cross the link once a batch."""
    link_gb_s: float | None = None
    """By generation and width; what a copy reaches of it is an unknown."""
    link_measured: bool = False
    """Whether that is already what a copy reaches."""


def prompt_log_ms(prompt: Prompt, read: Reader) -> float:
    """The logarithm of the milliseconds a token of the prompt takes."""
    each = [
        part.share
        * prompt.active_parameters_b
        * read("compute:" + part.device_class.value, at=part.device)
        for part in prompt.computing
    ]
    compute = max(each) if prompt.parallel else math.fsum(each)
    if not prompt.upload_gb or not prompt.link_gb_s:
        return math.log(resident_ms(prompt.tokens, compute) / prompt.tokens)
    share = read("told:link") if prompt.link_measured else read("link", at="rig")
    reached = prompt.link_gb_s * share
    ms = uploaded_ms(prompt.tokens, prompt.ubatch, prompt.upload_gb, reached, compute)
    return math.log(ms / prompt.tokens)
