"""What the header of a GGUF file tells before anything is launched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.triage.gguf_header import LongArray, TextArray, read_header

if TYPE_CHECKING:
    from harness.triage.gguf_header import GgufHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
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


def model_facts(path: str) -> ModelFacts:
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
def _facts(path: Path, _size: int, _mtime_ns: int) -> ModelFacts:
    header = read_header(path)
    arch = header.fields.get("general.architecture")
    tokens = header.fields.get("tokenizer.ggml.tokens")
    counted = tokens.count if isinstance(tokens, TextArray | LongArray) else None
    return ModelFacts(
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
