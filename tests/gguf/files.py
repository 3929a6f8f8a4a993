"""Writes GGUF files with the metadata and the tensor table of real models, and no data.

The data section is a hole of the right length, so a model of a terabyte takes some kilobytes
on disk. Keys and tensor names are written by the library ``gguf``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

if TYPE_CHECKING:
    from pathlib import Path

Shape = tuple[int, ...]
"""Elements by dimension, fastest first, as GGUF has them."""


@dataclass(frozen=True)
class Model:
    """A model to write: keys (without prefix where they belong to the architecture), tensors."""

    arch: str
    keys: Mapping[str, Any]
    tensors: Mapping[str, tuple[Shape, str]]
    plain_keys: Mapping[str, Any] = field(default_factory=dict)
    prefix: str | None = None
    """Prefix of the keys, where it is not the architecture."""

    def with_keys(self, **changes: Any) -> Model:
        """Keys changed; a double underscore stands for a dot, None leaves the key out."""
        named = {key.replace("__", "."): value for key, value in changes.items()}
        keys = {k: v for k, v in {**self.keys, **named}.items() if v is not None}
        return replace(self, keys=keys)

    def without(self, *names: str) -> Model:
        """Tensors left out."""
        kept = {name: spec for name, spec in self.tensors.items() if name not in names}
        return replace(self, tensors=kept)


def size_bytes(shape: Shape, kind: str) -> int:
    """Bytes of a tensor."""
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    return math.prod(shape) // block * size


def write(path: Path, model: Model) -> Path:
    """Write the model as one file."""
    prefix = model.prefix or model.arch
    writer = gguf.GGUFWriter(path, model.arch)
    for key, value in model.keys.items():
        _add(writer, f"{prefix}.{key}", value)
    for key, value in model.plain_keys.items():
        _add(writer, key, value)
    for name, (shape, kind) in model.tensors.items():
        writer.add_tensor_info(
            name,
            # The writer wants the shape in bytes, slowest first, where blocks are involved.
            _byte_shape(tuple(reversed(shape)), kind),
            np.dtype(np.uint8),
            size_bytes(shape, kind),
            raw_dtype=GGMLQuantizationType[kind],
        )
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    pad = gguf.GGUFWriter.ggml_pad
    length = pad(path.stat().st_size, 32)
    length += sum(pad(size_bytes(*spec), 32) for spec in model.tensors.values())
    with path.open("r+b") as stream:
        stream.truncate(length)
    return path


def write_split(folder: Path, stem: str, model: Model, parts: Sequence[int]) -> list[Path]:
    """Write the model as shards that hold so many tensors each; the keys are in the first."""
    assert sum(parts) == len(model.tensors)
    paths = []
    rest = list(model.tensors.items())
    for number, count in enumerate(parts):
        split = {"split.no": np.uint16(number), "split.count": np.uint16(len(parts))}
        shard = replace(
            model,
            keys=model.keys if number == 0 else {},
            plain_keys={**(model.plain_keys if number == 0 else {}), **split},
            tensors=dict(rest[:count]),
        )
        rest = rest[count:]
        path = folder / f"{stem}-{number + 1:05d}-of-{len(parts):05d}.gguf"
        paths.append(write(path, shard))
    return paths


def _byte_shape(shape: Shape, kind: str) -> Shape:
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    return (*shape[:-1], shape[-1] // block * size)


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    add: Mapping[type, Callable[[str, Any], None]] = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        np.uint16: writer.add_uint16,
        list: writer.add_array,
    }
    add[type(value)](key, value)
