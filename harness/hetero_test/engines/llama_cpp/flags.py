"""The flags of llama.cpp: which name a model, which place something, and how to replace them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MODEL: Final = ("-m", "--model")
DRAFT_MODEL: Final = ("-md", "--model-draft", "--spec-draft-model")
DRAFT_SOURCE: Final = ("-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf")
SPECULATION: Final = ("--spec-type",)
RPC: Final = ("--rpc",)

DEVICES: Final = ("-dev", "--device")
GPU_LAYERS: Final = ("-ngl", "--gpu-layers", "--n-gpu-layers")
SPLIT_MODE: Final = ("-sm", "--split-mode")
SHARES: Final = ("-ts", "--tensor-split")
MAIN_GPU: Final = ("-mg", "--main-gpu")
OVERRIDES: Final = ("-ot", "--override-tensor")
CPU_EXPERTS: Final = ("-cmoe", "--cpu-moe")
CPU_EXPERT_LAYERS: Final = ("-ncmoe", "--n-cpu-moe")
CPU_FEED_FORWARD_LAYERS: Final = ("-ncffn", "--n-cpu-ffn")
KV_OFFLOAD: Final = ("-kvo", "--kv-offload", "-nkvo", "--no-kv-offload")
DRAFT_DEVICES: Final = ("-devd", "--device-draft", "--spec-draft-device")
DRAFT_LENGTH: Final = ("--draft", "--draft-max", "--spec-draft-n-max")

ELSEWHERE: Final = frozenset(
    {*OVERRIDES, *CPU_EXPERTS, *CPU_EXPERT_LAYERS, *CPU_FEED_FORWARD_LAYERS}
)
"""Flags that put parts of layers elsewhere than on the layers' devices."""
_MAIN_PLACEMENT: Final = frozenset(
    {*DEVICES, *GPU_LAYERS, *SPLIT_MODE, *SHARES, *MAIN_GPU, *ELSEWHERE, *KV_OFFLOAD}
)
_DRAFT_PLACEMENT: Final = frozenset(
    {
        *DRAFT_DEVICES,
        *("-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft", "--spec-draft-ngl"),
        *("-otd", "--override-tensor-draft", "--spec-draft-override-tensor"),
        *("-cmoed", "--cpu-moe-draft", "--spec-draft-cpu-moe"),
        *("-ncmoed", "--n-cpu-moe-draft", "--spec-draft-n-cpu-moe", "--spec-draft-ncmoe"),
    }
)
_SWITCHES: Final = frozenset(
    {*CPU_EXPERTS, "-cmoed", "--cpu-moe-draft", "--spec-draft-cpu-moe", *KV_OFFLOAD}
)
"""Placement flags that take no value."""


def value(flags: Sequence[str], names: Collection[str]) -> str | None:
    """The value of a flag under any of its names; the last one rules, as in the engine."""
    found = [place for place, flag in enumerate(flags[:-1]) if flag in names]
    return flags[found[-1] + 1] if found else None


def has_drafter(flags: Sequence[str]) -> bool:
    """Whether a draft model is given, or heads of the model itself are to draft."""
    spec_type = value(flags, SPECULATION) or ""
    return any(flag in (*DRAFT_MODEL, *DRAFT_SOURCE) for flag in flags) or (
        # llama.cpp: draft-simple, draft-mtp, …; ik_llama.cpp: mtp:n_max=1
        "draft-" in spec_type or spec_type.startswith("mtp")
    )


def combine(flags: Sequence[str], variant_flags: Sequence[str]) -> tuple[str, ...]:
    """The user's flags with a variant's placement in place of the user's.

    A variant that places the main model replaces all that the user said of its placement,
    since ``-ot`` adds up and ``-ts`` would be applied to other devices; likewise for the draft
    model. All other flags are put behind the user's, and the last one rules.
    """
    dropped: set[str] = set()
    for group in (_MAIN_PLACEMENT, _DRAFT_PLACEMENT):
        if any(flag in group for flag in variant_flags):
            dropped |= group
    return (*_without(flags, dropped), *variant_flags)


def _without(flags: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    kept: list[str] = []
    skip = False
    for flag in flags:
        if skip:
            skip = False
        elif flag in names:
            skip = flag not in _SWITCHES
        else:
            kept.append(flag)
    return tuple(kept)
