"""What the machine is: devices, links, memory and processor, as frozen facts.

All values are frozen; a change is a new object (``dataclasses.replace``). A fact that was not
found is ``None``. A list that was not looked for is ``None``; one that was looked for and is empty
is ``()``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hetero_test.rig.sourced import Sourced

SYSTEM_POOL = "system"
"""Name of the memory pool that the CPU uses. An integrated GPU names it as its own."""


class DeviceClass(StrEnum):
    """What decides which efficiencies and rules hold for a device."""

    DISCRETE_GPU = "discrete_gpu"
    """A card with its own memory behind a link."""
    APU = "apu"
    """A GPU (or superchip) that shares one memory controller with the CPU."""
    DESKTOP_CPU = "desktop_cpu"
    """A CPU with one or two memory channels."""
    SERVER_CPU = "server_cpu"
    """A CPU with four or more memory channels, or several sockets."""
    APPLE = "apple"
    """Apple silicon: CPU and GPU on one wide memory."""


class LinkState(StrEnum):
    """What the device was doing when its link was read. Links downshift when idle."""

    IDLE = "idle"
    UNDER_LOAD = "under_load"


class Workload(StrEnum):
    """What an effective bandwidth was fitted on."""

    DENSE = "dense"
    """Weights read whole, as in attention and dense feed-forward layers."""
    MOE = "moe"
    """Routed experts: a few blocks out of many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """The PCIe path from a device to the host, as narrow as its narrowest port.

    Ports of USB4/Thunderbolt tunnels are left out: what they report has no meaning.
    """

    gen: Sourced[int] | None = None
    """PCIe generation now, minimum over the upstream path; see `state`."""
    width: Sourced[int] | None = None
    """Lanes now, minimum over the upstream path; see `state`."""
    max_gen: Sourced[int] | None = None
    """PCIe generation that the path can reach, minimum over the upstream path."""
    max_width: Sourced[int] | None = None
    """Lanes that the path can use, minimum over the upstream path."""
    gb_s: Sourced[float] | None = None
    """GB/s (1e9 bytes) in one direction after encoding, by generation and width: those under
    load when they were read under load, else what the path can reach. An upper bound."""
    measured_gb_s: Sourced[float] | None = None
    """GB/s in one direction that a copy really reached."""
    state: Sourced[LinkState] | None = None
    """Whether `gen` and `width` were read idle or under load."""
    bottleneck: Sourced[str] | None = None
    """Address of the port that is the narrowest on the path."""
    path: tuple[str, ...] = ()
    """One line a port from the device to the root: address, speed, width, and whether ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveBandwidth:
    """What a device reached while decoding: bytes read a token × tokens a second."""

    workload: Workload
    gb_s: Sourced[float]
    """GB/s (1e9 bytes)."""
    quantization: str | None = None
    """Name of the weights' type as in GGUF (``Q4_K``, ``MXFP4``); None: for all types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A measured speed of one model wholly on one device."""

    model: str
    """The model as its measurer named it."""
    decode_tok_s: Sourced[float] | None = None
    prefill_tok_s: Sourced[float] | None = None
    context: int | None = None
    """Positions in the KV cache while it was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that holds memory on a device."""

    pid: int
    name: str
    source: str
    memory_bytes: int | None = None
    """Memory that it holds on the device; None: the driver does not say."""
    unit: str | None = None
    """The systemd unit that it belongs to, which would start it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """One device, by its id in the engines: ``CUDA0``, ``ROCm0``, ``Vulkan0``, ``CPU``."""

    id: str
    device_class: Sourced[DeviceClass]
    name: Sourced[str] | None = None
    address: Sourced[str] | None = None
    """PCI address, ``0000:01:00.0``."""
    uuid: Sourced[str] | None = None
    memory_bytes: Sourced[int] | None = None
    """What the device can address as its own, for an APU the larger of carve-out and GTT."""
    free_bytes: Sourced[int] | None = None
    bandwidth_specified_gb_s: Sourced[float] | None = None
    """Nominal memory bandwidth, GB/s (1e9 bytes): an upper bound, never reached."""
    bandwidth_measured_gb_s: Sourced[float] | None = None
    """Read bandwidth that a copy or triad reached, GB/s (1e9 bytes)."""
    bandwidth_effective: tuple[EffectiveBandwidth, ...] = ()
    """Fitted on real decoding, at most one per workload and quantization."""
    pool: Sourced[str] | None = None
    """The memory pool: `SYSTEM_POOL`, or the device's own id. Equal names are one memory
    under one controller and do not add."""
    carve_out_bytes: Sourced[int] | None = None
    """Memory fenced off from the system for an integrated GPU (``mem_info_vram_total``)."""
    gtt_bytes: Sourced[int] | None = None
    """Aperture onto system memory (``mem_info_gtt_total``); it is not additional memory."""
    link: LinkFacts | None = None
    utilization_percent: Sourced[float] | None = None
    """Share of time that the device was busy, without a load of ours."""
    utilization_under_load_percent: Sourced[float] | None = None
    """The same while the user's load ran."""
    power_limit_w: Sourced[float] | None = None
    held_by: tuple[Holder, ...] | None = None
    """Processes that hold memory on it; None: could not be seen."""
    baselines: tuple[Baseline, ...] = ()

    def effective_gb_s(
        self, workload: Workload, quantization: str | None = None
    ) -> Sourced[float] | None:
        """The fitted bandwidth for this workload: of this quantization, else of any, else None."""
        fitted = {
            e.quantization: e.gb_s for e in self.bandwidth_effective if e.workload is workload
        }
        return fitted.get(quantization, fitted.get(None))

    @property
    def own_pool(self) -> bool | None:
        """Whether its memory adds to that of the system; None: unknown."""
        return None if self.pool is None else self.pool.value != SYSTEM_POOL


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFacts:
    """What is known of the connection of two devices, in both directions alike."""

    a: str
    b: str
    peer_access: Sourced[bool] | None = None
    """Whether one can read the other's memory without the host."""
    topology: Sourced[str] | None = None
    """The driver's word for it: ``NV4``, ``PIX``, ``PXB``, ``PHB``, ``NODE``, ``SYS``."""
    gb_s: Sourced[float] | None = None
    """GB/s (1e9 bytes) in one direction between them."""
    sync_us: Sourced[float] | None = None
    """Microseconds that one graph split between these two costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuFacts:
    """The host processor. It is also a device (``CPU``), where its bandwidth stands."""

    name: Sourced[str] | None = None
    sockets: Sourced[int] | None = None
    cores: Sourced[int] | None = None
    """Physical cores over all sockets."""
    threads: Sourced[int] | None = None
    numa_nodes: Sourced[int] | None = None
    isa: Sourced[str] | None = None
    """Widest vector set that matters for inference: ``amx``, ``avx512``, ``avx2``, ``neon`` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RigFacts:
    """A machine. `notes` says what each probe did not find, and why."""

    devices: tuple[DeviceFacts, ...]
    cpu: CpuFacts | None = None
    memory_bytes: Sourced[int] | None = None
    """System memory as the operating system sees it (``MemTotal``)."""
    memory_available_bytes: Sourced[int] | None = None
    memory_limit_bytes: Sourced[int] | None = None
    """Limit of the control group this process runs in; None: no limit, or not seen."""
    memory_configuration: Sourced[str] | None = None
    """Modules as fitted: ``8x DDR5-4800``."""
    swap_bytes: Sourced[int] | None = None
    links: tuple[PairFacts, ...] = ()
    sync_us: Sourced[float] | None = None
    """Microseconds that a graph split costs on this machine, where its pair has no figure."""
    layer_us: Sourced[float] | None = None
    """Microseconds that a layer costs beside its reads, fitted together with `sync_us`."""
    cpu_layer_us: Sourced[float] | None = None
    """Additional microseconds of a layer whose routed experts are on the CPU, fitted likewise."""
    os: Sourced[str] | None = None
    driver: Sourced[str] | None = None
    taken: str | None = None
    """When the facts were read, UTC, ISO-8601."""
    notes: tuple[str, ...] = ()

    def device(self, device_id: str) -> DeviceFacts | None:
        """The device of this id, by exact name; None: there is none."""
        return next((d for d in self.devices if d.id == device_id), None)

    def pair(self, first: str, second: str) -> PairFacts | None:
        """What is known between two devices, in either order; None: nothing."""
        wanted = {first, second}
        return next((p for p in self.links if {p.a, p.b} == wanted), None)
