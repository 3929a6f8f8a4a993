"""Reading a prompt, in its three regimes.

A prompt is computed in batches of `ubatch` tokens and reads every weight once a batch, so
what decode gains from a split says nothing about it. Where the weights of a slow pool are:

- *computed in place*: the slow pool's arithmetic decides;
- *uploaded a batch at a time* to the fast device (llama.cpp's op-offload): bytes over the link
  once a batch, plus the fast device's arithmetic;
- *resident* on the device that computes: arithmetic alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from hetero_test.rig.facts import DeviceClass
from hetero_test.triage.cost.terms import parallel_ms, read_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.triage.cost.priors import Reader


class Regime(StrEnum):
    """Who computes the weights that do not live on the fast device."""

    RESIDENT = "resident"
    UPLOADED = "uploaded per batch"
    IN_PLACE = "computed in place"


class Runtime(StrEnum):
    """Whose rules decide when uploading starts."""

    LLAMA_CPP = "llama.cpp"
    IK_LLAMA = "ik_llama.cpp"


def resident_ms(prompt_tokens: int, ms_per_token: float) -> float:
    """Milliseconds for a prompt where every weight is resident: tokens × ms a token."""
    return prompt_tokens * ms_per_token


def uploaded_ms(prompt_tokens: int, ubatch: int, upload_ms: float, ms_per_token: float) -> float:
    """Milliseconds where weights cross the link once a batch, in `upload_ms`.

    ⌈tokens / ubatch⌉ × upload + tokens × ms a token. A measured case: 17.5 s and 1.75 ms a
    token say 53.0 tok/s at 1024 tokens where 52.75 were measured
    (https://github.com/ikawrakow/ik_llama.cpp/pull/520).

    Args:
        prompt_tokens: length of the prompt.
        ubatch: tokens a batch (``-ub``).
        upload_ms: what crosses the link for one batch, ms.
        ms_per_token: arithmetic of one token, ms.

    Raises:
        ValueError: the time of an upload is negative, or a batch has no token.
    """
    if upload_ms < 0 or ubatch < 1:
        raise ValueError(f"an upload of {upload_ms} ms and a batch of {ubatch} cannot be")
    return math.ceil(prompt_tokens / ubatch) * upload_ms + prompt_tokens * ms_per_token


def in_place_ms(prompt_tokens: int, parts: Sequence[tuple[float, float]]) -> float:
    """Milliseconds where pools compute their shares of the weights one after the other.

    tokens × Σ share × ms a token, over (share, ms a token of the pool doing all of it).

    Raises:
        ValueError: a share is not between 0 and 1.
    """
    for share, _ in parts:
        if not 0 <= share <= 1:
            raise ValueError(f"a share of {share} cannot be")
    return prompt_tokens * math.fsum(share * ms for share, ms in parts)


def upload_starts_at(runtime: Runtime, experts: int, used: int) -> int:
    """Rows of a batch from which a runtime uploads experts rather than computing in place.

    32 in llama.cpp, 32 × experts / used in ik_llama.cpp (its pull request 520); both as of
    June 2025.
    """
    if runtime is Runtime.IK_LLAMA and experts and used:
        return math.ceil(32 * experts / used)
    return 32


def break_even_ubatch(
    upload_ms: float, wanted_ms_per_token: float, ms_per_token: float
) -> int | None:
    """Rows of a batch from which uploading takes at most the wanted time; None: never.

    ⌈upload / (wanted − computing)⌉, both in ms a token.
    """
    left = wanted_ms_per_token - ms_per_token
    return math.ceil(upload_ms / left) if left > 0 else None


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
    """The device that the others of a parallel split wait for; None: the slowest."""
    upload_gb: float = 0.0
    """GB of weights elsewhere; they cross the link once a batch."""
    link_gb_s: float | None = None
    """By generation and width; the share that a copy reaches is an unknown."""
    link_measured: bool = False
    """Whether `link_gb_s` is already what a copy reaches."""


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
