"""What is known of a GGUF model before anything is launched: its facts, and whether it can fit.

A path comes in, and :func:`model_facts` gives what the file's header tells; flags and devices
come in, and :func:`cannot_fit` gives a reason. Only what is certain is said there: weights alone,
without KV and compute buffers, against the memory of all devices, where the flags put every layer
on named devices and nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp import flags as llama_flags
from hetero_test.engines.llama_cpp.residency import INPUT
from hetero_test.errors import UsageError
from hetero_test.gguf.header import LongArray, TextArray, read_header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.gguf.header import GgufHeader
    from hetero_test.values.run import Device


_PARTABLE = 2
_OUTPUT_AND_ONE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFileFacts:
    """Facts of one model file; None where its header does not tell.

    Attributes:
        vocabulary: number of tokens.
        layers: number of blocks, heads that only draft included.
        experts: number of experts a layer; 0 for a dense model.
        tensor_bytes: size by tensor; None for one part of several.
    """

    vocabulary: int | None
    layers: int | None
    experts: int | None
    tensor_bytes: Mapping[str, int] | None = None


def model_facts(path: str) -> ModelFileFacts:
    """Read the header of a model file, of the first part where it is split.

    Raises:
        UsageError: there is no such file, or it is no GGUF file that can be read.
    """
    file = Path(path)
    try:
        stat = file.stat()
    except OSError as error:
        raise UsageError(
            f"the model {path} cannot be read: {error.strerror}", hint="name a GGUF file with -m"
        ) from error
    return _facts(file, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=8)
def _facts(path: Path, _size: int, _mtime_ns: int) -> ModelFileFacts:
    header = read_header(path)
    arch = header.fields.get("general.architecture")
    tokens = header.fields.get("tokenizer.ggml.tokens")
    counted = tokens.count if isinstance(tokens, TextArray | LongArray) else None
    return ModelFileFacts(
        vocabulary=counted or _number(header, f"{arch}.vocab_size"),
        layers=_number(header, f"{arch}.block_count"),
        experts=_number(header, f"{arch}.expert_count") or 0,
        tensor_bytes=None if (_number(header, "split.count") or 1) > 1 else _sizes(header),
    )


def _sizes(header: GgufHeader) -> Mapping[str, int]:
    """Each tensor reaches to the next one, but for a few bytes of alignment."""
    by_place = sorted(header.tensors, key=lambda info: info.offset)
    ends = [info.offset for info in by_place[1:]]
    if by_place:
        ends.append(header.file_bytes - header.data_offset)
    return MappingProxyType(
        {info.name: end - info.offset for info, end in zip(by_place, ends, strict=True)}
    )


def _number(header: GgufHeader, key: str) -> int | None:
    found = header.fields.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def layer_counts(layers: int | None) -> dict[str, str]:
    """Numbers of layers for flags, such that a repeating layer is on each side.

    llama.cpp counts the output as a layer behind the others: ``-ngl 1`` moves it alone, and the
    last share of ``-ts`` has it.

    Args:
        layers: of the model, without the output; None where no file tells.

    Returns:
        ``all_layers``, and ``half_layers`` where there are two to be parted; ``three_to_one``, the
        shares of two devices.
    """
    if layers is None or layers < _PARTABLE:
        return {"three_to_one": "3,1"}
    every = layers + 1
    last = max(_OUTPUT_AND_ONE, round(every / 4))
    return {
        "all_layers": str(every),
        "half_layers": str(layers // 2 + 1),
        "three_to_one": f"{every - last},{last}",
    }


def cannot_fit(devices: Sequence[Device], flags: Sequence[str]) -> str | None:
    """Why a placement cannot fit, in words; None where it may.

    Args:
        devices: of the rig.
        flags: the user's and the variant's.
    """
    path = llama_flags.value(flags, llama_flags.MODEL)
    named = (llama_flags.value(flags, llama_flags.DEVICES) or "").split(",")
    used = [device for device in devices if device.id in named]
    if path is None or len(used) < len(named) or llama_flags.ELSEWHERE & set(flags):
        return None
    facts = model_facts(path)
    layers = llama_flags.value(flags, llama_flags.GPU_LAYERS) or ""
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
