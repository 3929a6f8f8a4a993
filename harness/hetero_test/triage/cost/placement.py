"""Where the bytes of a token are read, and what the reading waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hetero_test.rig.facts import DeviceClass
from hetero_test.triage.model.bytes import ModelShape


class DraftKind(StrEnum):
    """What drafts."""

    OWN_HEAD = "own_head"
    """A head trained for this target (MTP, EAGLE); its cost defaults to one block and output."""
    BLOCK = "block"
    """A drafter that makes all drafts of a round in one forward (DFlash)."""
    EXTERNAL = "external"
    """A separate model; its cost has to be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpeeds:
    """What the arithmetic needs of a device: how fast it reads."""

    id: str
    device_class: DeviceClass
    nominal_gb_s: float | None = None
    """By the data sheet, GB/s; None: unknown."""
    copy_gb_s: float | None = None
    """What a copy or read test reached, GB/s; counts before the data sheet."""
    copy_sigma: float = 0.0
    """Standard deviation of its logarithm."""
    effective_gb_s: Mapping[str, float] = field(default_factory=dict)
    """Fitted on real decoding, by ``dense`` and ``moe``; counts before both."""
    alone_tok_s: float | None = None
    """Measured decode speed of everything that placement `a` reads, on this device alone."""
    relative: bool = False
    """Whether bytes are known as shares only, so that measured speeds alone give a rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Bytes that one token reads on one device."""

    device: str
    gb: float = 0.0
    """Weights, GB (1e9 bytes)."""
    kv_gb: float = 0.0
    experts: bool = False
    """Whether these are routed experts."""
    quantization: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """Speculation on top of a placement."""

    window: int
    """K: drafts a round."""
    tokens_per_round: float
    """E."""
    tokens_sigma: float = 0.03
    """Standard deviation of ln E."""
    kind: DraftKind = DraftKind.OWN_HEAD
    draft_cost: float | None = None
    """r: steps of the target per draft (per round for a block drafter); None: by kind."""
    beta: float | None = None
    """Measured on this or a like device; None: by class."""
    verify: Mapping[int, float] = field(default_factory=dict)
    """V by rows where it was measured."""
    rows: int | None = None
    """Rows of a verification; None: K + 1."""
    round_ms: float = 0.0
    """Additional milliseconds a round: a network round trip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hot:
    """The most used experts of every layer on one device, the others elsewhere."""

    device: str
    share: float
    """Of the experts' bytes, on `device`."""
    experts_gb: float
    """Routed experts read for a token, all of them."""
    cold_device: str | None = None
    """Where the others are computed; None: they are copied to `device` for each use."""
    quantization: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One way of running a model. `reads` may be empty where only drafting differs."""

    devices: tuple[DeviceSpeeds, ...] = ()
    shape: ModelShape = field(default_factory=ModelShape)
    reads: tuple[Read, ...] = ()
    parallel: bool = False
    """Whether the devices work on each layer together (``-sm tensor``)."""
    slowest: str | None = None
    """The device that the others of a parallel split wait for; None: the slowest."""
    splits: float = 0.0
    """Graph splits a token, from the loader log."""
    split_us: float | None = None
    """Cost of one split where this rig's was fitted; None: by class."""
    layer_us: float | None = None
    """Cost of a layer beside its reads where this rig's was fitted; None: by class."""
    cpu_layer_us: float | None = None
    """Likewise, what experts on a CPU add to a layer."""
    staged_splits: float = 0.0
    """Splits that also wait for a copy between two devices without peer access."""
    pair_latency_us: float | None = None
    """Measured device-to-device latency; None: by class."""
    peer: bool = False
    """Whether the devices reach each other's memory directly."""
    all_reduces: float = 0.0
    """All-reduces of a parallel split per token: two a layer."""
    all_reduce_rule: str = "llama.cpp"
    """Whose all-reduces: ``llama.cpp`` or ``other``."""
    link_bytes: float = 0.0
    """Bytes a token over the narrowest link between the devices."""
    link_gb_s: float | None = None
    hot: Hot | None = None
    """Experts kept by how often they are used."""
    messages: float = 0.0
    """Messages a token to another process (RPC)."""
    round_trip_us: float = 0.0
    """Network round trip of one of them."""
    overheads: bool = True
    """False where the device speeds were measured on whole tokens, overheads included."""
    drafting: Drafting | None = None
    main_class: DeviceClass = DeviceClass.DISCRETE_GPU
    """Class of the device that verifies, where there are no reads."""
    experts_on_cpu: bool = False
    """Whether routed experts are computed by a CPU, where there are no reads."""

    def device(self, device_id: str) -> DeviceSpeeds:
        """The device of this id.

        Raises:
            KeyError: the placement reads on a device that it does not have.
        """
        for device in self.devices:
            if device.id == device_id:
                return device
        raise KeyError(device_id)
