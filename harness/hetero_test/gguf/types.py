"""Types of weights in a GGUF file: their names and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hetero_test.errors import UsageError
from hetero_test.gguf.header import GgufError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hetero_test.gguf.header import GgufHeader

FORK_TYPES: Mapping[int, str] = {
    134: "IQ1_BN",
    135: "IQ2_BN",
    137: "IQ2_K",
    138: "IQ3_K",
    139: "IQ4_K",
    140: "IQ5_K",
    141: "IQ6_K",
    144: "IQ4_KS",
    145: "IQ2_KS",
    146: "IQ4_KSS",
    152: "IQ5_KS",
    153: "IQ2_KT",
    154: "IQ3_KT",
    155: "IQ4_KT",
    156: "IQ3_KS",
    157: "IQ2_KL",
    158: "IQ1_KT",
}
"""Names of ik_llama.cpp's own types (its ``ggml.h``); their sizes follow from the file."""


def constants() -> Any:
    """The tables of the library ``gguf``: sizes of types, and names of mixtures.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import gguf.constants
    except ImportError as error:
        raise UsageError(
            "reading a GGUF file needs the package gguf",
            hint="pip install 'hetero-test[llama]', or give --model-facts FILE.toml",
        ) from error
    return gguf.constants


@dataclass(frozen=True, slots=True)
class TensorSize:
    """One tensor: its bytes and the name of its type."""

    elements: int
    size_bytes: int
    quantization: str


def tensor_sizes(header: GgufHeader) -> dict[str, TensorSize]:
    """The size of every tensor of one file, by its name, in the order of the table.

    A type that the library ``gguf`` does not know is as large as the gap to the next tensor.

    Raises:
        GgufError: tensors lie beyond the end of the file, or overlap.
    """
    sizes_of_types = constants().GGML_QUANT_SIZES
    known = {int(kind): (kind.name, *size) for kind, size in sizes_of_types.items()}
    room = max(0, header.file_bytes - header.data_offset)
    by_place = sorted(header.tensors, key=lambda info: info.offset)
    sizes = {}
    for place, info in enumerate(by_place, 1):
        end = by_place[place].offset if place < len(by_place) else room
        name, block, block_bytes = known.get(info.type_id, ("", 1, 0))
        if not name:
            name = FORK_TYPES.get(info.type_id, f"type {info.type_id}")
            size = end - info.offset
        else:
            rows = info.elements // info.shape[0]
            size = rows * -(-info.shape[0] // block) * block_bytes
        if info.offset > room or info.offset + size > room:
            missing = info.offset + size - room
            raise GgufError(
                f"{header.path}: the file ends {missing} bytes before the end of "
                f"{info.name!r:.80}: it was cut short",
                hint="fetch it again, or describe the model with --model-facts FILE.toml",
            )
        if size <= 0 or info.offset + size > end:
            raise GgufError(f"{header.path}: the tensor {info.name!r:.80} overlaps the next one")
        sizes[info.name] = TensorSize(info.elements, size, name)
    return {info.name: sizes[info.name] for info in header.tensors}
