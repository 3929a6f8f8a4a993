"""Tiny, deterministic GGUF models for llama.cpp: what ``demo --engine llama_cpp`` and tests run.

Each is a real transformer of 0.5 to 14 MB that is written in a fraction of a second and decodes
without cycling. All models of one family share a vocabulary and a "language": the next token is
a fixed permutation of the last one unless the layers push the residual stream elsewhere.
:attr:`TinyModel.gain` says how hard they push, so a model with a small gain drafts well for
one with a large gain. :attr:`TinyModel.tie_eps` makes rows of the output matrix come in nearly
equal pairs: the argmax inside a pair is then decided by rounding, which makes a canary for
placements that are not bit-exact.

Needs the extra ``llama`` (gguf, numpy); importing this module without it raises ImportError.
The file format is documented at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import gguf
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_Floats = npt.NDArray[np.float32]

_CONSONANTS: Final = "bcdfghjklmnpqrstvwxz"
_VOWELS: Final = "aeiou"
_N_SPECIAL: Final = 3
_N_BYTES: Final = 256
# Pieces that let a tokenizer build words by merging: "▁", letters, "▁b", "▁ba".
_STEPS: Final = (
    "▁",
    *_CONSONANTS,
    *_VOWELS,
    *(f"▁{c}" for c in _CONSONANTS),
    *(f"▁{c}{v}" for c in _CONSONANTS for v in _VOWELS),
)
_FIRST_WORD: Final = _N_SPECIAL + _N_BYTES + len(_STEPS)

_TENSOR_TYPES: Final = {
    "f32": gguf.GGMLQuantizationType.F32,
    "f16": gguf.GGMLQuantizationType.F16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
}
_FILE_TYPES: Final = {
    "f32": gguf.LlamaFileType.ALL_F32,
    "f16": gguf.LlamaFileType.MOSTLY_F16,
    "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyModel:
    """The shape of one tiny model.

    Attributes:
        arch: GGUF architecture: ``llama`` (dense) or ``qwen3moe``.
        n_vocab: number of tokens; ids below 405 are special, bytes or parts of words.
        n_expert: 0 for a dense model.
        n_expert_used: experts that one token is routed to.
        gain: how hard the layers push; about 1 for a target, 0.15 for its drafter.
        weights: ``f32``, ``f16``, ``q8_0`` or ``q4_0``; norms and the router stay f32.
        tie_eps: relative difference inside a pair of output rows; 0 makes no pairs.
    """

    arch: str = "llama"
    n_vocab: int = 768
    n_embd: int = 128
    n_layer: int = 4
    n_head: int = 4
    n_head_kv: int = 2
    n_ff: int = 256
    n_expert: int = 0
    n_expert_used: int = 2
    n_ctx: int = 1024
    gain: float = 1.0
    weights: str = "f32"
    seed: int = 1
    family: int = 7
    tie_eps: float = 0.0


_DENSE: Final = TinyModel(gain=0.9)
_MOE: Final = TinyModel(arch="qwen3moe", n_expert=8, gain=1.1)

TINY_MODELS: Final[Mapping[str, TinyModel]] = MappingProxyType(
    {
        **{f"dense-{w}": replace(_DENSE, weights=w) for w in _TENSOR_TYPES},
        **{f"moe-{w}": replace(_MOE, weights=w) for w in _TENSOR_TYPES},
        "draft-f32": TinyModel(
            n_embd=64, n_layer=1, n_head=2, n_head_kv=1, n_ff=128, gain=0.15, seed=2
        ),
        "tie-f32": replace(_DENSE, tie_eps=1e-6),
    }
)
"""The models by name: dense and mixture of experts in four weight types, drafter, canary."""


def write_models(folder: Path, names: Iterable[str] = TINY_MODELS) -> dict[str, Path]:
    """Write models of :data:`TINY_MODELS` as ``folder/NAME.gguf``; what is there is kept.

    Returns:
        The path of each name asked for.

    Raises:
        KeyError: a name is not in :data:`TINY_MODELS`.
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.gguf" for name in names}
    for name, path in paths.items():
        if not path.exists():
            write_model(TINY_MODELS[name], path)
    return paths


def write_model(model: TinyModel, path: Path) -> None:
    """Write one model; the same model gives the same bytes, and the file appears whole."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    writer = gguf.GGUFWriter(scratch, model.arch)
    _put_header(writer, model)
    _put_vocabulary(writer, model)
    _put_tensors(writer, model)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    scratch.replace(path)


def _put_header(writer: Any, model: TinyModel) -> None:
    head_dim = model.n_embd // model.n_head
    writer.add_name(f"tiny-{model.arch}")
    writer.add_context_length(model.n_ctx)
    writer.add_embedding_length(model.n_embd)
    writer.add_block_count(model.n_layer)
    writer.add_feed_forward_length(model.n_ff)
    writer.add_head_count(model.n_head)
    writer.add_head_count_kv(model.n_head_kv)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(model.n_vocab)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_file_type(_FILE_TYPES[model.weights])
    if model.n_expert:
        writer.add_expert_count(model.n_expert)
        writer.add_expert_used_count(model.n_expert_used)
        writer.add_expert_feed_forward_length(model.n_ff)


def _put_vocabulary(writer: Any, model: TinyModel) -> None:
    """A sentencepiece vocabulary in which every generated token is one whole word."""
    words = (f"▁{a}{v}{c}" for v in _VOWELS for c in _CONSONANTS for a in _CONSONANTS)
    pieces = [*_STEPS, *words][: model.n_vocab - _N_SPECIAL - _N_BYTES]
    kind = gguf.TokenType
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(_N_BYTES)), *pieces]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_scores(
        [0.0] * (_N_SPECIAL + _N_BYTES) + [len(p) * 10 - i / 1000 for i, p in enumerate(pieces)]
    )
    writer.add_token_types(
        [kind.UNKNOWN, kind.CONTROL, kind.CONTROL]
        + [kind.BYTE] * _N_BYTES
        + [kind.NORMAL] * len(pieces)
    )
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(True)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }} {% endfor %}")


def _put_tensors(writer: Any, model: TinyModel) -> None:
    weights = _Weights(writer, _TENSOR_TYPES[model.weights])
    embedding, output = _language(model)
    weights.put("token_embd.weight", embedding)
    weights.put_f32("output_norm.weight", np.ones(model.n_embd, np.float32))
    weights.put("output.weight", output)
    rng = np.random.default_rng([model.seed, model.n_embd, model.n_layer])

    def normal(*shape: int) -> _Floats:
        """Random numbers scaled so that a row keeps the size of what it is multiplied with."""
        scaled: _Floats = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        return scaled

    n_embd, n_ff, gain = model.n_embd, model.n_ff, model.gain
    head_dim = n_embd // model.n_head
    kv_dim = model.n_head_kv * head_dim
    for layer in range(model.n_layer):
        block = f"blk.{layer}."
        weights.put_f32(block + "attn_norm.weight", np.ones(n_embd, np.float32))
        weights.put_f32(block + "ffn_norm.weight", np.ones(n_embd, np.float32))
        weights.put(block + "attn_q.weight", 2 * normal(n_embd, n_embd))
        weights.put(block + "attn_k.weight", 2 * normal(kv_dim, n_embd))
        weights.put(block + "attn_v.weight", normal(kv_dim, n_embd))
        weights.put(block + "attn_output.weight", gain * normal(n_embd, n_embd))
        if model.arch.startswith("qwen3"):
            weights.put_f32(block + "attn_q_norm.weight", np.ones(head_dim, np.float32))
            weights.put_f32(block + "attn_k_norm.weight", np.ones(head_dim, np.float32))
        if model.n_expert:
            n = model.n_expert
            weights.put_f32(block + "ffn_gate_inp.weight", 4 * normal(n, n_embd))
            weights.put(block + "ffn_gate_exps.weight", normal(n, n_ff, n_embd))
            weights.put(block + "ffn_up_exps.weight", normal(n, n_ff, n_embd))
            weights.put(block + "ffn_down_exps.weight", gain * 2 * normal(n, n_embd, n_ff))
        else:
            weights.put(block + "ffn_gate.weight", normal(n_ff, n_embd))
            weights.put(block + "ffn_up.weight", normal(n_ff, n_embd))
            weights.put(block + "ffn_down.weight", gain * 2 * normal(n_embd, n_ff))


def _language(model: TinyModel) -> tuple[_Floats, _Floats]:
    """Embedding and output matrices: row ``next(t)`` of the output matches embedding row ``t``.

    Rows of special and byte tokens are zero, so that their logit is never the largest. A
    matching logit is about 12, all others about 12 / sqrt(n_embd).
    """
    n_vocab, n_embd = model.n_vocab, model.n_embd
    family = np.random.default_rng([model.family, n_vocab, n_embd])
    # The permutation is shared by every width, so that drafters speak the language of targets.
    language = np.random.default_rng([model.family, n_vocab])
    embedding = family.standard_normal((n_vocab, n_embd)).astype(np.float32)
    output = np.zeros((n_vocab, n_embd), np.float32)
    words = np.arange(_FIRST_WORD, n_vocab)
    if model.tie_eps:
        half = len(words) // 2
        first, second = words[:half], words[half : 2 * half]
        cycle = language.permutation(first)
        output[np.roll(cycle, -1)] = embedding[cycle]
        noise = family.standard_normal((half, n_embd)).astype(np.float32)
        output[second] = output[first] * (1 + model.tie_eps * noise)
        embedding[second] = family.standard_normal((half, n_embd))
    else:
        cycle = language.permutation(words)
        output[np.roll(cycle, -1)] = embedding[cycle]
    return embedding, output * np.float32(12.0 / n_embd)


class _Weights:
    """Adds tensors to a file in the weight type asked for."""

    def __init__(self, writer: Any, tensor_type: Any) -> None:
        self._writer = writer
        self._type = tensor_type

    def put_f32(self, name: str, array: _Floats) -> None:
        self._writer.add_tensor(name, np.ascontiguousarray(array, np.float32))

    def put(self, name: str, array: _Floats) -> None:
        array = np.ascontiguousarray(array, np.float32)
        if self._type == gguf.GGMLQuantizationType.F32:
            self._writer.add_tensor(name, array)
        elif self._type == gguf.GGMLQuantizationType.F16:
            self._writer.add_tensor(name, array.astype(np.float16))
        else:
            packed = gguf.quantize(array, self._type)
            self._writer.add_tensor(name, packed, raw_dtype=self._type)
