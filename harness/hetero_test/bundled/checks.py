"""What the engine refuses before it loads anything; in the order in which it looks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.bundled.failures import refused
from hetero_test.bundled.flags import HELPERS
from hetero_test.bundled.kv import KvFormat
from hetero_test.bundled.pack import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.bundled.flags import Flags
    from hetero_test.bundled.pack import Pack
    from hetero_test.bundled.rig import Rig

_PREFILL_WORDS = ("auto", "auto:16384", "auto:32768")


def check_flags(flags: Flags, prompt: Sequence[int]) -> None:
    """Refuse what is wrong in itself, whatever the pack and the rig.

    Raises:
        EngineStopError: exit code 2.
    """
    if flags.ple_gguf is None and not flags.no_ple:
        if flags.native is None:
            raise refused(
                "--ple-gguf is required; --no-ple explicitly enables a diagnostic ablation"
            )
        if not ple_beside(flags.native).is_file():
            raise refused(
                "--native requires --ple-gguf (no per-layer embeddings lie beside the shard)"
            )
    if flags.max_new < 1 or flags.max_context < 1:
        raise refused("positive --max-new and --max-context must fit the prompt and generation")
    if len(prompt) + flags.max_new > flags.max_context:
        raise refused(
            f"--max-context {flags.max_context} cannot hold {len(prompt)} prompt + "
            f"{flags.max_new} new tokens"
        )
    if flags.kv not in {kept.flag for kept in KvFormat}:
        raise refused("--kv must be fp16, int8, q4_0 or k8v4")
    in_range = (
        (flags.spec == 0 or 2 <= flags.spec <= 8)
        and flags.top_k >= 0
        and 0 < flags.top_p <= 1
        and 0 <= flags.spec_min_p <= 1
        and 0 <= flags.mtp_max_t <= 8
        and flags.suffix_draft >= 0
        and (flags.expert_cache is None or flags.expert_cache >= 0)
        and min(flags.helper_caches) >= 0
        and min(flags.vram_reserve_mib, flags.adapt_every, flags.adapt_swaps) >= 0
        and (flags.pcie_frac is None or 0 <= flags.pcie_frac <= 1)
    )
    if not in_range or (flags.prefill not in _PREFILL_WORDS and chunk_size(flags, 1) < 0):
        raise refused("invalid sampling or resource parameter")
    for device in HELPERS[1:]:
        if flags.helper_caches[device - 1] and not flags.helper_caches[device - 2]:
            raise refused(f"--expert-cache-device{device} needs --expert-cache-device{device - 1}")


def check_pack(flags: Flags, pack: Pack, prompt: Sequence[int]) -> None:
    """Refuse a native pack without the flags that it cannot do without.

    Raises:
        EngineStopError: exit code 2.
    """
    complete = (
        flags.native is not None
        and flags.spec >= 2
        and (len(prompt) == 1 or chunk_size(flags, len(prompt)) > 0)
    )
    if pack.layout is Layout.NATIVE and not complete:
        raise refused(
            f"{flags.pack} is a native (IQ) pack: it needs --native SHARD1, --spec T (T >= 2) "
            "and --prefill CHUNK"
        )


def check_rig(flags: Flags, rig: Rig) -> None:
    """Refuse a layer split, which this mode does not have, and helpers that are not there.

    Raises:
        EngineStopError: exit code 2.
    """
    alone = flags.layer_split == "auto" and len(rig.devices) == 1
    if flags.layer_split is not None and not alone:
        raise refused(
            "--layer-split K[,K2..]|auto needs --serve, rising K from 2, and one distinct GPU per "
            "K in --split-device (1..N; or 0 with one K: the same GPU)"
        )
    wanted = max((device for device in HELPERS if flags.helper_caches[device - 1]), default=0)
    visible = len(rig.devices)
    if wanted and wanted >= visible:
        raise refused(
            f"--expert-cache-device{wanted}: out of range "
            f"({visible} visible GPU{'' if visible == 1 else 's'})"
        )


def chunk_size(flags: Flags, prompt_tokens: int) -> int:
    """Tokens of the prompt read at a time; 0 is one by one.

    An automatic chunk is cut to the prompt, rounded up to 256.
    """
    digits = flags.prefill.removeprefix("-")
    if flags.prefill not in _PREFILL_WORDS:
        size = int(digits) if digits.isascii() and digits.isdigit() else 0
        return -size if flags.prefill.startswith("-") else size
    limit = int(flags.prefill.partition(":")[2] or 8192)
    return min(limit, -(-prompt_tokens // 256) * 256)


def ple_beside(shard: str) -> Path:
    """Where the per-layer embeddings are looked for when only a shard is named."""
    return Path(shard).with_name("ple.gguf")
