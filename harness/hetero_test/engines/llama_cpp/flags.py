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

_MAIN_PLACEMENT: Final = frozenset(
    {
        *("-dev", "--device"),
        *("-ngl", "--gpu-layers", "--n-gpu-layers"),
        *("-sm", "--split-mode"),
        *("-ts", "--tensor-split"),
        *("-mg", "--main-gpu"),
        *("-ot", "--override-tensor"),
        *("-cmoe", "--cpu-moe"),
        *("-ncmoe", "--n-cpu-moe"),
        *("-ncffn", "--n-cpu-ffn"),
        *("-kvo", "--kv-offload", "-nkvo", "--no-kv-offload"),
    }
)
_DRAFT_PLACEMENT: Final = frozenset(
    {
        *("-devd", "--device-draft", "--spec-draft-device"),
        *("-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft", "--spec-draft-ngl"),
        *("-otd", "--override-tensor-draft", "--spec-draft-override-tensor"),
        *("-cmoed", "--cpu-moe-draft", "--spec-draft-cpu-moe"),
        *("-ncmoed", "--n-cpu-moe-draft", "--spec-draft-n-cpu-moe", "--spec-draft-ncmoe"),
    }
)
_SWITCHES: Final = frozenset(
    {
        *("-cmoe", "--cpu-moe", "-cmoed", "--cpu-moe-draft", "--spec-draft-cpu-moe"),
        *("-kvo", "--kv-offload", "-nkvo", "--no-kv-offload"),
    }
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
    """The user's flags with a variant's placement in the stead of their own.

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
