"""Whether a placement can fit at all: weights against memory, before anything is launched.

Only what is certain is said: weights alone, without KV and compute buffers, against all of the
devices' memory, where the flags put every layer on named devices and nothing elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.engines import llama_flags
from harness.engines.llama_model_file import model_facts
from harness.engines.llama_residency import INPUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model import Device

_DEVICES: Final = ("-dev", "--device")
_LAYERS: Final = ("-ngl", "--gpu-layers", "--n-gpu-layers")
_ELSEWHERE: Final = frozenset(
    {
        *("-ot", "--override-tensor", "-cmoe", "--cpu-moe", "-ncmoe", "--n-cpu-moe"),
        *("-ncffn", "--n-cpu-ffn"),
    }
)


def cannot_fit(devices: Sequence[Device], flags: Sequence[str]) -> str | None:
    """Why a placement cannot fit, in words; None where it may.

    Args:
        devices: of the rig.
        flags: the user's and the variant's.
    """
    path = llama_flags.value(flags, llama_flags.MODEL)
    named = (llama_flags.value(flags, _DEVICES) or "").split(",")
    used = [device for device in devices if device.id in named]
    if path is None or len(used) < len(named) or _ELSEWHERE & set(flags):
        return None
    facts = model_facts(path)
    layers = llama_flags.value(flags, _LAYERS) or ""
    every_layer = layers == "all" or (
        layers.isdecimal() and facts.layers is not None and int(layers) > facts.layers
    )
    room = [device.memory_bytes for device in used if device.memory_bytes is not None]
    if not every_layer or facts.tensor_bytes is None or len(room) < len(used):
        return None
    # The input embedding stays with the CPU; without an output matrix it is copied as one.
    has_output = any(name.startswith("output.") for name in facts.tensor_bytes)
    need = sum(
        size
        for name, size in facts.tensor_bytes.items()
        if not (has_output and name.startswith(INPUT))
    )
    if need <= sum(room):
        return None
    where = " and ".join(device.id for device in used)
    have = "has" if len(used) == 1 else "have"
    return f"{_size(need)} of weights, and {where} {have} {_size(sum(room))}"


def _size(size_bytes: int) -> str:
    if size_bytes < 2**30:
        return f"{size_bytes / 2**20:.3g} MiB"
    return f"{size_bytes / 2**30:.4g} GiB"
