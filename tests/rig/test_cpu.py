"""The host processor and its memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.rig.cpu import (
    Modules,
    meminfo,
    memory_bandwidth,
    memory_limit,
    parse_dmidecode,
    parse_lscpu,
    processor_class,
    read_modules,
    read_processor,
)
from hetero_test.rig.facts import CpuFacts, DeviceClass
from hetero_test.rig.sourced import measured
from tests.rig.machines import GIB, Tools, failed, lscpu, put

if TYPE_CHECKING:
    from pathlib import Path

EPYC = lscpu(
    Model__name="AMD EPYC 9654 96-Core Processor",
    **{"Socket(s)": 2, "Core(s)__per__socket": 96, "CPU(s)": 384, "NUMA__node(s)": 2},
    Flags="fpu avx avx2 avx512f",
    L3__cache="768 MiB (24 instances)",
)


def test_lscpu_tells_the_processor() -> None:
    """Cores are those of all sockets; the widest vector set counts; caches are summed."""
    found = read_processor(Tools({"lscpu -J": EPYC}))
    cpu = found.cpu
    assert cpu.name is not None
    assert cpu.name.value == "AMD EPYC 9654 96-Core Processor"
    assert cpu.cores is not None
    assert cpu.cores.value == 192
    assert cpu.threads is not None
    assert cpu.threads.value == 384
    assert cpu.isa is not None
    assert cpu.isa.value == "avx512"
    assert found.cache_bytes == 768 * 2**20
    assert found.trouble is None


def test_nested_output_is_read() -> None:
    """Newer releases nest the fields."""
    inner = {"field": "Socket(s):", "data": "2"}
    text = json.dumps(
        {"lscpu": [{"field": "Vendor ID:", "data": "X", "children": [{"children": [inner]}]}]}
    )
    assert parse_lscpu(text) == {"Vendor ID": "X", "Socket(s)": "2"}


@given(
    st.text(max_size=80) | st.recursive(st.none() | st.text(max_size=3), st.lists).map(json.dumps)
)
def test_any_output_of_lscpu_is_read_or_passed_over(text: str) -> None:
    """Other JSON and no JSON are an empty answer."""
    assert isinstance(parse_lscpu(text), dict)
    assert parse_lscpu('{"lscpu": ' + text + "}") is not None
    assert parse_lscpu("[" * 50_000) == {}


def test_a_silent_lscpu_is_told() -> None:
    """No tool, a failing one and one that says nothing are three reasons."""
    assert read_processor(Tools({})).trouble == "lscpu is not installed"
    assert "failed with 1: no" in (read_processor(Tools({"lscpu": failed("no")})).trouble or "")
    assert "understood" in (read_processor(Tools({"lscpu": "{}"})).trouble or "")


@pytest.mark.parametrize(
    ("name", "sockets", "kind"),
    [
        ("AMD EPYC 9654 96-Core Processor", 1, DeviceClass.SERVER_CPU),
        ("AMD Ryzen Threadripper PRO 7965WX 24-Cores", 1, DeviceClass.SERVER_CPU),
        ("AMD Ryzen 9 7950X 16-Core Processor", 1, DeviceClass.DESKTOP_CPU),
        ("A processor", 2, DeviceClass.SERVER_CPU),
    ],
)
def test_desktop_and_server_are_told_apart(name: str, sockets: int, kind: DeviceClass) -> None:
    """By name and by the number of sockets."""
    cpu = CpuFacts(name=measured(name, "x"), sockets=measured(sockets, "x"))
    assert processor_class(cpu).value is kind


DIMM = """\
Handle 0x0011, DMI type 17, 92 bytes
Memory Device
\tTotal Width: 64 bits
\tSize: 32 GB
\tLocator: {slot}
\tBank Locator: {bank}
\tType: DDR5
\tSpeed: 5600 MT/s
\tConfigured Memory Speed: {speed} MT/s

"""
EMPTY = "Handle 0x0012, DMI type 17, 92 bytes\nMemory Device\n\tSize: No Module Installed\n\n"
ARRAY = "Handle 0x0010, DMI type 16, 23 bytes\nPhysical Memory Array\n\tNumber Of Devices: 4\n\n"


@pytest.mark.parametrize(
    ("slots", "channels"),
    [
        ([("DIMM 1", "P0 CHANNEL A"), ("DIMM 1", "P0 CHANNEL B")], 2),
        ([("DIMM 0", "P0 CHANNEL A"), ("DIMM 1", "P0 CHANNEL A")], 1),
        ([("DIMM_A2", "BANK 1"), ("DIMM_B2", "BANK 3")], 2),
        ([("P1-DIMMA1", "x"), ("P2-DIMMA1", "x")], 2),
        ([("ChannelA-DIMM0", "BANK 0"), ("ChannelB-DIMM0", "BANK 2")], 2),
        ([(f"Controller{n}-ChannelA-DIMM0", "BANK 0") for n in (0, 1)], 2),
        ([(f"Controller0-ChannelA-DIMM{n}", "BANK 0") for n in (0, 1)], 1),
        ([(f"Controller{n}-Channel{c}", "BANK 0") for n in (0, 1) for c in "ABCD"], 8),
        ([("Controller0-DIMMA1", "BANK 0"), ("Controller1-DIMMB1", "BANK 0")], 2),
        ([(f"Node0_Channel{n}_Dimm0", "x") for n in (0, 1, 10)], 3),
        ([("DIMM 0", f"P{p}_Node{p}_Channel{n}_Dimm0") for p in (0, 1) for n in (0, 1)], 4),
        ([(f"CPU{n}_DIMM_A{d}", f"NODE {n}") for n in (1, 2) for d in (1, 2)], 2),
        ([(f"CPU0_MC{n}_CH0_DIMM0", "x") for n in (0, 1)], 2),
        ([("DIMM 0", "P0 CHANNEL A"), ("DIMM 0", "P1 CHANNEL A")], 2),
        ([("Channel-A-DIMM-0", "BANK 0"), ("Channel-B-DIMM-0", "BANK 1")], 2),
        ([("slot one", "x"), ("slot two", "y")], None),
    ],
)
def test_channels_are_counted_by_their_labels(
    slots: list[tuple[str, str]], channels: int | None
) -> None:
    """Two modules on one channel are one channel; labels that say nothing leave it unknown.

    Channels of one name on two sockets, nodes or memory controllers are two.
    """
    text = ARRAY + EMPTY
    for slot, bank in slots:
        text += DIMM.format(slot=slot, bank=bank, speed=4800)
    assert parse_dmidecode(text) == Modules(
        count=len(slots), channels=channels, mt_s=4800, kind="DDR5"
    )


def test_the_slowest_module_sets_the_speed() -> None:
    """All channels run at the configured speed of the slowest."""
    text = DIMM.format(slot="DIMM_A1", bank="", speed=5600) + DIMM.format(
        slot="DIMM_B1", bank="", speed=4800
    )
    found = parse_dmidecode(text)
    assert found is not None
    assert found.mt_s == 4800
    assert str(found) == "2x DDR5-4800"


@given(st.text(max_size=200))
def test_any_output_of_dmidecode_is_read_or_passed_over(text: str) -> None:
    """Virtual machines print all kinds of things."""
    assert parse_dmidecode(text) is None or "Memory Device" in text
    parse_dmidecode("Memory Device\n\tSize: 1 GB\n\tConfigured Memory Speed: " + text)


def test_unknown_modules_are_told_with_the_reason() -> None:
    """Without root dmidecode fails, and in a virtual machine it names no speed."""
    assert read_modules(Tools({}))[1] == "dmidecode is not installed"
    assert "needs root" in (
        read_modules(Tools({"dmidecode": failed("Permission denied")}))[1] or ""
    )
    assert "virtual machine" in (read_modules(Tools({"dmidecode": ARRAY}))[1] or "")


def test_bandwidth_needs_the_modules() -> None:
    """Two channels of DDR5-4800 are 76.8 GB/s; without modules only a server's bound is known."""
    modules = Modules(count=4, channels=2, mt_s=4800, kind="DDR5")
    fact, remark = memory_bandwidth(modules, CpuFacts())
    assert fact is not None
    assert fact.value == pytest.approx(76.8)
    assert remark is None
    epyc = CpuFacts(name=measured("AMD EPYC 9654 96-Core Processor", "x"), sockets=measured(2, "x"))
    fact, remark = memory_bandwidth(None, epyc)
    assert fact is None
    assert remark is not None
    assert "2 x 12 channels with DDR-4800 would be 921.6 GB/s" in remark
    assert memory_bandwidth(None, CpuFacts())[0] is None


def test_meminfo_is_read_in_bytes(tmp_path: Path) -> None:
    """KB of the kernel are KiB."""
    put(tmp_path / "meminfo", "MemTotal:       131072 kB\nHugePages_Total:       0\n")
    assert meminfo(tmp_path) == {"MemTotal": 128 * 2**20}
    assert meminfo(tmp_path / "none") == {}


def test_the_smallest_limit_of_all_groups_above_holds(tmp_path: Path) -> None:
    """A group of version 2 is also bound by its parents; ``max`` means no limit."""
    put(tmp_path / "proc/self/cgroup", "0::/a/b\n")
    put(tmp_path / "sys/fs/cgroup/a/b/memory.max", "max\n")
    put(tmp_path / "sys/fs/cgroup/a/memory.max", f"{8 * GIB}\n")
    put(tmp_path / "sys/fs/cgroup/memory.max", f"{16 * GIB}\n")
    limit = memory_limit(tmp_path / "proc", tmp_path / "sys")
    assert limit is not None
    assert limit.value == 8 * GIB
    assert limit.source.endswith("a/memory.max")


def test_groups_of_version_1_are_read(tmp_path: Path) -> None:
    """The number near 2**63 means no limit."""
    put(tmp_path / "proc/self/cgroup", "4:memory:/job\n3:cpuset:/\n")
    file = put(tmp_path / "sys/fs/cgroup/memory/job/memory.limit_in_bytes", f"{4 * GIB}\n")
    limit = memory_limit(tmp_path / "proc", tmp_path / "sys")
    assert limit is not None
    assert limit.value == 4 * GIB
    file.write_text("9223372036854771712\n")
    assert memory_limit(tmp_path / "proc", tmp_path / "sys") is None
    put(tmp_path / "proc/self/cgroup", "0::/../../etc\n")
    assert memory_limit(tmp_path / "proc", tmp_path / "sys") is None
