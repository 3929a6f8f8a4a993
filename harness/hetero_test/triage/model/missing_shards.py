"""Bytes of tensors that lie in missing shards.

First from the other layers: a tensor is taken to be as large as in a layer of the same make. What
no layer shows is derived from the shape in the metadata, in the quantization that
``general.file_type`` names. Both are conclusions, and `Completeness.DERIVED` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.gguf.types import TensorSize, constants
from hetero_test.triage.model.facts import LayerFacts, LayerKind

if TYPE_CHECKING:
    from hetero_test.gguf.metadata import Metadata

FILE_TYPE_STAND_INS: Mapping[str, str] = {"IQ3_M": "IQ3_S", "IQ2_M": "IQ2_S", "IQ3_XS": "IQ3_S"}
"""For mixtures that are not named after a type: the type of most of their weights."""

ALWAYS_TIED = frozenset(
    {"cohere2", "command-r", "gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "gemma-embedding"}
)
"""Architectures without an output tensor of their own. Of all others an unseen
output tensor is taken to exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Tensors by block (None: of no block) and name within it."""

    tensors: Mapping[int | None, Mapping[str, TensorSize]]
    underived: tuple[str, ...] = ()
    """Parts of the model whose size could not be derived."""


def fill(metadata: Metadata, layers: tuple[LayerFacts, ...], seen: Blocks) -> Blocks:
    """The tensors seen, and those that must be in the missing shards.

    Raises:
        GgufError: a key that a shape needs is not a count.
    """
    tensors = {block: dict(named) for block, named in seen.tensors.items()}
    underived: list[str] = []
    fallback = _file_type(metadata)
    makes: dict[tuple[LayerKind, bool], dict[str, TensorSize]] = {}
    for layer in layers:
        known = makes.setdefault(_make(metadata, layer), {})
        for name, size in seen.tensors.get(layer.index, {}).items():
            known.setdefault(name, size)
    for layer in layers:
        own = tensors.setdefault(layer.index, {})
        for name, size in makes[_make(metadata, layer)].items():
            own.setdefault(name, size)
        for name, elements in _shapes(metadata, layer).items():
            _derive(own, name, elements, fallback, underived, f"blk.{layer.index}.{name}")
    outside = tensors.setdefault(None, {})
    vocab = _vocab(metadata)
    for name in ("token_embd.weight", "output.weight"):
        if name == "output.weight" and metadata.arch in ALWAYS_TIED:
            continue
        elements = vocab * metadata.need("embedding_length")
        _derive(outside, name, elements, fallback, underived, name)
    return Blocks(tensors=tensors, underived=tuple(underived))


def _derive(
    own: dict[str, TensorSize],
    name: str,
    elements: int,
    fallback: str | None,
    underived: list[str],
    full_name: str,
) -> None:
    """Add a tensor, unless it exists under one of its names."""
    if any(alias in own for alias in _aliases(name)):
        return
    if fallback is None or elements <= 0:
        underived.append(full_name)
        return
    quantization = "F32" if name.startswith("ffn_gate_inp") else fallback
    own[name] = TensorSize(elements, _size(quantization, elements), quantization)


def _aliases(name: str) -> tuple[str, ...]:
    """Names under which a file may already hold this tensor."""
    fused = {
        "attn_q.weight": ("attn_q_a.weight", "attn_qkv.weight"),
        "attn_k.weight": ("attn_kv_a_mqa.weight", "attn_qkv.weight"),
        "attn_v.weight": ("attn_kv_b.weight", "attn_k_b.weight", "attn_qkv.weight"),
        "attn_output.weight": ("attn_out.weight",),
        "ffn_gate.weight": ("ffn_gate_up.weight",),
        "ffn_up.weight": ("ffn_gate_up.weight",),
        "ffn_gate_exps.weight": ("ffn_gate_up_exps.weight",),
        "ffn_up_exps.weight": ("ffn_gate_up_exps.weight",),
    }
    return (name, *fused.get(name, ()))


def _make(metadata: Metadata, layer: LayerFacts) -> tuple[LayerKind, bool]:
    """What decides which tensors a layer has: how it remembers, and whether it routes."""
    return layer.kind, _routes(metadata, layer)


def _routes(metadata: Metadata, layer: LayerFacts) -> bool:
    dense = metadata.count("leading_dense_block_count") or 0
    return bool(metadata.count("expert_count")) and layer.index >= dense


def _shapes(metadata: Metadata, layer: LayerFacts) -> Mapping[str, int]:
    """Elements of the tensors that a block of the common makes has."""
    width = metadata.need("embedding_length")
    shapes = dict(_attention_shapes(metadata, layer, width))
    if _routes(metadata, layer):
        experts = metadata.need("expert_count")
        expert = width * (metadata.count("expert_feed_forward_length") or 0)
        shapes["ffn_gate_inp.weight"] = width * experts
        for part in ("up", "gate", "down"):
            shapes[f"ffn_{part}_exps.weight"] = expert * experts
        shared_width = metadata.count("expert_shared_feed_forward_length")
        shared = expert * (metadata.count("expert_shared_count") or 0)
        if shared_width is not None:
            shared = width * shared_width
        if shared:
            shapes.update({f"ffn_{part}_shexp.weight": shared for part in ("up", "gate", "down")})
        return shapes
    widths = metadata.per_layer("feed_forward_length", layer.index + 1)
    if widths and widths[layer.index]:
        dense = width * widths[layer.index]
        shapes.update({f"ffn_{part}.weight": dense for part in ("up", "gate", "down")})
    return shapes


def _attention_shapes(metadata: Metadata, layer: LayerFacts, width: int) -> Mapping[str, int]:
    match layer.kind:
        case LayerKind.FULL | LayerKind.SLIDING:
            keys, values = layer.key_length, layer.value_length
            return {
                "attn_q.weight": width * layer.heads * keys,
                "attn_k.weight": width * layer.kv_heads * keys,
                "attn_v.weight": width * layer.kv_heads * values,
                "attn_output.weight": width * layer.heads * values,
            }
        case LayerKind.MLA:
            return _latent_shapes(metadata, layer, width)
        case LayerKind.LINEAR:
            inner = metadata.count("ssm.inner_size") or 0
            state = metadata.count("ssm.state_size") or 0
            groups = metadata.count("ssm.group_count") or 0
            return {
                "attn_qkv.weight": width * (inner + 2 * groups * state),
                "attn_gate.weight": width * inner,
                "ssm_out.weight": width * inner,
            }
        case LayerKind.NONE:
            return {}


def _latent_shapes(metadata: Metadata, layer: LayerFacts, width: int) -> Mapping[str, int]:
    """MLA: the down-projections to the latent vectors and the up-projections per head."""
    rank = metadata.need("attention.kv_lora_rank")
    rope = metadata.count("rope.dimension_count") or 0
    keys = metadata.count("attention.key_length_mla") or metadata.count("attention.key_length")
    values = metadata.count("attention.value_length_mla")
    values = values or metadata.count("attention.value_length")
    keys, values = keys or 0, values or 0
    queries = layer.heads * keys
    query_rank = metadata.count("attention.q_lora_rank")
    return {
        "attn_q.weight": (query_rank * (width + queries) if query_rank else width * queries),
        "attn_k.weight": width * (rank + rope),
        "attn_v.weight": rank * layer.heads * (max(0, keys - rope) + values),
        "attn_output.weight": width * layer.heads * values,
    }


def _vocab(metadata: Metadata) -> int:
    tokens = metadata.fields.get("tokenizer.ggml.tokens")
    count = getattr(tokens, "count", None)
    return count if isinstance(count, int) else metadata.count("vocab_size") or 0


def _file_type(metadata: Metadata) -> str | None:
    """The type of most weights, by ``general.file_type``; None where it does not say."""
    tables = constants()
    number = metadata.fields.get("general.file_type")
    if not isinstance(number, int) or number not in set(tables.LlamaFileType):
        return None
    mixture = tables.LlamaFileType(number).name.removeprefix("MOSTLY_").removeprefix("ALL_")
    mixture = FILE_TYPE_STAND_INS.get(mixture, mixture)
    names = sorted((kind.name for kind in tables.GGML_QUANT_SIZES), key=len, reverse=True)
    return next((name for name in names if mixture.startswith(name)), None)


def _size(quantization: str, elements: int) -> int:
    tables = constants()
    block, size = tables.GGML_QUANT_SIZES[tables.GGMLQuantizationType[quantization]]
    return int(-(-elements // block) * size)
