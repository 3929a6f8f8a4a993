"""The command line, read as the engine reads it: the last occurrence of an option wins."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hetero_test.bundled.failures import EngineStopError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

UNSET = -1
HELPERS = (1, 2, 3)  # devices that --expert-cache-deviceN can name


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The options of one run; a cache size of None is ``auto``."""

    pack: str = "pack/full"
    native: str | None = None
    ple_gguf: str | None = None
    no_ple: bool = False
    tokens: str | None = None
    tokens_file: str | None = None
    max_new: int = 16
    max_context: int = 4096
    spec: int = 0
    mtp: str | None = None
    mtp_max_t: int = 0
    spec_min_p: float = 0.0
    suffix_draft: int = 3
    expert_profile: str | None = None
    expert_cache: int | None = 0
    helper_caches: tuple[int, int, int] = (0, 0, 0)
    vram_reserve_mib: int = 700
    prefill: str = "0"
    kv: str = "fp16"
    main_device: int = UNSET
    draft_device: int = UNSET
    auto_roles: bool = False
    draft_prefill_parallel: bool = False
    draft_chain_batch: bool = False
    layer_split: str | None = None
    split_device: str | None = None
    greedy: bool = True
    seed: int = 0
    temperature: float = 1.0
    top_k: int = 20
    top_p: float = 0.95
    adapt_every: int = 4
    adapt_swaps: int = 96
    pcie_frac: float | None = None
    stop_eos: bool = False
    eos_ids: tuple[int, ...] = ()

    @property
    def window(self) -> int:
        """The largest verify window: lookup may go two tokens beyond the drafter."""
        raised = self.suffix_draft > 0 and self.mtp_max_t == 0 and self.spec >= 2
        return min(self.spec + 2, 8) if raised else self.spec

    @property
    def draft_window(self) -> int:
        """The largest window that the drafter fills."""
        return min(self.mtp_max_t, self.window) if self.mtp_max_t > 0 else self.spec

    @property
    def has_drafter(self) -> bool:
        """Whether a drafter is asked for and has windows to fill."""
        return self.mtp is not None and self.spec >= 2

    @property
    def has_roles(self) -> bool:
        """Whether a role names a device."""
        return self.main_device != UNSET or self.draft_device != UNSET


def to_int(text: str) -> int:
    """C's ``atoi``: the number that the text starts with, 0 if none."""
    match = re.match(r"\s*([+-]?\d+)", text)
    return int(match[1]) if match else 0


def to_float(text: str) -> float:
    """C's ``atof`` for plain decimals: the number that the text starts with, 0 if none."""
    match = re.match(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", text)
    return float(match[1]) if match else 0.0


def _size(text: str) -> int | None:
    return None if text == "auto" else to_int(text)


_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--pack": ("pack", str),
    "--native": ("native", str),
    "--ple-gguf": ("ple_gguf", str),
    "--tokens": ("tokens", str),
    "--tokens-file": ("tokens_file", str),
    "--max-new": ("max_new", to_int),
    "--max-context": ("max_context", to_int),
    "--spec": ("spec", to_int),
    "--mtp": ("mtp", str),
    "--mtp-max-t": ("mtp_max_t", to_int),
    "--spec-min-p": ("spec_min_p", to_float),
    "--suffix-draft": ("suffix_draft", to_int),
    "--expert-profile": ("expert_profile", str),
    "--expert-cache": ("expert_cache", _size),
    "--vram-reserve-mib": ("vram_reserve_mib", to_int),
    "--prefill": ("prefill", str),
    "--kv": ("kv", str),
    "--main-device": ("main_device", to_int),
    "--draft-device": ("draft_device", to_int),
    "--layer-split": ("layer_split", str),
    "--split-device": ("split_device", str),
    "--temperature": ("temperature", to_float),
    "--top-k": ("top_k", to_int),
    "--top-p": ("top_p", to_float),
    "--adapt-every": ("adapt_every", to_int),
    "--adapt-swaps": ("adapt_swaps", to_int),
    "--pcie-frac": ("pcie_frac", to_float),
}
_SWITCHES = {
    "--no-ple": "no_ple",
    "--auto-roles": "auto_roles",
    "--draft-prefill-parallel": "draft_prefill_parallel",
    "--draft-chain-batch": "draft_chain_batch",
    "--stop-eos": "stop_eos",
    "--greedy": "greedy",
}

USAGE = """usage: strata --pack DIR (--tokens IDS | --tokens-file FILE) [options]
The bundled reference engine of hetero-test: a real, tiny model on an emulated rig.

model        --pack DIR            pack directory (default pack/full)
             --native SHARD1       native paths; needed by a native pack and by --mtp
             --ple-gguf FILE       per-layer embeddings; found beside --native's shard
             --no-ple              run without them
             --mtp DIR             drafter directory
             --expert-profile FILE ranked experts
input        --tokens "1,2,3"      prompt ids, by commas or blanks
             --tokens-file FILE    the same in a file
             --max-new N           tokens to make (16)
             --max-context N       positions there is room for (4096)
             --prefill CHUNK       read the prompt in chunks; N, auto, auto:16384, auto:32768
             --kv KIND             fp16, int8, q4_0 or k8v4 (fp16)
speculation  --spec T              verify window, 2 to 8 (0: none)
             --mtp-max-t M         cap of the drafter's windows
             --spec-min-p P        draft while the probability holds (0)
             --suffix-draft N      prompt lookup by N tokens (3; 0: off)
experts      --expert-cache N      slots on the main device; N or auto
             --expert-cache-device1 N, --expert-cache-device2 N, --expert-cache-device3 N
             --vram-reserve-mib N  left free by auto (700)
             --adapt-every N       rounds between adaptive swaps (4; 0: off)
             --adapt-swaps N       swaps at a time (96; 0: off)
             --pcie-frac F         share of missed experts that the device reads itself
devices      --main-device N       where the model is
             --draft-device N      where the drafter is
             --auto-roles          main 0, drafter on the other device with most memory
             --draft-prefill-parallel
             --draft-chain-batch
             --layer-split K --split-device D   not in this mode
sampling     --greedy              the most probable token (default)
             --seed S              sample instead
             --temperature T, --top-k K, --top-p P   1.0, 20, 0.95
             --stop-eos            end at an end-of-sequence token
             --eos-ids IDS         which these are
             --help                this text"""


class HelpRequestedError(Exception):
    """``--help`` was met: the usage goes to stderr, the exit code is 0."""


def parse_flags(argv: Sequence[str]) -> Flags:
    """The options of a command line (without the program's name).

    Raises:
        EngineStopError: an unknown argument, or an option without its value.
        HelpRequestedError: ``--help`` was met first.
    """
    flags = Flags()
    words = iter(argv)
    for word in words:
        if word == "--help":
            raise HelpRequestedError
        if word in _SWITCHES:
            switched: dict[str, Any] = {_SWITCHES[word]: True}
            flags = replace(flags, **switched)
            continue
        if word not in _VALUES and word not in _SPECIAL:
            raise EngineStopError(f"unknown argument: {word}", code=2, usage=True, prefixed=False)
        value = next(words, None)
        if value is None:
            raise EngineStopError(f"{word} needs a value", code=2, prefixed=False)
        if word in _SPECIAL:
            flags = _SPECIAL[word](flags, value)
        else:
            field, read = _VALUES[word]
            flags = replace(flags, **{field: read(value)})
    return flags


def _with_seed(flags: Flags, value: str) -> Flags:
    # Giving a seed turns sampling on; a later --greedy turns it off again.
    return replace(flags, seed=to_int(value), greedy=False)


def _with_eos(flags: Flags, value: str) -> Flags:
    return replace(flags, eos_ids=tuple(to_int(word) for word in re.split(r"[,\s]+", value)))


def _with_helper(device: int) -> Callable[[Flags, str], Flags]:
    def change(flags: Flags, value: str) -> Flags:
        caches = list(flags.helper_caches)
        caches[device - 1] = to_int(value)
        return replace(flags, helper_caches=(caches[0], caches[1], caches[2]))

    return change


_SPECIAL: dict[str, Callable[[Flags, str], Flags]] = {
    "--seed": _with_seed,
    "--eos-ids": _with_eos,
} | {f"--expert-cache-device{device}": _with_helper(device) for device in HELPERS}
