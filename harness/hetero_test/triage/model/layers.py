"""How each layer of a GGUF model remembers: cache, window or state.

The rules are those of llama.cpp's ``src/llama-model.cpp`` (hyperparameters by architecture)
and ``src/llama-hparams.cpp`` (sizes of cache and state).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from hetero_test.triage.model.facts import LayerFacts, LayerKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hetero_test.gguf.metadata import Metadata

STATE_ELEMENT_BYTES = 4
"""llama.cpp keeps the states of linear layers in f32."""


class Dense(Enum):
    """Which layer of a period attends to everything."""

    LAST = "last"
    FIRST = "first"


SLIDING_PERIODS: Mapping[str, tuple[int, Dense]] = {
    "cohere2": (4, Dense.LAST),
    "exaone4": (4, Dense.LAST),
    "gemma2": (2, Dense.LAST),
    "gemma3": (6, Dense.LAST),
    "gemma3n": (5, Dense.LAST),
    "gemma-embedding": (6, Dense.LAST),
    "gpt-oss": (2, Dense.LAST),
    "gptoss": (2, Dense.LAST),
    "llama4": (4, Dense.LAST),
    "modern-bert": (3, Dense.FIRST),
    "olmo2": (4, Dense.LAST),
    "smallthinker": (4, Dense.FIRST),
}
"""Architectures whose files need not say which layers slide (``set_swa_pattern``)."""

FULL_ATTENTION_INTERVALS: Mapping[str, int] = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4}
"""Architectures where every n-th layer attends and the others are linear, by default."""

STATE_KEYS = ("ssm.state_size", "shortconv.l_cache", "wkv.head_size", "kda.head_dim")
"""A model with one of these has layers with a state."""

LLAMA4_CHUNK = 8192
"""Llama 4 attends within chunks of so many positions; its files need not say so."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The layers, and notes on what is uncertain about them."""

    layers: tuple[LayerFacts, ...]
    """All blocks, draft head included, without their tensors."""
    sliding_window: int | None
    notes: tuple[str, ...]


def geometry(
    metadata: Metadata, blocks: int, nextn: int, names: Mapping[int, frozenset[str]]
) -> Geometry:
    """How each block remembers.

    Args:
        metadata: the keys of the model.
        blocks: all blocks, those of the draft head included.
        nextn: how many of them, at the end, are the draft head's.
        names: the tensors of each block that was seen, without ``blk.N.``.

    Raises:
        GgufError: a key is not a count, or an array does not fit the layers.
    """
    notes: list[str] = []
    plain = blocks - nextn
    heads = metadata.per_layer("attention.head_count", blocks) or (0,) * blocks
    kv_heads = metadata.per_layer("attention.head_count_kv", blocks) or heads
    sliding = _sliding(metadata, blocks, plain, notes)
    window = _window(metadata) if any(sliding) else None
    linear = _linear(metadata, blocks, plain, kv_heads, names)
    lengths = _Lengths.read(metadata, heads)
    shared = min(metadata.count("attention.shared_kv_layers") or 0, plain - 1)
    state = _state_bytes(metadata, blocks)
    layers = []
    for index in range(blocks):
        has_state = linear[index] or _has_state(names.get(index, frozenset()))
        kind = LayerKind.LINEAR
        if not linear[index]:
            kind = _attention_kind(
                attends=kv_heads[index] > 0, latent=lengths.latent > 0, slides=sliding[index]
            )
        keys, values, count = lengths.of(kind, kv_heads[index])
        layers.append(
            LayerFacts(
                index=index,
                kind=kind,
                heads=0 if kind in (LayerKind.LINEAR, LayerKind.NONE) else heads[index],
                kv_heads=count,
                key_length=keys,
                value_length=values,
                state_bytes=state if has_state else 0,
                owns_kv=not plain - shared <= index < plain,
            )
        )
    if any(linear) and not state:
        notes.append("the state of the linear layers is not counted: unknown kind of layer")
    if metadata.count("attention.indexer.key_length"):
        notes.append("the key cache of the sparse-attention indexer is not counted")
    if lengths.latent and not metadata.count("attention.key_length_mla"):
        notes.append(
            "converted before MLA was kept apart: a runtime without MLA caches "
            f"{max(kv_heads)} heads of {lengths.keys} + {lengths.values} instead"
        )
    return Geometry(tuple(layers), window, tuple(notes))


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Elements of one head's key and value, for each kind of layer."""

    keys: int
    values: int
    keys_sliding: int
    values_sliding: int
    latent: int
    """Elements of MLA's one vector per position; 0: no MLA."""

    @classmethod
    def read(cls, metadata: Metadata, heads: Sequence[int]) -> _Lengths:
        most = max(heads, default=0)
        default = metadata.need("embedding_length") // most if most else 0
        keys = metadata.count("attention.key_length")
        values = metadata.count("attention.value_length")
        keys = default if keys is None else keys
        values = default if values is None else values
        rank = metadata.count("attention.kv_lora_rank") or 0
        rope = metadata.count("rope.dimension_count") or 0
        swa_keys = metadata.count("attention.key_length_swa")
        swa_values = metadata.count("attention.value_length_swa")
        return cls(
            keys,
            values,
            keys if swa_keys is None else swa_keys,
            values if swa_values is None else swa_values,
            rank + rope if rank else 0,
        )

    def of(self, kind: LayerKind, kv_heads: int) -> tuple[int, int, int]:
        """Key length, value length and number of key/value heads of a layer."""
        match kind:
            case LayerKind.MLA:
                return self.latent, 0, 1
            case LayerKind.SLIDING:
                return self.keys_sliding, self.values_sliding, kv_heads
            case LayerKind.FULL:
                return self.keys, self.values, kv_heads
            case LayerKind.LINEAR | LayerKind.NONE:
                return 0, 0, 0


def _attention_kind(*, attends: bool, latent: bool, slides: bool) -> LayerKind:
    if not attends:
        return LayerKind.NONE
    if latent:
        return LayerKind.MLA
    return LayerKind.SLIDING if slides else LayerKind.FULL


def _has_state(names: frozenset[str]) -> bool:
    return any(name.startswith(("ssm_", "shortconv.", "time_mix_")) for name in names)


def _linear(
    metadata: Metadata,
    blocks: int,
    plain: int,
    kv_heads: Sequence[int],
    names: Mapping[int, frozenset[str]],
) -> tuple[bool, ...]:
    """Which layers have a state in place of attention.

    A hybrid layer (Falcon-H1) has both: it attends, and its state is counted too.
    """
    interval = metadata.count("full_attention_interval")
    if interval is None:
        interval = FULL_ATTENTION_INTERVALS.get(metadata.arch)
    if interval and all(kv_heads):
        return tuple(i < plain and (i + 1) % interval != 0 for i in range(blocks))
    if not interval and not any(metadata.count(key) for key in STATE_KEYS):
        return (False,) * blocks
    found = []
    for index in range(blocks):
        seen = names.get(index)
        without_cache = kv_heads[index] == 0
        found.append(without_cache if seen is None else without_cache and _has_state(seen))
    return tuple(found)


def _window(metadata: Metadata) -> int | None:
    window = metadata.count("attention.sliding_window")
    if not window and metadata.arch == "llama4":
        return metadata.count("attention.chunk_size") or LLAMA4_CHUNK
    return window


def _sliding(metadata: Metadata, blocks: int, plain: int, notes: list[str]) -> tuple[bool, ...]:
    """Which layers attend to a window only; the draft head's do not."""
    if not (window := _window(metadata)):
        return (False,) * blocks
    value = metadata.find("attention.sliding_window_pattern")
    period, dense = SLIDING_PERIODS.get(metadata.arch, (0, Dense.LAST))
    if isinstance(value, tuple):
        flags = metadata.per_layer("attention.sliding_window_pattern", blocks) or ()
        return tuple(bool(flag) and i < plain for i, flag in enumerate(flags))
    if value is not None:
        period = metadata.count("attention.sliding_window_pattern") or 0
    if period <= 1:
        if metadata.arch not in SLIDING_PERIODS:
            notes.append(
                f"a window of {window} is named, but not for which layers: all are taken to "
                "attend to the whole context, as llama.cpp does for such files"
            )
        return (False,) * blocks
    at = period - 1 if dense is Dense.LAST else 0
    return tuple(i < plain and i % period != at for i in range(blocks))


def _state_bytes(metadata: Metadata, layers: int) -> int:
    """Bytes of one linear layer's state for one sequence: convolution and recurrence, f32.

    Source: ``n_embd_r`` and ``n_embd_s`` of llama.cpp's ``src/llama-hparams.cpp``.
    """
    width = metadata.need("embedding_length")
    if cache := metadata.count("shortconv.l_cache"):
        return STATE_ELEMENT_BYTES * width * (cache - 1)
    if head := metadata.count("wkv.head_size"):
        shifts = metadata.count("token_shift_count")
        return STATE_ELEMENT_BYTES * width * (head + (2 if shifts is None else shifts))
    kernel = metadata.count("ssm.conv_kernel") or 0
    if head := metadata.count("kda.head_dim"):
        heads = max(metadata.per_layer("attention.head_count", layers) or (0,))
        return STATE_ELEMENT_BYTES * heads * head * (head + 3 * max(0, kernel - 1))
    inner = metadata.count("ssm.inner_size") or 0
    state = metadata.count("ssm.state_size") or 0
    groups = metadata.count("ssm.group_count") or 0
    convolution = max(0, kernel - 1) * (inner + 2 * groups * state)
    return STATE_ELEMENT_BYTES * (convolution + state * inner)
