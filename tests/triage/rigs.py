"""Rigs and models of the tests, made of plain numbers."""

from __future__ import annotations

from dataclasses import replace

from hetero_test.rig.facts import DeviceClass, DeviceFacts, LinkFacts, PairFacts, RigFacts
from hetero_test.rig.sourced import measured, specified
from hetero_test.triage.model.facts import LayerFacts, LayerKind, ModelFacts, Role, RoleBytes
from hetero_test.triage.options.question import TriageQuestion

GIB = 2**30


def card(
    device_id: str = "CUDA0",
    *,
    gib: float = 24,
    gb_s: float | None = 936.0,
    link: float | None = 7.88,
    name: str = "RTX 3090",
) -> DeviceFacts:
    """A discrete card."""
    return DeviceFacts(
        id=device_id,
        device_class=measured(DeviceClass.DISCRETE_GPU, "test"),
        name=measured(name, "test"),
        memory_bytes=measured(int(gib * GIB), "test"),
        bandwidth_specified_gb_s=None if gb_s is None else specified(gb_s, "data sheet"),
        pool=measured(device_id, "test"),
        link=None if link is None else LinkFacts(gb_s=specified(link, "Gen4 x4")),
    )


def apu(*, gib: float = 114, gb_s: float = 256.0) -> DeviceFacts:
    """An integrated GPU whose memory is the system's."""
    return DeviceFacts(
        id="ROCm0",
        device_class=measured(DeviceClass.APU, "test"),
        name=measured("Radeon 8060S", "test"),
        memory_bytes=measured(int(gib * GIB), "test"),
        bandwidth_specified_gb_s=specified(gb_s, "data sheet"),
        pool=measured("system", "test"),
        carve_out_bytes=measured(2 * GIB, "test"),
        gtt_bytes=measured(int(gib * GIB), "test"),
    )


def cpu(*, gb_s: float | None = 77.0, server: bool = False) -> DeviceFacts:
    """The host."""
    kind = DeviceClass.SERVER_CPU if server else DeviceClass.DESKTOP_CPU
    return DeviceFacts(
        id="CPU",
        device_class=measured(kind, "test"),
        bandwidth_specified_gb_s=None if gb_s is None else specified(gb_s, "data sheet"),
        pool=measured("system", "test"),
    )


def rig(*devices: DeviceFacts, gib: float = 125, links: tuple[PairFacts, ...] = ()) -> RigFacts:
    """A machine."""
    return RigFacts(devices=devices, memory_bytes=measured(int(gib * GIB), "test"), links=links)


def strix(*, card_gib: float = 15.0) -> RigFacts:
    """An APU with 128 GB beside a 3090 behind OCuLink, most of which is free."""
    return rig(apu(), card(gib=card_gib))


def mixture(
    *, layers: int = 48, expert_mb: int = 2200, trunk_mb: int = 12, kv_heads: int = 2
) -> ModelFacts:
    """A mixture of 104 GiB, nearly all of which is routed experts."""
    blocks = tuple(
        LayerFacts(
            index=index,
            kind=LayerKind.FULL,
            heads=32,
            kv_heads=kv_heads if index % 4 == 3 else 0,
            key_length=128,
            value_length=128,
            tensors=(
                RoleBytes(role=Role.ATTENTION, size_bytes=trunk_mb * 10**6, quantization="Q8_0"),
                RoleBytes(
                    role=Role.ROUTED_EXPERTS, size_bytes=expert_mb * 10**6, quantization="Q4_K"
                ),
            ),
        )
        for index in range(layers)
    )
    return ModelFacts(
        name="Mixture",
        arch="qwen3moe",
        source="mixture.gguf",
        n_embd=4096,
        layers=blocks,
        tables=(
            RoleBytes(role=Role.EMBEDDING, size_bytes=400 * 10**6, quantization="Q8_0"),
            RoleBytes(role=Role.OUTPUT, size_bytes=300 * 10**6, quantization="Q6_K"),
        ),
        experts_total=128,
        experts_used=8,
        vocab=151936,
        file_bytes=layers * (expert_mb + trunk_mb) * 10**6,
        parameters=190 * 10**9,
        tokens_sha256="a" * 64,
    )


def dense(*, layers: int = 64, layer_mb: int = 250, nextn: bool = False) -> ModelFacts:
    """A dense 27B of 16 GB."""
    blocks = tuple(
        LayerFacts(
            index=index,
            kind=LayerKind.FULL,
            heads=24,
            kv_heads=4,
            key_length=128,
            value_length=128,
            tensors=(
                RoleBytes(role=Role.ATTENTION, size_bytes=layer_mb * 10**6, quantization="Q4_K"),
            ),
        )
        for index in range(layers)
    )
    head = (replace(blocks[0], index=layers),) if nextn else ()
    return ModelFacts(
        name="Dense",
        arch="qwen35",
        source="dense.gguf",
        n_embd=5120,
        layers=blocks,
        nextn_layers=head,
        tables=(RoleBytes(role=Role.OUTPUT, size_bytes=500 * 10**6, quantization="Q6_K"),),
        vocab=151936,
        file_bytes=layers * layer_mb * 10**6,
        parameters=27 * 10**9,
        tokens_sha256="a" * 64,
    )


def question(model: ModelFacts, machine: RigFacts, **changes: object) -> TriageQuestion:
    """A question with its defaults."""
    return replace(TriageQuestion(model=model, rig=machine), **changes)  # type: ignore[arg-type]
