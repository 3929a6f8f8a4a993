"""The device list: which entries are one card, of what kind each is, which comes first."""

from __future__ import annotations

import pytest

from hetero_test.engines.llama_cpp.devices import (
    buffer_type,
    declared,
    device_of,
    fast_first,
    listing,
)
from hetero_test.errors import UsageError
from hetero_test.values.run import Device


def devices(*entries: str) -> tuple[Device, ...]:
    """The distinct devices of a list such as the engine prints."""
    return listing(_printed(*entries)).devices


def _printed(*entries: str) -> bytes:
    lines = [f"  {entry} (24105 MiB, 24000 MiB free)" for entry in entries]
    return "\n".join(["load_backend: loaded X", "Available devices:", *lines]).encode()


def _ids(*entries: str) -> list[str]:
    return [device.id for device in devices(*entries)]


def test_listed() -> None:
    """Name, model and memory are read; a name may hold parentheses."""
    (device,) = devices("Vulkan0: llvmpipe (LLVM 15.0.6, 256 bits)")
    assert device.id == "Vulkan0"
    assert device.name == "llvmpipe (LLVM 15.0.6, 256 bits)"
    assert device.memory_bytes == 24105 * 2**20


def test_none() -> None:
    """An engine without accelerators lists none."""
    assert listing(b"Available devices:\n  (none)\n").devices == ()


@pytest.mark.parametrize(
    "helper",
    [
        "BLAS: OpenBLAS (0 MiB, 0 MiB free)",
        "BLAS: OpenBLAS (64000 MiB, 60000 MiB free)",
        "AMX: AMX (0 MiB, 0 MiB free)",
        "zDNN: IBM Z Neural Network Processing Assist (0 MiB, 0 MiB free)",
        "HTP0: Hexagon (0 MiB, 0 MiB free)",
    ],
)
def test_an_accelerator_without_memory_is_no_place_for_layers(helper: str) -> None:
    """It is told in a note, and is neither the first device nor the second."""
    gpus = ["CUDA0: A (24105 MiB, 1 MiB free)", "CUDA1: B (12000 MiB, 1 MiB free)"]
    for lines, ids in (([helper], []), ([helper, *gpus], ["CUDA0", "CUDA1"])):
        found = listing("\n".join(f"  {line}" for line in lines).encode())
        assert [device.id for device in found.devices] == ids
        (note,) = found.notes
        assert note.startswith(helper.partition(":")[0])
        assert "no memory of its own: no layers are placed on it" in note


def test_two_cards_of_one_model_are_two_devices_of_one_kind() -> None:
    """Two entries of one backend with one name are two cards."""
    one, other = devices("CUDA0: NVIDIA GeForce RTX 3090", "CUDA1: NVIDIA GeForce RTX 3090")
    assert one.kind == other.kind == "CUDA NVIDIA GeForce RTX 3090"


def test_two_models_are_two_kinds() -> None:
    """A 3090 and a 3060 round differently."""
    one, other = devices("CUDA0: NVIDIA GeForce RTX 3090", "CUDA1: NVIDIA GeForce RTX 3060")
    assert one.kind != other.kind


def test_one_card_listed_by_two_backends() -> None:
    """A card that CUDA and Vulkan both list is one device, by its first name."""
    found = listing(
        _printed(
            "CUDA0: NVIDIA GeForce RTX 3090",
            "CUDA1: NVIDIA GeForce RTX 3060",
            "Vulkan0: NVIDIA GeForce RTX 3090",
            "Vulkan1: NVIDIA GeForce RTX 3060",
            "Vulkan2: AMD Radeon Graphics (RADV RAPHAEL_MENDOCINO)",
        )
    )
    assert [device.id for device in found.devices] == ["CUDA0", "CUDA1", "Vulkan2"]
    assert found.notes == (
        "Vulkan0 (NVIDIA GeForce RTX 3090) is the same physical device as CUDA0",
        "Vulkan1 (NVIDIA GeForce RTX 3060) is the same physical device as CUDA1",
    )


def test_one_card_listed_by_a_translation_layer() -> None:
    """The same card through Direct3D is the same card."""
    assert _ids(
        "Vulkan0: AMD Radeon RX 6800 XT",
        "Vulkan1: Microsoft Direct3D12 (AMD Radeon RX 6800 XT) (Dozen)",
    ) == ["Vulkan0"]
    assert _ids(
        "Vulkan0: Microsoft Direct3D12 (AMD Radeon RX 6800 XT) (Dozen)",
        "Vulkan1: AMD Radeon RX 6800 XT",
    ) == ["Vulkan1"]
    assert _ids("Vulkan0: Microsoft Direct3D12 (AMD Radeon RX 6800 XT)") == ["Vulkan0"]


def test_twins_in_two_backends_are_matched_one_to_one() -> None:
    """Two cards of one model in both backends are two devices; a third is one of its own."""
    name = "NVIDIA GeForce RTX 3090"
    entries = [f"CUDA{n}: {name}" for n in range(2)] + [f"Vulkan{n}: {name}" for n in range(3)]
    assert _ids(*entries) == ["CUDA0", "CUDA1", "Vulkan2"]


def test_rpc_devices_are_never_merged() -> None:
    """What lies behind RPC cannot be seen, so each is a device and a kind of its own."""
    found = devices("RPC0: 127.0.0.1:50052", "RPC1: 127.0.0.1:50052", "RPC2: 127.0.0.1:50053")
    assert [device.kind for device in found] == ["RPC0", "RPC1", "RPC2"]


def test_rpc_buffers_are_named_by_their_place_within_the_server() -> None:
    """The second server's first device is RPC0[…] again."""
    found = devices("RPC0: 127.0.0.1:50052", "RPC1: 127.0.0.1:50052", "RPC2: 127.0.0.1:50053")
    assert [buffer_type(device, found) for device in found] == [
        "RPC0[127.0.0.1:50052]",
        "RPC1[127.0.0.1:50052]",
        "RPC0[127.0.0.1:50053]",
    ]
    reordered = fast_first(found, "RPC2")
    assert buffer_type(found[1], reordered) == "RPC1[127.0.0.1:50052]"


@pytest.mark.parametrize(
    ("buffer", "device"),
    [
        ("CUDA0", "CUDA0"),
        ("RPC0[10.0.0.1:50052]", "RPC0"),
        ("CPU", "CPU"),
        ("CPU_Mapped", "CPU"),
        ("CPU_REPACK", "CPU"),
        ("CUDA_Host", "CPU"),
        ("Vulkan_Host", "CPU"),
        ("CUDA0_Mapped", "CUDA0"),
        ("CUDA_Split", "CUDA_Split"),
        ("RPC1[10.0.0.1:50052]", "RPC1[10.0.0.1:50052]"),
    ],
)
def test_device_of_a_buffer(buffer: str, device: str) -> None:
    """Pinned and mapped memory is its owner's; a buffer that nobody owns stands for itself."""
    found = devices("CUDA0: NVIDIA GeForce RTX 3090", "RPC0: 10.0.0.1:50052")
    assert device_of(buffer, found) == device


def test_declared_kinds() -> None:
    """A declared kind may be a name of the user's, another device, or the CPU."""
    found = devices(
        "CUDA0: NVIDIA GeForce RTX 3090",
        "RPC0: 10.0.0.1:50052",
        "RPC1: 10.0.0.2:50052",
        "RPC2: 10.0.0.3:50052",
        "RPC3: 10.0.0.4:50052",
    )
    kinds = {"RPC0": "CUDA0", "RPC1": "CPU", "RPC2": "old box"}
    assert [device.kind for device in declared(found, kinds)] == [
        "CUDA NVIDIA GeForce RTX 3090",
        "CUDA NVIDIA GeForce RTX 3090",
        "CPU",
        "old box",
        "RPC3",
    ]


def test_kind_of_the_cpu() -> None:
    """A name declared for the CPU means the CPU wherever it is given again."""
    found = devices("RPC0: 10.0.0.1:50052")
    assert declared(found, {"CPU": "zen4", "RPC0": "zen4"})[0].kind == "CPU"


@pytest.mark.parametrize("name", ["RPC7", "rpc0"])
def test_kind_of_an_unknown_device(name: str) -> None:
    """A kind for a device that is not there is a mistake, and the list is shown."""
    with pytest.raises(UsageError, match=r"--device-kind .* no such device(?s:.*)RPC0"):
        declared(devices("RPC0: 10.0.0.1:50052"), {name: "x"})


def test_fast_device_comes_first() -> None:
    """The device that the user calls fast is put in front, the others keep their order."""
    found = devices("RPC0: a:1", "RPC1: b:1", "RPC2: c:1")
    assert [device.id for device in fast_first(found, "RPC1")] == ["RPC1", "RPC0", "RPC2"]
    assert fast_first(found, None) == found
    with pytest.raises(UsageError, match="--fast-device RPC9: no such device"):
        fast_first(found, "RPC9")
