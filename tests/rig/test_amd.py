"""AMD devices by rocm-smi and sysfs, and the memory that they use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.rig.amd import AmdDevice, amd_pool, apu_chips, merge, parse_rocm_smi, read_sysfs
from hetero_test.rig.facts import SYSTEM_POOL, DeviceClass
from hetero_test.rig.sourced import Origin
from tests.rig.machines import GIB, drm, put

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20
VRAM = 34342961152


@pytest.mark.parametrize(
    "text",
    [
        f"GPU[0]\t\t: VRAM Total Memory (B): {VRAM}\n"
        "GPU[0]\t\t: VRAM Total Used Memory (B): 16893952\n",
        f"GPU[0]\t\t: vram Total Memory (B): {VRAM}\n"
        "GPU[0]\t\t: vram Total Used Memory (B): 16893952\n",
        json.dumps(
            {
                "card0": {
                    "VRAM Total Memory (B)": str(VRAM),
                    "VRAM Total Used Memory (B)": "16893952",
                }
            }
        ),
        "WARNING: AMD GPU device(s) is/are in a low-power state.\n\n"
        + json.dumps(
            {
                "card0": {
                    "VRAM Total Memory (B)": str(VRAM),
                    "VRAM Total Used Memory (B)": "16893952",
                },
                "system": {"Driver version": "6.8"},
            }
        ),
    ],
    ids=["blocks", "lower case", "json", "json after a warning"],
)
def test_both_forms_of_rocm_smi_say_the_same(text: str) -> None:
    """Blocks and JSON, in upper and lower case."""
    frame = "======== ROCm System Management Interface ========\n"
    for whole in (text, frame + text + frame):
        (device,) = parse_rocm_smi(whole)
        assert device.index == 0
        assert device.vram_bytes == VRAM
        assert device.vram_used_bytes == 16893952
        assert device.gtt_bytes is None


def test_gtt_and_visible_memory_are_told_apart() -> None:
    """vis_vram is a part of VRAM, not a pool of its own."""
    text = (
        "GPU[1] : gtt Total Memory (B): 122402963456\n"
        "GPU[1] : vis_vram Total Memory (B): 5\n"
        "GPU[1] : vram Total Memory (B): 2147483648\n"
    )
    (device,) = parse_rocm_smi(text)
    assert (device.index, device.gtt_bytes, device.vram_bytes) == (1, 122402963456, 2147483648)


def test_an_unknown_name_is_none() -> None:
    """``Card Series: N/A`` occurs on Strix Halo, and a bare PCI id is not a name."""
    text = json.dumps(
        {"card0": {"Card Series": "N/A", "Card Model": "0x1586", "PCI Bus": "0000:C5:00.0"}}
    )
    (device,) = parse_rocm_smi(text)
    assert device.name is None
    assert device.address == "0000:c5:00.0"


def test_names_use_and_driver_are_read() -> None:
    """The other calls of rocm-smi."""
    text = json.dumps({"card0": {"Card Series": "AMD Instinct MI210", "GPU use (%)": "12"}})
    (device,) = parse_rocm_smi(text)
    assert (device.name, device.utilization_percent) == ("AMD Instinct MI210", 12.0)


@given(st.text(max_size=200) | st.text(alphabet='{}":card0 GPU[]VRAM(B)\n\t1', max_size=120))
def test_any_text_of_rocm_smi_is_read_or_passed_over(text: str) -> None:
    """Tracebacks of a Python tool and half a JSON are no devices."""
    for device in parse_rocm_smi(text):
        assert device.index is not None
    parse_rocm_smi("{" * 20_000)
    parse_rocm_smi("GPU[0] : VRAM Total Memory (B): " + text)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 20_000,
        '{"card0": {"VRAM Total Memory (B)": ' + "[" * 970 + "]" * 970 + "}}",
        '{"card0": {"VRAM Total Memory (B)": ' + "9" * 5000 + "}}",
    ],
)
def test_json_beyond_what_can_be_read_has_no_devices(text: str) -> None:
    """Nesting without end and digits without end."""
    assert parse_rocm_smi(text) == ()


def test_a_warning_behind_the_json_hides_nothing() -> None:
    """The tool prints what it could not find behind its answer."""
    found = parse_rocm_smi('{"card0": {"VRAM Total Memory (B)": "1048576"}}\nWARNING: {x}\n')
    assert [device.vram_bytes for device in found] == [MIB]


def card(sysfs: Path, number: int, address: str, vram: int, gtt: int, **files: str) -> None:
    """An amdgpu card."""
    drm(
        sysfs,
        number,
        address,
        {
            "vendor": "0x1002",
            "mem_info_vram_total": str(vram),
            "mem_info_gtt_total": str(gtt),
            **files,
        },
    )


def test_sysfs_tells_amd_cards_and_no_others(tmp_path: Path) -> None:
    """Cards by PCI address, connectors and other makers left out."""
    card(tmp_path, 1, "0000:03:00.0", 16 * GIB, 32 * GIB, device="0x73bf", gpu_busy_percent="42")
    card(tmp_path, 0, "0000:c5:00.0", 536870912, 110 * GIB, device="0x1586")
    drm(tmp_path, 2, "0000:01:00.0", {"vendor": "0x10de"})
    put(tmp_path / "class/drm/card1-DP-1/status", "connected")
    first, second = read_sysfs(tmp_path)
    assert (first.address, first.vram_bytes, first.utilization_percent) == (
        "0000:03:00.0",
        16 * GIB,
        42.0,
    )
    assert (second.address, second.device_id) == ("0000:c5:00.0", "0x1586")
    assert read_sysfs(tmp_path / "none") == ()


def test_rocm_smi_fills_what_sysfs_lacks() -> None:
    """By address where it gives one, else in order where there are as many."""
    shown = (AmdDevice(address="a", vram_bytes=1), AmdDevice(address="b", vram_bytes=2))
    by_address = (AmdDevice(index=0, address="b", name="B", vram_bytes=9),)
    assert merge(shown, by_address)[1] == AmdDevice(index=0, address="b", name="B", vram_bytes=2)
    assert merge(shown, by_address)[0].name is None
    in_order = (AmdDevice(index=0, name="A"), AmdDevice(index=1, name="B"))
    assert [device.name for device in merge(shown, in_order)] == ["A", "B"]
    assert merge(shown, in_order[:1])[0].name is None
    assert merge((), in_order) == in_order


def halo(vram: int, gtt: int) -> AmdDevice:
    """A Strix Halo by its PCI id."""
    return AmdDevice(address="0000:c5:00.0", device_id="0x1586", vram_bytes=vram, gtt_bytes=gtt)


def test_a_large_gtt_window_is_the_systems_memory() -> None:
    """2 GiB carved out, a window of 114 GiB, 121 GiB seen: one pool, and fencing only takes."""
    pool = amd_pool(halo(2147483648, 122402963456), "ROCm0", memory_total=121 * GIB)
    assert pool.shared
    assert pool.pool is not None
    assert pool.pool.value == SYSTEM_POOL
    assert pool.device_class.value is DeviceClass.APU
    assert pool.memory_bytes is not None
    assert pool.memory_bytes.value == 122402963456
    said = " ".join(pool.notes)
    assert "neither capacity nor bandwidth" in said
    assert "amdgpu.gttsize would only let the GPU take more of what the CPU has" in said
    assert "larger carve-out in the BIOS would only take bytes from the CPU" in said


def test_a_large_carve_out_does_not_add_to_gtt() -> None:
    """98304 MiB of VRAM and 108000 MiB of GTT in a machine of 128 GiB are not 201 GiB."""
    pool = amd_pool(halo(98304 * MIB, 108000 * MIB), "ROCm0", memory_total=31 * GIB)
    assert pool.shared
    assert pool.memory_bytes is not None
    assert pool.memory_bytes.value == 98304 * MIB
    assert any("127.0 GiB in all" in note for note in pool.notes)


def test_a_small_carve_out_is_an_apu_too() -> None:
    """536870912 bytes carved out, more than 100 GiB of window."""
    pool = amd_pool(halo(536870912, 101 * GIB), "ROCm0", memory_total=125 * GIB)
    assert pool.shared
    assert pool.memory_bytes is not None
    assert pool.memory_bytes.value == 101 * GIB


@pytest.mark.parametrize("name", [None, "AMD Radeon RX 570 Series"])
@pytest.mark.parametrize("total", [4 * GIB, 8 * GIB - 1, 64 * GIB])
def test_a_card_whose_driver_gives_gtt_the_size_of_vram_keeps_its_own(
    name: str | None, total: int
) -> None:
    """RX 570: both are 4294967296, which says nothing of the card, however small the system."""
    device = AmdDevice(name=name, vram_bytes=4294967296, gtt_bytes=4294967296)
    pool = amd_pool(device, "ROCm0", memory_total=total)
    assert pool.pool is not None
    assert pool.pool.value == "ROCm0"
    assert pool.device_class.value is DeviceClass.DISCRETE_GPU
    assert pool.memory_bytes is not None
    assert pool.memory_bytes.value == 4294967296
    assert any("GTT the size of VRAM" in note for note in pool.notes)


def test_a_large_card_in_a_small_machine_is_no_apu() -> None:
    """24 GiB of VRAM and 16 of window exceed the system's 32; the name decides."""
    device = AmdDevice(name="AMD Radeon RX 7900 XTX", vram_bytes=24 * GIB, gtt_bytes=16 * GIB)
    pool = amd_pool(device, "ROCm0", memory_total=32 * GIB)
    assert not pool.shared
    assert pool.pool is not None
    assert pool.pool.origin is Origin.SPECIFIED


@pytest.mark.parametrize(
    ("device", "total", "shared"),
    [
        (AmdDevice(vram_bytes=2 * GIB, gtt_bytes=114 * GIB), 121 * GIB, True),
        (AmdDevice(vram_bytes=96 * GIB, gtt_bytes=105 * GIB), 31 * GIB, True),
        (AmdDevice(vram_bytes=20 * GIB, gtt_bytes=16 * GIB), 32 * GIB, True),
        (AmdDevice(vram_bytes=8 * GIB, gtt_bytes=32 * GIB), 64 * GIB, None),
        (AmdDevice(vram_bytes=8 * GIB), 64 * GIB, None),
        (
            AmdDevice(vram_bytes=16 * GIB, gtt_bytes=64 * GIB, vram_vendor="samsung"),
            64 * GIB,
            False,
        ),
        (AmdDevice(name="AMD Radeon 780M Graphics", vram_bytes=GIB), 64 * GIB, True),
        (AmdDevice(name="Strix Halo [Radeon Graphics / Radeon 8060S Graphics]"), None, True),
    ],
)
def test_without_an_id_names_and_sizes_suggest(
    device: AmdDevice, total: int | None, shared: bool | None
) -> None:
    """What the sizes suggest is assumed; where they suggest nothing it is unknown."""
    pool = amd_pool(device, "ROCm0", memory_total=total)
    if shared is None:
        assert pool.pool is None
        assert any("nothing tells whether" in note for note in pool.notes)
    else:
        assert pool.shared is shared


@pytest.mark.parametrize("uma", [True, False])
def test_ggmls_own_word_comes_first(uma: bool) -> None:
    """``uma: 1`` is measured, whatever id and sizes say."""
    pool = amd_pool(halo(2 * GIB, 114 * GIB), "ROCm0", memory_total=121 * GIB, uma=uma)
    assert pool.shared is uma
    assert pool.pool is not None
    assert pool.pool.origin is Origin.MEASURED


def test_the_table_of_chips_is_sound() -> None:
    """Every id is a PCI id in lower case, and none stands twice."""
    text_ids = list(apu_chips())
    assert all(len(each) == 6 and each == each.lower() for each in text_ids)
    assert apu_chips()["0x1586"] == "Strix Halo"
    assert len(text_ids) > 20
