"""The machine as a rig."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetero_test.launch.query import OUTPUT_LIMIT_BYTES, ToolState
from hetero_test.rig.facts import SYSTEM_POOL, DeviceClass, LinkState, RigFacts
from hetero_test.rig.facts_file import dump_rig, load_rig
from hetero_test.rig.machine import Machine, Sampling
from hetero_test.rig.nvidia import QUERY, import_nvml
from hetero_test.rig.probe import probe_rig
from hetero_test.rig.sourced import Origin, measured
from tests.rig.machines import GIB, Tools, answered, drm, lscpu, machine, pci, put
from tests.rig.test_nvidia import PEERS, TOPOLOGY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.launch.query import ToolResult

IDLE = Sampling()
LOADED = Sampling(under_load=True, seconds=2.0, interval_s=0.5)

SMI_HEADER = (
    "index, name, uuid, pci.bus_id, memory.total [MiB], memory.free [MiB], utilization.gpu [%], "
    "pcie.link.gen.max, pcie.link.gen.current, pcie.link.width.max, pcie.link.width.current, "
    "power.limit [W], driver_version\n"
)


def smi(*rows: str) -> str:
    """Output of nvidia-smi with the columns of the query."""
    return SMI_HEADER + "".join(f"{row}\n" for row in rows)


def rtx_3090(index: int = 0, *, use: int = 0, gen: int = 1, free: int = 24000) -> str:
    """One card."""
    return (
        f"{index}, NVIDIA GeForce RTX 3090, GPU-{index}, 00000000:0{index + 1}:00.0, 24576 MiB, "
        f"{free} MiB, {use} %, 4, {gen}, 16, 4, 350.00 W, 550.1"
    )


def readable(folder: Path, rig: RigFacts) -> RigFacts:
    """The rig, after it went through its own file."""
    path = put(folder / "rig.toml", dump_rig(rig))
    assert load_rig(path) == rig
    return rig


def test_a_machine_without_a_gpu_works_and_says_so(tmp_path: Path) -> None:
    """The CPU is the only device, and each probe that found nothing says why."""
    rig = readable(tmp_path, probe_rig(machine(tmp_path), IDLE))
    assert [device.id for device in rig.devices] == ["CPU"]
    said = "\n".join(rig.notes)
    assert "no accelerator was found" in said
    assert "no NVIDIA device" in said
    assert "nvidia-smi is not installed" in said
    assert "no AMD device" in said
    assert "rocm-smi is not installed" in said
    assert "lspci is not installed" in said
    assert "dmidecode is not installed" in said
    assert "lscpu is not installed" in said
    assert "--no-read-test" in said
    assert rig.taken == "2026-01-02T03:04:05Z"
    assert rig.os is not None
    assert rig.os.value == "Some Linux 1, kernel 6.1.0"


def test_memory_and_processor_are_the_hosts(tmp_path: Path) -> None:
    """Total, available, limit, modules and their bandwidth, each with its source."""
    put(tmp_path / "proc/self/cgroup", "0::/\n")
    put(tmp_path / "sys/fs/cgroup/memory.max", f"{16 * GIB}\n")
    dimm = (
        "Memory Device\n\tSize: 32 GB\n\tLocator: DIMM_{}1\n\tType: DDR5\n"
        "\tConfigured Memory Speed: 4800 MT/s\n\n"
    )
    answers = {
        "lscpu": lscpu(Model__name="AMD Ryzen 9 7950X", **{"Socket(s)": 1, "CPU(s)": 32}),
        "dmidecode": dimm.format("A") + dimm.format("B"),
    }
    rig = readable(tmp_path, probe_rig(machine(tmp_path, answers), IDLE))
    assert rig.memory_bytes is not None
    assert rig.memory_bytes.value == 64 * GIB
    assert rig.memory_available_bytes is not None
    assert rig.memory_available_bytes.value == 32 * GIB
    assert rig.memory_limit_bytes is not None
    assert rig.memory_limit_bytes.value == 16 * GIB
    assert rig.memory_configuration is not None
    assert rig.memory_configuration.value == "2x DDR5-4800"
    cpu = rig.device("CPU")
    assert cpu is not None
    assert cpu.device_class.value is DeviceClass.DESKTOP_CPU
    assert cpu.bandwidth_specified_gb_s is not None
    assert cpu.bandwidth_specified_gb_s.value == pytest.approx(76.8)
    assert cpu.pool is not None
    assert cpu.pool.value == SYSTEM_POOL


def test_an_idle_card_is_read_idle(tmp_path: Path) -> None:
    """Gen1 x4 now, 7.88 GB/s as the path allows, and the state says idle."""
    chain = ["0000:00:01.0", "0000:01:00.0"]
    pci(tmp_path / "sys", chain, dict.fromkeys(chain, ("2.5", 4, "16.0", 4)))
    answers = {"nvidia-smi --query-gpu": smi(rtx_3090())}
    rig = readable(tmp_path, probe_rig(machine(tmp_path, answers), IDLE))
    card = rig.device("CUDA0")
    assert card is not None
    assert card.device_class.value is DeviceClass.DISCRETE_GPU
    assert card.memory_bytes is not None
    assert card.memory_bytes.value == 24576 * 2**20
    assert card.bandwidth_specified_gb_s is not None
    assert card.bandwidth_specified_gb_s.value == 936
    assert card.link is not None
    assert card.link.gen is not None
    assert card.link.gb_s is not None
    assert card.link.state is not None
    assert card.link.state.value is LinkState.IDLE
    assert card.link.gen.value == 1
    assert round(card.link.gb_s.value, 2) == 7.88
    assert card.utilization_percent is not None
    assert card.utilization_percent.value == 0
    assert card.utilization_under_load_percent is None
    assert card.own_pool
    assert rig.driver is not None
    assert rig.driver.value == "NVIDIA 550.1"


def test_under_load_the_best_of_many_looks_counts(tmp_path: Path) -> None:
    """The link retrains while it is watched; utilization is the mean; the state says so."""
    chain = ["0000:00:01.0", "0000:01:00.0"]
    sysfs = tmp_path / "sys"
    pci(sysfs, chain, dict.fromkeys(chain, ("2.5", 4, "16.0", 4)))
    steps = itertools.count()

    def retrain(_: float) -> None:
        if next(steps) == 1:
            for address in chain:
                put(sysfs / "bus/pci/devices" / address / "current_link_speed", "16.0 GT/s PCIe")

    uses = [0, 0, 90, 80, 30]
    answers = {"nvidia-smi --query-gpu": [smi(rtx_3090(use=use)) for use in uses]}
    rig = readable(tmp_path, probe_rig(machine(tmp_path, answers, sleep=retrain), LOADED))
    card = rig.device("CUDA0")
    assert card is not None
    assert card.link is not None
    assert card.link.gen is not None
    assert card.link.gen.value == 4
    assert card.link.state is not None
    assert card.link.state.value is LinkState.UNDER_LOAD
    assert card.link.gb_s is not None
    assert "as seen under load" in card.link.gb_s.source
    busy = card.utilization_under_load_percent
    assert busy is not None
    assert busy.value == pytest.approx(50.0)
    assert card.utilization_percent is None
    assert not any("no load was seen" in note for note in rig.notes)


def test_a_load_that_never_came_is_told(tmp_path: Path) -> None:
    """Asked to watch under load, but nothing ran: the link counts as idle and a note says so."""
    answers = {"nvidia-smi --query-gpu": smi(rtx_3090(use=1))}
    rig = probe_rig(machine(tmp_path, answers), LOADED)
    card = rig.device("CUDA0")
    assert card is not None
    assert card.link is not None
    assert card.link.state is not None
    assert card.link.state.value is LinkState.IDLE
    assert any("CUDA0: no load was seen in 2 s" in note for note in rig.notes)


def test_without_sysfs_the_driver_tells_its_own_port(tmp_path: Path) -> None:
    """Then the source says that the path above it was not seen."""
    answers = {"nvidia-smi --query-gpu": smi(rtx_3090(gen=3))}
    card = probe_rig(machine(tmp_path, answers), IDLE).device("CUDA0")
    assert card is not None
    assert card.link is not None
    assert card.link.gen is not None
    assert card.link.gen.value == 3
    assert "the device's own port alone" in card.link.gen.source


def test_processes_on_the_card_are_named(tmp_path: Path) -> None:
    """By nvidia-smi, with their units; without any, an empty list."""
    put(tmp_path / "proc/77/cgroup", "0::/system.slice/ollama.service\n")
    apps = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
    answers = {
        "nvidia-smi --query-gpu": smi(rtx_3090(0), rtx_3090(1)),
        "nvidia-smi --query-compute-apps": apps + "GPU-0, 77, /usr/bin/ollama, 9000 MiB\n",
    }
    rig = readable(tmp_path, probe_rig(machine(tmp_path, answers), IDLE))
    first, second = rig.devices[:2]
    assert first.held_by is not None
    assert [(h.name, h.unit) for h in first.held_by] == [("ollama", "ollama.service")]
    assert second.held_by == ()


def test_hidden_processes_are_unknown_and_not_nobody(tmp_path: Path) -> None:
    """In a container the card is half full and no process is seen."""
    answers = {
        "nvidia-smi --query-gpu": smi(rtx_3090(free=10_000)),
        "nvidia-smi --query-compute-apps": "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n",
    }
    card = probe_rig(machine(tmp_path, answers), IDLE).device("CUDA0")
    assert card is not None
    assert card.held_by is None


def test_pairs_have_peer_access_and_topology(tmp_path: Path) -> None:
    """By nvidia-smi topo, for every pair of devices."""
    answers = {
        "nvidia-smi --query-gpu": smi(rtx_3090(0), rtx_3090(1), rtx_3090(2)),
        "nvidia-smi topo -m": TOPOLOGY,
        "nvidia-smi topo -p2p": PEERS,
    }
    rig = readable(tmp_path, probe_rig(machine(tmp_path, answers), IDLE))
    pair = rig.pair("CUDA1", "CUDA0")
    assert pair is not None
    assert pair.peer_access is not None
    assert pair.topology is not None
    assert (pair.peer_access.value, pair.topology.value) == (True, "NV4")
    other = rig.pair("CUDA0", "CUDA2")
    assert other is not None
    assert other.peer_access is not None
    assert other.peer_access.value is False


def test_unlike_cards_are_numbered_with_a_warning(tmp_path: Path) -> None:
    """CUDA sorts by speed, this file by PCI; a mask renumbers again."""
    other = rtx_3090(1).replace("RTX 3090", "RTX 3060")
    answers = {"nvidia-smi --query-gpu": smi(rtx_3090(0), other)}
    rig = probe_rig(machine(tmp_path, answers, environment={"CUDA_VISIBLE_DEVICES": "1"}), IDLE)
    assert any("CUDA_DEVICE_ORDER=PCI_BUS_ID" in note for note in rig.notes)
    assert any("CUDA_VISIBLE_DEVICES=1" in note for note in rig.notes)
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    rig = probe_rig(machine(tmp_path, answers, environment=order), IDLE)
    assert not any("CUDA_DEVICE_ORDER" in note for note in rig.notes)


def test_a_superchip_shares_the_systems_memory(tmp_path: Path) -> None:
    """GB10 names no memory: its pool is the system's, and no link stands before it."""
    row = "0, NVIDIA GB10, GPU-9, 0000000F:01:00.0, [N/A], [N/A], 0 %, 5, 1, 16, 1, [N/A], 580.1"
    rig = readable(
        tmp_path, probe_rig(machine(tmp_path, {"nvidia-smi --query-gpu": smi(row)}), IDLE)
    )
    chip = rig.device("CUDA0")
    assert chip is not None
    assert chip.device_class.value is DeviceClass.APU
    assert chip.pool is not None
    assert chip.pool.value == SYSTEM_POOL
    assert chip.memory_bytes is not None
    assert (chip.memory_bytes.value, chip.memory_bytes.origin) == (64 * GIB, Origin.ASSUMED)
    assert chip.link is None
    assert chip.bandwidth_specified_gb_s is not None
    assert chip.bandwidth_specified_gb_s.value == 273


def test_a_card_that_does_not_tell_its_memory_is_still_a_card(tmp_path: Path) -> None:
    """Without the right to see it, the memory is unknown and the card's own, never the system's."""
    untold = "[Insufficient Permissions], [Insufficient Permissions]"
    row = f"0, NVIDIA A100-SXM4-80GB, GPU-9, 00000000:01:00.0, {untold}, 0 %, 4, 4, 16, 16, 400, 1"
    rig = readable(
        tmp_path, probe_rig(machine(tmp_path, {"nvidia-smi --query-gpu": smi(row)}), IDLE)
    )
    card = rig.device("CUDA0")
    assert card is not None
    assert (card.memory_bytes, card.free_bytes) == (None, None)
    assert card.device_class.value is DeviceClass.DISCRETE_GPU
    assert card.device_class.origin is Origin.ASSUMED
    assert card.pool is not None
    assert card.pool.value == "CUDA0"
    assert card.link is not None


def halo(tmp_path: Path) -> Machine:
    """A Strix Halo with 2 GiB carved out of 128."""
    address = "0000:c5:00.0"
    pci(tmp_path / "sys", [address], {address: ("16.0", 16, "16.0", 16)})
    drm(
        tmp_path / "sys",
        0,
        address,
        {
            "vendor": "0x1002",
            "device": "0x1586",
            "mem_info_vram_total": "2147483648",
            "mem_info_vram_used": "1000",
            "mem_info_gtt_total": "122402963456",
        },
    )
    answers = {
        "lscpu": lscpu(Model__name="AMD RYZEN AI MAX+ 395 w/ Radeon 8060S"),
        "rocm-smi --showproductname": json.dumps({"card0": {"Card Series": "N/A"}}),
        "lspci": f"{address} Display controller: Advanced Micro Devices, Inc. [AMD/ATI] "
        "Strix Halo [Radeon Graphics / Radeon 8050S Graphics / Radeon 8060S Graphics] (rev c1)\n",
    }
    return machine(tmp_path, answers, memory=121 * GIB)


def test_an_apu_is_one_pool_with_its_processor(tmp_path: Path) -> None:
    """Carve-out and window are noted, neither adds, and the reported link has no meaning."""
    rig = readable(tmp_path, probe_rig(halo(tmp_path), IDLE))
    gpu, cpu = rig.device("ROCm0"), rig.device("CPU")
    assert gpu is not None
    assert cpu is not None
    assert gpu.pool is not None
    assert cpu.pool is not None
    assert gpu.pool.value == cpu.pool.value == SYSTEM_POOL
    assert gpu.carve_out_bytes is not None
    assert gpu.carve_out_bytes.value == 2147483648
    assert gpu.gtt_bytes is not None
    assert gpu.gtt_bytes.value == 122402963456
    assert gpu.link is None
    for device in (gpu, cpu):
        assert device.bandwidth_specified_gb_s is not None
        assert device.bandwidth_specified_gb_s.value == 256
    assert any("neither capacity nor bandwidth" in note for note in rig.notes)


def test_ggmls_word_in_a_log_decides(tmp_path: Path) -> None:
    """A log with uma: 0 makes it a card; where no log tells, its name decides."""
    assert probe_rig(halo(tmp_path), IDLE, uma=False).devices[0].own_pool
    (tmp_path / "second").mkdir()
    assert probe_rig(halo(tmp_path / "second"), IDLE, uma=None).devices[0].own_pool is False


def test_a_card_beside_an_apu(tmp_path: Path) -> None:
    """Each is what it is, in the order of their addresses, with the card's own memory."""
    apu = halo(tmp_path)
    drm(
        tmp_path / "sys",
        1,
        "0000:03:00.0",
        {
            "vendor": "0x1002",
            "device": "0x73bf",
            "product_name": "AMD Radeon RX 6800 XT",
            "mem_info_vram_total": str(16 * GIB),
            "mem_info_vram_used": str(GIB),
            "mem_info_gtt_total": str(60 * GIB),
        },
    )
    rig = readable(tmp_path, probe_rig(apu, IDLE))
    card, gpu = rig.device("ROCm0"), rig.device("ROCm1")
    assert card is not None
    assert gpu is not None
    assert (card.own_pool, gpu.own_pool) == (True, False)
    assert card.bandwidth_specified_gb_s is not None
    assert card.bandwidth_specified_gb_s.value == 512
    assert card.free_bytes is not None
    assert card.free_bytes.value == 15 * GIB


def test_amd_by_rocm_smi_alone(tmp_path: Path) -> None:
    """Without sysfs each pool is asked for in a call of its own."""
    answers = {
        "rocm-smi --showmeminfo vram": "GPU[0] : VRAM Total Memory (B): 34342961152\n",
        "rocm-smi --showmeminfo gtt": "GPU[0] : GTT Total Memory (B): 1000\n",
        "rocm-smi --showproductname": "GPU[0] : Card Series: AMD Instinct MI100\n",
    }
    rig = readable(tmp_path, probe_rig(machine(tmp_path, answers), IDLE))
    card = rig.device("ROCm0")
    assert card is not None
    assert card.memory_bytes is not None
    assert card.memory_bytes.value == 34342961152
    assert card.gtt_bytes is not None
    assert card.gtt_bytes.value == 1000
    assert card.own_pool


def test_a_tool_that_hangs_is_a_note(tmp_path: Path) -> None:
    """A rocm-smi that hangs is asked once only."""
    tools = Tools({})

    def run(argv: Sequence[str]) -> ToolResult:
        result = tools(argv)
        if argv[0] == "rocm-smi":
            return type(result)(argv=tuple(argv), state=ToolState.TIMED_OUT)
        return result

    rig = probe_rig(machine(tmp_path, run=run), IDLE)
    assert any("did not answer in time" in note for note in rig.notes)
    assert sum(line.startswith("rocm-smi") for line in tools.asked) == 1


@pytest.mark.parametrize(
    ("words", "kind", "gb_s"),
    [
        ("Intel Corporation DG2 [Arc A770] (rev 08)", DeviceClass.DISCRETE_GPU, None),
        ("Intel Corporation Battlemage G21 [Arc B580]", DeviceClass.DISCRETE_GPU, 456),
        ("Intel Corporation Raptor Lake-S GT1 [UHD Graphics 770]", DeviceClass.APU, None),
    ],
)
def test_cards_of_other_makers_are_listed(
    tmp_path: Path, words: str, kind: DeviceClass, gb_s: float | None
) -> None:
    """With lspci's description; a note says that their numbers in the engine are unknown."""
    drm(tmp_path / "sys", 0, "0000:03:00.0", {"vendor": "0x8086"})
    drm(tmp_path / "sys", 1, "0000:04:00.0", {"vendor": "0x1a03"})
    answers = {"lspci": f"0000:03:00.0 VGA compatible controller: {words}\n"}
    rig = readable(tmp_path, probe_rig(machine(tmp_path, answers), IDLE))
    assert [device.id for device in rig.devices] == ["Vulkan0", "CPU"]
    card = rig.devices[0]
    assert card.device_class.value is kind
    assert card.own_pool is (kind is DeviceClass.DISCRETE_GPU)
    bandwidth = card.bandwidth_specified_gb_s
    assert (bandwidth.value if bandwidth else None) == gb_s
    assert any("guesses at the engine's numbers" in note for note in rig.notes)


def test_the_read_test_gets_the_cores_and_a_part_of_what_is_free(tmp_path: Path) -> None:
    """The result is the CPU's fact; beside other work a note says so."""
    asked: list[tuple[int, int]] = []

    def test(size: int, threads: int) -> Any:
        asked.append((size, threads))
        return measured(40.0, "read test")

    answers = {"lscpu": lscpu(**{"Socket(s)": 1, "Core(s)__per__socket": 8})}
    quiet = machine(tmp_path, answers, read_test=test)
    cpu = probe_rig(quiet, IDLE).device("CPU")
    assert cpu is not None
    assert cpu.bandwidth_measured_gb_s == measured(40.0, "read test")
    assert asked == [(GIB // 2, 8)]
    busy = machine(tmp_path, answers, read_test=test, loads=lambda: (9.0, 9.0, 9.0))
    rig = probe_rig(busy, IDLE)
    assert any("beside other work" in note for note in rig.notes)
    loaded = rig.device("CPU")
    assert loaded is not None
    fact = loaded.bandwidth_measured_gb_s
    assert fact is not None
    assert (fact.value, fact.low, fact.high) == (40.0, 40.0, 85.0)
    assert fact.source == ("read test, beside other work (load 9.0 on 8 cores): may be too low")


def test_heavy_processes_are_named_on_the_host(tmp_path: Path) -> None:
    """A process with a twentieth of the memory is named."""
    put(tmp_path / "proc/5/status", f"VmRSS: {30 * GIB // 1024} kB\n")
    put(tmp_path / "proc/5/comm", "postgres")
    put(tmp_path / "proc/6/status", "VmRSS: 100 kB\n")
    cpu = probe_rig(machine(tmp_path), IDLE).device("CPU")
    assert cpu is not None
    assert cpu.held_by is not None
    assert [(h.name, h.memory_bytes) for h in cpu.held_by] == [("postgres", 30 * GIB)]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(max_size=60), rows=st.text(alphabet="0,1 \nNA[]/:.GiBMx", max_size=60))
def test_whatever_tools_say_a_rig_comes_out(tmp_path: Path, text: str, rows: str) -> None:
    """Every tool answers nonsense; the rig is still one that its file can hold."""

    def run(argv: Sequence[str]) -> ToolResult:
        header = SMI_HEADER if argv[0] == "nvidia-smi" else ""
        return answered(argv, header + rows + "\n" + text)

    rig = readable(tmp_path, probe_rig(machine(tmp_path, run=run), IDLE))
    ids = [device.id for device in rig.devices]
    assert "CPU" in ids
    assert len(set(ids)) == len(ids)
    assert rig.taken is not None


@pytest.mark.process
def test_this_machine_is_a_rig(tmp_path: Path) -> None:
    """The real probes on the real machine: a CPU, a memory, and a file that reads back."""
    rig = readable(tmp_path, probe_rig(Machine(nvml=import_nvml()), IDLE))
    cpu = rig.device("CPU")
    assert cpu is not None
    assert rig.memory_bytes is not None
    assert rig.memory_bytes.value > 2**28
    assert rig.taken is not None


JUNK = {
    "one line": "junk, " * (OUTPUT_LIMIT_BYTES // 6),
    "lines": "junk\n" * (OUTPUT_LIMIT_BYTES // 5),
    "rows": "a,b\n" * (OUTPUT_LIMIT_BYTES // 4),
    "cards": "name\n" + "Some Card\n" * (OUTPUT_LIMIT_BYTES // 10),
    "devices": ", ".join(QUERY) + "\n" + ("1, " * len(QUERY))[:-2] + "\n",
    "blocks": "GPU[0] : a : b\n" * (OUTPUT_LIMIT_BYTES // 15),
    "addresses": "00:00.0 a\n" * (OUTPUT_LIMIT_BYTES // 10),
    "words": "a " * (OUTPUT_LIMIT_BYTES // 2),
    "tabs": "\t" * OUTPUT_LIMIT_BYTES,
    "digits": "1" * OUTPUT_LIMIT_BYTES,
    "blanks": " " * OUTPUT_LIMIT_BYTES,
    "brackets": "[" * OUTPUT_LIMIT_BYTES,
}
JUNK["devices"] += (JUNK["devices"].split("\n")[1] + "\n") * 30_000


@pytest.mark.parametrize("junk", JUNK)
def test_junk_of_any_tool_takes_no_time_and_is_no_device(tmp_path: Path, junk: str) -> None:
    """Every tool prints as much junk as it may: the probe ends in seconds, and finds no card."""
    names = ("nvidia-smi", "rocm-smi", "lspci", "lscpu", "dmidecode", "xpu-smi", "numactl")
    began = time.monotonic()
    rig = probe_rig(machine(tmp_path, dict.fromkeys(names, JUNK[junk])), IDLE)
    assert time.monotonic() - began < 10
    assert not [device for device in rig.devices if device.id.startswith("CUDA")]
