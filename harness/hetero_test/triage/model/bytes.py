"""A model's bytes as placements move them: trunk, routed experts by layer, KV, tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.triage.model.facts import Role

if TYPE_CHECKING:
    from hetero_test.triage.model.facts import ModelFacts

GB = 1e9
HOST_ROLES = (Role.EMBEDDING, Role.SIDECAR)
"""Tables that stay in host memory, of which a row is read for a token."""
TYPICAL_BYTES = 0.6
"""Bytes a parameter where the number of parameters is not known: 4.8 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What the arithmetic needs of a model's shape."""

    layers: int = 0
    experts: int = 0
    used: int = 0

    @property
    def mixture(self) -> bool:
        """Whether it routes between experts."""
        return self.experts > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBytes:
    """Sizes in bytes; reads in GB a token."""

    layers: int
    trunk_bytes: int
    """Attention, dense, shared, router, output and the small ones."""
    expert_layer_bytes: tuple[int, ...]
    """Routed experts of each layer that has some, in order of layers."""
    expert_layers: tuple[int, ...]
    """Numbers of those layers."""
    host_bytes: int
    nextn_bytes: int
    kv_bytes: float
    """All slots' caches, full."""
    trunk_gb: float
    """Read for a token, without routed experts and KV."""
    experts_gb: float
    """Routed experts read for a token."""
    kv_gb: float
    """KV read for a token at the asked depth."""
    active_parameters_b: float
    hidden_bytes: int
    expert_quantization: str | None
    trunk_quantization: str | None
    shape: ModelShape

    @property
    def experts_bytes(self) -> int:
        """All routed experts."""
        return sum(self.expert_layer_bytes)

    @property
    def resident_bytes(self) -> int:
        """Trunk and experts: what fast memory has to hold when it holds everything."""
        return self.trunk_bytes + self.experts_bytes

    @property
    def kv_heavy(self) -> bool:
        """Whether a token reads more KV than a quarter of its weights."""
        return self.kv_gb > 0.25 * (self.trunk_gb + self.experts_gb)


def model_bytes(
    model: ModelFacts, *, context: int, depth: int, slots: int, kv_type: str
) -> ModelBytes:
    """The sizes of a model in this use.

    Args:
        model: its facts.
        context: positions that a slot is allocated.
        depth: positions that decoding reads.
        slots: requests at a time, each with a cache of its own.
        kv_type: a name of `KV_TYPE_BYTES`, or two as KEYS/VALUES.

    Raises:
        UsageError: there is no such KV type.
    """
    sizes = model.bytes_by_role()
    active = model.active_bytes_by_role()
    by_layer = {
        layer.index: sum(t.size_bytes for t in layer.tensors if t.role is Role.ROUTED_EXPERTS)
        for layer in model.layers
    }
    expert_layers = tuple(index for index, size in by_layer.items() if size)
    trunk = sum(
        size
        for role, size in sizes.items()
        if role not in (*HOST_ROLES, Role.ROUTED_EXPERTS, Role.NEXTN)
    )
    if model.tied_embeddings:
        trunk += sizes.get(Role.EMBEDDING, 0)
    experts_gb = active.get(Role.ROUTED_EXPERTS, 0.0) / GB
    active_gb = model.active_bytes_per_token() / GB
    slot = model.kv_bytes(context, kv_type)
    return ModelBytes(
        layers=len(model.layers),
        trunk_bytes=trunk,
        expert_layer_bytes=tuple(by_layer[index] for index in expert_layers),
        expert_layers=expert_layers,
        host_bytes=sum(sizes.get(role, 0) for role in HOST_ROLES),
        nextn_bytes=sizes.get(Role.NEXTN, 0),
        kv_bytes=slot * slots,
        trunk_gb=active_gb - experts_gb,
        experts_gb=experts_gb,
        kv_gb=model.kv_read_bytes(depth, kv_type) / GB,
        active_parameters_b=active_gb / _bytes_a_parameter(model),
        hidden_bytes=model.hidden_bytes,
        expert_quantization=model.quantization(Role.ROUTED_EXPERTS),
        trunk_quantization=model.quantization(Role.ATTENTION),
        shape=ModelShape(
            layers=len(model.layers), experts=model.experts_total, used=model.experts_used
        ),
    )


def _bytes_a_parameter(model: ModelFacts) -> float:
    if model.parameters and model.file_bytes:
        return model.file_bytes / model.parameters
    return TYPICAL_BYTES
