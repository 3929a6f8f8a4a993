"""Model facts from a GGUF file.

Any shard of a split model may be given; the others are read as far as they exist, and missing ones
are named. Keys and their meaning: ``gguf.constants.Keys`` of the library ``gguf`` and llama.cpp's
``src/llama-model.cpp``. What a tensor does follows from its name; names are those of llama.cpp's
``src/llama-arch.cpp``, with the older spelling of Mixtral files (one tensor per expert) and
Ollama's vision prefixes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from hetero_test.gguf.header import GgufError, Shards, TextArray, read_shards, read_tokens
from hetero_test.gguf.metadata import MAX_LAYERS, Metadata
from hetero_test.gguf.types import TensorSize, tensor_sizes
from hetero_test.triage.model.facts import Completeness, ModelFacts, Role, RoleBytes, TokenLists
from hetero_test.triage.model.layers import geometry
from hetero_test.triage.model.missing_shards import Blocks, fill

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def read_model_file(path: Path) -> ModelFacts:
    """The facts of a GGUF model, from the headers of its files.

    Raises:
        GgufError: the file is not a GGUF file of a language model, is damaged or cut short.
    """
    shards = read_shards(path)
    first = shards.headers[0]
    arch = first.fields.get("general.architecture")
    if not isinstance(arch, str) or not arch:
        raise GgufError(
            f"{path} names no architecture: it is no model, or a shard without its first"
        )
    metadata = Metadata(path=first.path, arch=arch, fields=first.fields)
    seen = _blocks(shards)
    blocks, nextn, notes = _block_counts(metadata, seen)
    names = {block: frozenset(named) for block, named in seen.tensors.items() if block is not None}
    shape = geometry(metadata, blocks, nextn, names)
    completeness = Completeness.READ
    if shards.missing:
        seen = fill(metadata, shape.layers, seen)
        completeness = Completeness.PARTIAL if seen.underived else Completeness.DERIVED
    layers = tuple(
        replace(layer, tensors=_gather(layer.index, seen.tensors)) for layer in shape.layers
    )
    model = _from_keys(metadata, seen)
    return replace(
        model,
        source=str(path),
        layers=layers[: blocks - nextn],
        nextn_layers=layers[blocks - nextn :],
        tables=_gather(None, seen.tensors),
        sliding_window=shape.sliding_window,
        file_bytes=sum(header.file_bytes for header in shards.headers),
        completeness=completeness,
        missing_shards=shards.missing,
        parameters=None if shards.missing else _elements(seen),
        notes=(*notes, *shape.notes, *_shard_notes(shards, seen)),
    )


def compare_tokens(first: Path, second: Path) -> TokenLists:
    """Compare ``tokenizer.ggml.tokens`` of two files (first shards), in constant memory.

    Raises:
        GgufError: a file cannot be read, or has no vocabulary.
    """
    for a, b in zip_longest(read_tokens(_first(first)), read_tokens(_first(second))):
        if a is None or b is None:
            return TokenLists.PADDED
        if a != b:
            return TokenLists.DIFFERENT
    return TokenLists.EQUAL


def _first(path: Path) -> Path:
    return read_shards(path).headers[0].path


def _blocks(shards: Shards) -> Blocks:
    tensors: dict[int | None, dict[str, TensorSize]] = defaultdict(dict)
    for header in shards.headers:
        for full_name, tensor in tensor_sizes(header).items():
            block, name = split_name(full_name)
            if name in tensors[block]:
                raise GgufError(f"{header.path}: {full_name!r:.80} is in another shard as well")
            tensors[block][name] = tensor
    return Blocks(tensors=tensors)


def _block_counts(metadata: Metadata, seen: Blocks) -> tuple[int, int, tuple[str, ...]]:
    """All blocks, those of the draft head among them, and remarks.

    ``block_count`` includes the draft head's where ``nextn_predict_layers`` says how many; some
    converters leave that key out, and only the tensors show it.
    """
    blocks = metadata.need("block_count")
    if blocks > MAX_LAYERS:
        raise GgufError(f"{metadata.path}: {blocks} layers cannot be")
    told = metadata.count("nextn_predict_layers")
    shown = sorted(
        block
        for block, named in seen.tensors.items()
        if block is not None and any(name.startswith("nextn.") for name in named)
    )
    notes = []
    beyond = [block for block in seen.tensors if block is not None and block >= blocks]
    if beyond and set(beyond) <= set(shown) and max(beyond) < MAX_LAYERS:
        notes.append(f"block_count {blocks} leaves out the draft head, which is counted here")
        blocks = max(beyond) + 1
        told = len(beyond)
    elif beyond:
        raise GgufError(f"{metadata.path}: block {min(beyond)} is not among the {blocks} layers")
    nextn = told or 0
    if told is None and shown and shown == list(range(shown[0], blocks)):
        nextn = len(shown)
        notes.append("nextn_predict_layers is missing; the draft head is known by its tensors")
    if nextn >= blocks:
        raise GgufError(f"{metadata.path}: {nextn} of {blocks} layers cannot be the draft head")
    return blocks, nextn, tuple(notes)


def _gather(
    block: int | None, tensors: Mapping[int | None, Mapping[str, TensorSize]]
) -> tuple[RoleBytes, ...]:
    """The bytes of one block by role and type, roles in their own order."""
    sums: dict[tuple[Role, str], int] = defaultdict(int)
    for name, tensor in tensors.get(block, {}).items():
        sums[role_of(block, name), tensor.quantization] += tensor.size_bytes
    order = list(Role)
    return tuple(
        RoleBytes(role=role, size_bytes=size, quantization=quantization)
        for (role, quantization), size in sorted(
            sums.items(), key=lambda item: (order.index(item[0][0]), item[0][1])
        )
    )


def _from_keys(metadata: Metadata, seen: Blocks) -> ModelFacts:
    """What the keys say of the model as a whole; layers and bytes are added by the caller."""
    tokens = metadata.fields.get("tokenizer.ggml.tokens")
    listed = tokens if isinstance(tokens, TextArray) else None
    widths = metadata.per_layer("feed_forward_length", metadata.need("block_count"))
    outside = seen.tensors.get(None, {})
    experts = metadata.count("expert_count") or 0
    used = metadata.count("expert_used_count") or 0
    if used > experts or (experts and not used):
        raise GgufError(f"{metadata.path}: {used} experts of {experts} are used")
    rank = metadata.count("attention.kv_lora_rank")
    return ModelFacts(
        name=metadata.text("general.name") or metadata.path.stem,
        arch=metadata.arch,
        source=str(metadata.path),
        n_embd=metadata.need("embedding_length"),
        layers=(),
        experts_total=experts,
        experts_used=used,
        experts_shared=_shared_experts(metadata, seen),
        expert_ff=metadata.count("expert_feed_forward_length"),
        ff=widths[0] if widths and len(set(widths)) == 1 and widths[0] else None,
        kv_lora_rank=rank or None,
        rope_dim=metadata.count("rope.dimension_count"),
        vocab=listed.count if listed else metadata.count("vocab_size"),
        tokens_sha256=listed.sha256 if listed else None,
        trained_context=metadata.count("context_length"),
        tied_embeddings="token_embd.weight" in outside and "output.weight" not in outside,
    )


def _shared_experts(metadata: Metadata, seen: Blocks) -> int:
    """By the key, else 1 where a shared expert has tensors (Qwen2-MoE has no key)."""
    told = metadata.count("expert_shared_count")
    if told is not None:
        return told
    names = (name for named in seen.tensors.values() for name in named)
    return int(any("_shexp." in name for name in names))


def _elements(seen: Blocks) -> int:
    return sum(t.elements for named in seen.tensors.values() for t in named.values())


def _shard_notes(shards: Shards, seen: Blocks) -> Iterable[str]:
    if not shards.missing:
        return
    some = ", ".join(shards.missing[:3]) + (" …" if len(shards.missing) > 3 else "")
    yield f"{len(shards.missing)} shards are missing ({some}): their bytes are derived"
    if seen.underived:
        few = ", ".join(seen.underived[:3]) + (" …" if len(seen.underived) > 3 else "")
        yield f"not even derived: {len(seen.underived)} tensors ({few})"


_BLOCK = re.compile(r"blk\.(\d{1,6})\.(.+)\Z")
_IN_BLOCK: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r"nextn\."), Role.NEXTN),
    (re.compile(r"(?:ssm|time_mix|shortconv|indexer)[._](?!.*norm)"), Role.ATTENTION),
    (re.compile(r"(?:\w+_)?attn_(?!.*norm)"), Role.ATTENTION),
    (re.compile(r"ffn_(?:up|gate|down|gate_up)_(?:ch)?exps\b"), Role.ROUTED_EXPERTS),
    (re.compile(r"ffn_(?:up|gate|down)\.\d+\b"), Role.ROUTED_EXPERTS),
    (re.compile(r"ffn_\w*shexp\b"), Role.SHARED_EXPERTS),
    (re.compile(r"ffn_gate_inp\b|exp_probs_b\b"), Role.ROUTER),
    (re.compile(r"(?:ffn_(?:up|gate|down|gate_up)|channel_mix_\w+)\b"), Role.DENSE_FFN),
    (re.compile(r"\w*(?:engram|ngram)\w*_embd\b"), Role.SIDECAR),
)
_OUTSIDE: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r"token_embd\.\w+\Z"), Role.EMBEDDING),
    (re.compile(r"output\.\w+\Z"), Role.OUTPUT),
    (re.compile(r"mtp\.|nextn\."), Role.NEXTN),
    (re.compile(r"(?:v|a|mm|vision|audio)\."), Role.SIDECAR),
    (re.compile(r"(?!.*norm)\w+_embd\b"), Role.SIDECAR),
)


def split_name(name: str) -> tuple[int | None, str]:
    """The number of the block, or None for a tensor of no block; and the name within it."""
    found = _BLOCK.match(name)
    return (int(found[1]), found[2]) if found else (None, name)


def role_of(block: int | None, rest: str) -> Role:
    """The role of a tensor; `Role.OTHER` for norms and everything unknown.

    Args:
        block: the number of the block, None for a tensor of no block.
        rest: the name within it, as `split_name` gives it.
    """
    rules = _OUTSIDE if block is None else _IN_BLOCK
    return next((role for pattern, role in rules if pattern.match(rest)), Role.OTHER)
