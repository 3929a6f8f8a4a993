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
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        ValueError: an upload takes less than no time, or a batch has no token.
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
    """Rows of a batch from which uploading takes no longer than is wanted; None: never.

    ⌈upload / (wanted − computing)⌉, both in ms a token.
    """
    left = wanted_ms_per_token - ms_per_token
    return math.ceil(upload_ms / left) if left > 0 else None
