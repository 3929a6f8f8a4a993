"""The time of a prompt: the regimes of `prefill`, with the unknowns filled in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.triage.prefill import in_place_ms, resident_ms, uploaded_ms
from harness.triage.rigfile import DeviceClass
from harness.triage.terms import parallel_ms, read_ms

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
    slowest: str | None = None
    """The device that the others of a parallel split are taken to wait for; None: the slower."""
    upload_gb: float = 0.0
    """GB of weights elsewhere, that cross the link once a batch."""
    link_gb_s: float | None = None
    """By generation and width; what a copy reaches of it is an unknown."""
    link_measured: bool = False
    """Whether that is already what a copy reaches."""


def prompt_log_ms(prompt: Prompt, read: Reader) -> float:
    """The logarithm of the milliseconds a token of the prompt takes."""
    compute = compute_ms(prompt, read)
    upload = upload_ms(prompt, read)
    if not upload:
        return math.log(resident_ms(prompt.tokens, compute) / prompt.tokens)
    ms = uploaded_ms(prompt.tokens, prompt.ubatch, upload, compute)
    return math.log(ms / prompt.tokens)


def compute_ms(prompt: Prompt, read: Reader) -> float:
    """Arithmetic, ms a token of the prompt.

    Billions of active parameters × ms a billion takes on the device; devices that split every
    layer wait for the slowest, those that have layers or experts of their own take turns.
    """
    parts = [
        (
            part.share,
            prompt.active_parameters_b * read("compute:" + part.device_class.value, at=part.device),
        )
        for part in prompt.computing
    ]
    if prompt.parallel:
        waited_for = [
            share * ms
            for part, (share, ms) in zip(prompt.computing, parts, strict=True)
            if prompt.slowest in (None, part.device)
        ]
        return parallel_ms(waited_for)
    return in_place_ms(1, parts)


def upload_ms(prompt: Prompt, read: Reader) -> float:
    """What crosses the link for a batch, ms: GB / (share reached × GB/s) × 1e3; 0.0: nothing."""
    if not prompt.upload_gb or not prompt.link_gb_s:
        return 0.0
    share = read("told:link") if prompt.link_measured else read("link", at="rig")
    return read_ms(prompt.upload_gb, prompt.link_gb_s * share)
