"""From the command line to a run: the prompt, and what is refused before anything is loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.bundled.failures import EngineStopError, failed, refused
from hetero_test.bundled.faults import ActiveFaults, FaultEffect
from hetero_test.bundled.flags import HELPERS, Flags
from hetero_test.bundled.kv import KvFormat
from hetero_test.bundled.log import EngineLog
from hetero_test.bundled.pack import Layout, Pack, read_pack
from hetero_test.bundled.rig import DeviceRoles, EmulatedRig, read_rig, resolve_roles
from hetero_test.bundled.sampler import Pick, sampler_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PREFILL_WORDS = ("auto", "auto:16384", "auto:32768")
_WIDEST_WINDOW = 8
_LARGEST = 2**31 - 1
_LEFT_ON_SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run that nothing refuses any more.

    Args:
        rig: as the process sees it, behind the device mask.
        sampling: what the log calls the token rule ``pick``.
    """

    flags: Flags
    prompt: tuple[int, ...]
    pack: Pack
    rig: EmulatedRig
    roles: DeviceRoles
    pick: Pick
    sampling: str
    faults: ActiveFaults
    log: EngineLog

    @property
    def capacity(self) -> int:
        """Positions that can be reached, the last window's rejected drafts included."""
        return len(self.prompt) + self.flags.max_new + 2 * _WIDEST_WINDOW


def checked_job(
    flags: Flags, faults: ActiveFaults, rig_path: Path, environ: Mapping[str, str], log: EngineLog
) -> Job:
    """Everything that is known before anything is loaded.

    Raises:
        EngineStopError: the first refusal, in the order in which the engine looks.
    """
    if FaultEffect.SAMPLING in faults:
        flags = replace(flags, greedy=False, seed=_LEFT_ON_SEED)
    prompt = read_prompt(flags)
    check_flags(flags, prompt)
    pack = read_pack(Path(flags.pack))
    check_pack(flags, pack, prompt)
    rig = read_rig(rig_path).visible(environ)
    check_rig(flags, rig)
    roles = resolve_roles(flags, rig)
    if not rig.devices:
        raise failed("no CUDA-capable device is detected")
    pick, sampling = sampler_of(flags)
    return Job(
        flags=flags,
        prompt=prompt,
        pack=pack,
        rig=rig,
        roles=roles,
        pick=pick,
        sampling=sampling,
        faults=faults,
        log=log,
    )


def read_prompt(flags: Flags) -> tuple[int, ...]:
    """The ids of the run; they may lie beyond the vocabulary, as in the real engine.

    Raises:
        EngineStopError: there is no input, there are two, or the list is unreadable or malformed.
    """
    if flags.tokens is None and flags.tokens_file is None:
        raise EngineStopError(
            "--tokens is required (this build has no tokenizer; pass token ids with --tokens "
            "or --tokens-file)",
            code=2,
            usage=True,
        )
    if flags.tokens is not None and flags.tokens_file is not None:
        raise refused("supply one token input only")
    if flags.tokens is not None:
        return _ids(flags.tokens, "token list")
    path = Path(flags.tokens_file or "")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise refused(f"cannot open token file {path}") from error
    return _ids(text, "token file")


def _ids(text: str, source: str) -> tuple[int, ...]:
    words = [word for word in re.split(r"[,\s]+", text) if word]
    if not words:
        raise refused(f"malformed {source}: token list was empty")
    ids = []
    for word in words:
        if not re.fullmatch(r"[0-9]{1,10}", word) or int(word) > _LARGEST:
            raise refused(
                f"malformed {source}: invalid token id: expected an integer in [0, {_LARGEST}]"
            )
        ids.append(int(word))
    return tuple(ids)


def check_flags(flags: Flags, prompt: Sequence[int]) -> None:
    """Refuse flags that are wrong with any pack and on any rig.

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
    """Refuse a native pack without the flags that it needs.

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


def check_rig(flags: Flags, rig: EmulatedRig) -> None:
    """Refuse a layer split, which this mode does not have, and helper devices that do not exist.

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
    """How many tokens of the prompt are read at a time; 0 means one by one.

    An automatic chunk is cut to the prompt, rounded up to 256.
    """
    digits = flags.prefill.removeprefix("-")
    if flags.prefill not in _PREFILL_WORDS:
        size = int(digits) if digits.isascii() and digits.isdigit() else 0
        return -size if flags.prefill.startswith("-") else size
    limit = int(flags.prefill.partition(":")[2] or 8192)
    return min(limit, -(-prompt_tokens // 256) * 256)


def ple_beside(shard: str) -> Path:
    """The file of per-layer embeddings that belongs to a shard."""
    return Path(shard).with_name("ple.gguf")
