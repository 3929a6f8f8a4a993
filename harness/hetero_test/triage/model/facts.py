"""What a model is: its shape, its bytes by role, and what it reads and keeps per token.

Sizes are bytes, and bytes per token where a name says so. Layer numbers are those of the GGUF
tensors (``blk.N``). Everything here is arithmetic on what the file says; `ModelFacts.completeness`
says how the byte counts are known.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from hetero_test.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KV_TYPE_BYTES: Mapping[str, float] = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q6_0": 26 / 32,
    "q5_1": 24 / 32,
    "q5_0": 22 / 32,
    "q4_1": 20 / 32,
    "q4_0": 18 / 32,
    "iq4_nl": 18 / 32,
}
"""Bytes an element of the KV cache, by llama.cpp's ``-ctk``/``-ctv`` names; the quantized
ones are blocks of 32 elements with their scales (GGUF block sizes; ``q6_0`` is ik_llama's)."""


def kv_element_bytes(kv_type: str) -> tuple[float, float]:
    """Bytes of one element of the keys and one of the values.

    Args:
        kv_type: one name of `KV_TYPE_BYTES` for both, or two as ``q8_0/q4_0``; case is ignored.

    Raises:
        UsageError: there is no such type.
    """
    names = kv_type.lower().split("/")
    unknown = [name for name in names if name not in KV_TYPE_BYTES]
    if unknown or len(names) > 2:
        raise UsageError(
            f"no such KV cache type: {kv_type!r}",
            hint=f"one of {', '.join(KV_TYPE_BYTES)}, or two as KEYS/VALUES",
        )
    return KV_TYPE_BYTES[names[0]], KV_TYPE_BYTES[names[-1]]


class Role(StrEnum):
    """What a tensor does, by its name; `active_bytes_by_role` follows from it."""

    ATTENTION = "attention"
    """``attn_*``, and the projections of linear layers (``ssm_*``)."""
    DENSE_FFN = "dense_ffn"
    """``ffn_{up,gate,down}``."""
    SHARED_EXPERTS = "shared_experts"
    """``ffn_*_shexp``: read for every token."""
    ROUTED_EXPERTS = "routed_experts"
    """``ffn_*_exps``: of these, used/total are read for a token."""
    ROUTER = "router"
    """``ffn_gate_inp``."""
    EMBEDDING = "embedding"
    """``token_embd``: one row is read for a token, unless it is also the output."""
    OUTPUT = "output"
    """``output``: read whole for every token."""
    OTHER = "other"
    """Norms, biases and everything small: read for every token."""
    NEXTN = "nextn"
    """The model's own draft head (NextN/MTP), whole blocks: not read in plain decoding."""
    SIDECAR = "sidecar"
    """Tables looked up by token (``per_layer_token_embd``): a few rows are read for a token."""


class LayerKind(StrEnum):
    """How a layer remembers what came before."""

    FULL = "full"
    """Attention over the whole context."""
    SLIDING = "sliding"
    """Attention over the last `sliding_window` positions."""
    MLA = "mla"
    """Multi-head latent attention: one compressed vector a position."""
    LINEAR = "linear"
    """A state of constant size (SSM, gated delta net)."""
    NONE = "none"
    """No attention and no state: a feed-forward layer alone."""


class Completeness(StrEnum):
    """How the bytes by role are known."""

    READ = "read"
    """From the tensor table of every shard."""
    DERIVED = "derived"
    """Shards were missing: shapes from the metadata and the quantization of what was seen."""
    PARTIAL = "partial"
    """Shards were missing and nothing could be derived: the bytes are those of the shards seen."""
    TOLD = "told"
    """From a model-facts file."""


class TokenLists(StrEnum):
    """Whether two token lists were compared, and what came of it."""

    EQUAL = "checked: the token lists are equal"
    PADDED = "checked: equal as far as the shorter list goes, the rest is padding of one"
    DIFFERENT = "checked: the token lists differ"
    NOT_CHECKED = "not checked: a token list is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleBytes:
    """The tensors of one role and one quantization, together."""

    role: Role
    size_bytes: int
    quantization: str
    """Type of the weights as in GGUF: ``Q4_K``, ``MXFP4``, ``F32``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFacts:
    """One block: how it remembers, and the bytes it holds."""

    index: int
    kind: LayerKind
    heads: int = 0
    """Query heads."""
    kv_heads: int = 0
    """Key/value heads; 0 where the layer has no such cache."""
    key_length: int = 0
    """Elements of one key head; for MLA the latent and rotary part (`lora + rope`)."""
    value_length: int = 0
    """Elements of one value head; 0 for MLA, whose values are a view of the keys."""
    state_bytes: int = 0
    """Size of a linear layer's state for one sequence, f32; independent of the context."""
    owns_kv: bool = True
    """False: reads the cache of an earlier layer (``shared_kv_layers``) and keeps none."""
    tensors: tuple[RoleBytes, ...] = ()

    def kv_bytes_per_position(self, kv_type: str = "f16") -> float:
        """Bytes one position takes in the cache: kv_heads × (key × bytes + value × bytes).

        Raises:
            UsageError: no such cache type, see `kv_element_bytes`.
        """
        key_bytes, value_bytes = kv_element_bytes(kv_type)
        return self.kv_heads * (self.key_length * key_bytes + self.value_length * value_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model file. Layers of the draft head stand apart, in `nextn_layers`."""

    name: str
    arch: str
    """``general.architecture`` as written: ``qwen3moe``, ``deepseek2``, ``gpt-oss``, ``gptoss``."""
    source: str
    """The file that this was read from."""
    n_embd: int
    """Elements of the hidden state (``embedding_length``)."""
    layers: tuple[LayerFacts, ...]
    """All layers of plain decoding, without NextN."""
    nextn_layers: tuple[LayerFacts, ...] = ()
    """The blocks of the model's own draft head, with bytes by their ordinary role."""
    tables: tuple[RoleBytes, ...] = ()
    """Tensors that belong to no layer: embedding, output, norms, sidecars."""
    experts_total: int = 0
    """Routed experts a layer; 0: a dense model."""
    experts_used: int = 0
    experts_shared: int = 0
    expert_ff: int | None = None
    """Width of one routed expert."""
    ff: int | None = None
    """Width of a dense feed-forward layer; None: none, or it differs by layer."""
    kv_lora_rank: int | None = None
    rope_dim: int | None = None
    sliding_window: int | None = None
    """Positions of the window; None: no layer slides."""
    vocab: int | None = None
    """Number of token ids."""
    tokens_sha256: str | None = None
    """sha256 over the token list; equal lists mean that a plain drafter fits. See `from_gguf`."""
    trained_context: int | None = None
    tied_embeddings: bool = False
    """No ``output`` tensor: the embedding is read whole for every token in its place."""
    file_bytes: int | None = None
    """Size of all shards that exist."""
    parameters: int | None = None
    """Elements of all tensors, where all shards were seen."""
    completeness: Completeness = Completeness.READ
    missing_shards: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def mixture(self) -> bool:
        """Whether the model routes between experts."""
        return self.experts_total > 0

    @property
    def hidden_bytes(self) -> int:
        """One hop's bytes: the hidden state of one position in f16, ``n_embd × 2``."""
        return self.n_embd * 2

    def kv_bytes_per_position(self, kv_type: str = "f16") -> Mapping[LayerKind, float]:
        """Bytes that one more position adds to the cache, by layer kind, all layers together.

        Sliding layers add theirs only up to the window (see `kv_bytes`); linear layers none.

        Raises:
            UsageError: no such cache type, see `kv_element_bytes`.
        """
        sums: dict[LayerKind, float] = defaultdict(float)
        for layer in self.layers:
            if layer.owns_kv and layer.kv_heads:
                sums[layer.kind] += layer.kv_bytes_per_position(kv_type)
        return dict(sums)

    def kv_bytes(self, context: int, kv_type: str = "f16") -> float:
        """Bytes of one sequence's cache at `context` positions, linear layers' states included."""
        return sum(
            self.layer_kv_bytes(layer, context, kv_type) for layer in self.layers if layer.owns_kv
        )

    def kv_read_bytes(self, context: int, kv_type: str = "f16") -> float:
        """Bytes of cache that decoding one token reads at `context` positions.

        Layers that share the cache of another read it as well, so the sum is at least `kv_bytes`.
        """
        return sum(self.layer_kv_bytes(layer, context, kv_type) for layer in self.layers)

    def layer_kv_bytes(self, layer: LayerFacts, context: int, kv_type: str = "f16") -> float:
        """Bytes one layer reads of the cache at `context` positions: its window at most.

        Raises:
            UsageError: no such cache type, see `kv_element_bytes`.
        """
        positions = context
        if layer.kind is LayerKind.SLIDING and self.sliding_window is not None:
            positions = min(context, self.sliding_window)
        return layer.kv_bytes_per_position(kv_type) * positions + layer.state_bytes

    def bytes_by_role(self) -> Mapping[Role, int]:
        """Bytes in the file by role; the blocks of the draft head count as NEXTN."""
        sums: dict[Role, int] = defaultdict(int)
        for tensor in self._plain_tensors():
            sums[tensor.role] += tensor.size_bytes
        for layer in self.nextn_layers:
            for tensor in layer.tensors:
                sums[Role.NEXTN] += tensor.size_bytes
        return dict(sums)

    def bytes_by_quantization(self, role: Role) -> Mapping[str, int]:
        """Bytes of one role by type of weight, largest first (draft head: role NEXTN)."""
        tensors: Iterable[RoleBytes] = self._plain_tensors()
        sums: dict[str, int] = defaultdict(int)
        if role is Role.NEXTN:
            tensors = (t for layer in self.nextn_layers for t in layer.tensors)
        for tensor in tensors:
            if role in (Role.NEXTN, tensor.role):
                sums[tensor.quantization] += tensor.size_bytes
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def quantization(self, role: Role) -> str | None:
        """The type that holds most bytes of the role; None: the model has no such tensor."""
        return next(iter(self.bytes_by_quantization(role)), None)

    def active_bytes_by_role(self) -> Mapping[Role, float]:
        """Bytes of weights that plain decoding of one token reads, by role, without KV.

        Whole: attention, dense, shared, router, output and the small ones. Of the routed experts
        used/total. Of the embedding one row, or all of it where it is the output too. Of the
        draft head and the sidecars nothing. Source: the rule of llama.cpp's graph,
        which multiplies with every tensor but gathers rows of tables.
        """
        active: dict[Role, float] = {}
        for role, size in self.bytes_by_role().items():
            match role:
                case Role.NEXTN | Role.SIDECAR:
                    continue
                case Role.ROUTED_EXPERTS:
                    active[role] = size * self.experts_used / max(1, self.experts_total)
                case Role.EMBEDDING if not self.tied_embeddings:
                    active[role] = size / self.vocab if self.vocab else 0.0
                case _:
                    active[role] = float(size)
        return active

    def active_bytes_per_token(self) -> float:
        """Bytes of weights that plain decoding of one token reads: the sum over the roles."""
        return sum(self.active_bytes_by_role().values())

    def _plain_tensors(self) -> Iterable[RoleBytes]:
        yield from self.tables
        for layer in self.layers:
            yield from layer.tensors
