"""NVIDIA devices by nvidia-smi and NVML."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.rig import nvidia
from hetero_test.rig.links import LinkSpeed
from hetero_test.rig.nvidia import (
    Holding,
    NvidiaDevice,
    parse_holders,
    parse_peer_access,
    parse_smi,
    parse_table,
    parse_topology,
    query,
)
from tests.rig.machines import Tools, failed

MIB = 2**20

H100 = """\
index, pci.bus_id, pcie.link.gen.max, pcie.link.gen.current, pcie.link.width.max, \
pcie.link.width.current
7, 00000000:E3:00.0, 5, 4, 16, 16
"""
A100 = """\
index, name, uuid, pci.bus_id, pcie.link.gen.max, pcie.link.gen.current, \
pcie.link.width.max, pcie.link.width.current, memory.total [MiB], power.limit [W], driver_version
0, NVIDIA A100-SXM4-80GB, GPU-1, 00000000:07:00.0, 4, 4, 16, 16, 81920 MiB, 400.00 W, 535.104.12
"""


def test_a_link_with_header_is_read() -> None:
    """Generation and width, now and at most, by the names of the columns."""
    (device,) = parse_smi(H100)
    assert device.index == 7
    assert device.address == "0000:e3:00.0"
    assert device.capable == LinkSpeed(gen=5, width=16)
    assert device.now == LinkSpeed(gen=4, width=16)


def test_units_in_header_and_cells_are_read() -> None:
    """``memory.total [MiB]`` and ``81920 MiB`` are one thing."""
    (device,) = parse_smi(A100)
    assert device.name == "NVIDIA A100-SXM4-80GB"
    assert device.uuid == "GPU-1"
    assert device.memory_bytes == 81920 * MIB
    assert device.power_limit_w == 400.0
    assert device.driver == "535.104.12"
    assert not device.unified


def test_old_drivers_write_mb() -> None:
    """``[MB]`` of old drivers means the same MiB."""
    (device,) = parse_smi("name, memory.total [MB]\nTesla P40, 22919 MB\n")
    assert device.memory_bytes == 22919 * MIB


def test_output_without_header_and_units_is_read_by_the_fields_asked_for() -> None:
    """csv,noheader,nounits: four bare numbers."""
    fields = (
        "pcie.link.gen.max",
        "pcie.link.gen.current",
        "pcie.link.width.max",
        "pcie.link.width.current",
    )
    (device,) = parse_smi("4, 4, 16, 16\n", fields)
    assert device.now == device.capable == LinkSpeed(gen=4, width=16)


@pytest.mark.parametrize(
    ("line", "unified"),
    [
        ("N/A, Orin (nvgpu)", True),
        ("24564, NVIDIA GeForce RTX 4090", False),
        ("[N/A], NVIDIA GB10", True),
        ("0, NVIDIA Thor", True),
        ("24564 MiB, NVIDIA GeForce RTX 4090", False),
        ("[Insufficient Permissions], NVIDIA A100-SXM4-80GB", False),
        ("[GPU requires reset], NVIDIA H100 PCIe", False),
        ("[Unknown Error], Quadro RTX 6000", False),
        ("[Not Supported], Tesla T4", False),
        ("ERR!, NVIDIA L4", False),
        ("0, NVIDIA GeForce RTX 3060", False),
    ],
)
def test_devices_without_memory_of_their_own_are_unified(line: str, unified: bool) -> None:
    """A device within a system on a chip has no memory of its own, and N/A, [N/A] or 0 is told.

    Of a card whose memory the driver does not tell, the memory is unknown and no more.
    """
    (device,) = parse_smi(line, ("memory.total", "name"))
    assert device.unified is unified
    assert device.name == line.split(", ")[1]


@pytest.mark.parametrize(
    "words",
    [
        "N/A",
        "[N/A]",
        "[Not Supported]",
        "[Insufficient Permissions]",
        "[GPU requires reset]",
        "[Unknown Error]",
        "[GPU is lost]",
        "[Some words of tomorrow]",
        "ERR!",
    ],
)
def test_words_in_the_place_of_a_value_are_no_value(words: str) -> None:
    """Whatever the driver puts there is neither a number nor a name."""
    columns = ("index", "name", "uuid", "memory.total", "memory.free", "power.limit")
    (device,) = parse_smi(", ".join(["0", *[words] * 5]), columns)
    assert device == NvidiaDevice(index=0)


def test_unknown_values_are_none() -> None:
    """What a driver does not know is not 0."""
    (device,) = parse_smi(
        "index, utilization.gpu [%], power.limit [W]\n0, [N/A], [Not Supported]\n"
    )
    assert device.utilization_percent is None
    assert device.power_limit_w is None


@given(st.text(alphabet="0,1 \nNA[]/:.GiBMx", max_size=120))
def test_any_table_is_read_or_passed_over(text: str) -> None:
    """Rows that do not fit their header are no devices."""
    parse_smi(text)
    parse_smi(text, ("index", "pci.bus_id"))
    for row in parse_table("index, name\n" + text):
        assert set(row) <= {"index", "name"}


def test_no_driver_is_a_result_with_a_reason() -> None:
    """A missing tool and one that finds no driver both say so."""
    assert query(Tools({}))[1].trouble == "nvidia-smi is not installed"
    words = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    devices, result = query(Tools({"nvidia-smi": failed(words, 9)}))
    assert devices == ()
    assert "couldn't communicate" in result.trouble


def test_processes_are_read_by_device() -> None:
    """pid, name and memory; a process of unknown memory counts as well."""
    text = """\
gpu_uuid, pid, process_name, used_gpu_memory [MiB]
GPU-1, 4242, /usr/bin/llama-server, 20480 MiB
GPU-1, 4243, python, [N/A]
GPU-2, 1, x, 5 MiB
"""
    assert parse_holders(text)["GPU-1"] == (
        Holding(pid=4242, name="/usr/bin/llama-server", memory_bytes=20480 * MIB),
        Holding(pid=4243, name="python"),
    )


TOPOLOGY = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\x1b[0m
GPU0\t X \tNV4\tPHB\t0-15\t0
GPU1\tNV4\t X \tSYS\t0-15\t0
GPU2\tPHB\tSYS\t X \t0-15\t0

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect
"""
PEERS = """\
 \tGPU0\tGPU1\tGPU2\t
 GPU0\tX\tOK\tCNS\t
 GPU1\tOK\tX\tCNS\t
 GPU2\tCNS\tCNS\tX\t

Legend:

  X   = Self
  OK  = Status Ok
  CNS = Chipset not supported
"""


def test_the_matrices_are_read() -> None:
    """Words of the topology and peer access by pair, lower number first."""
    assert parse_topology(TOPOLOGY) == {(0, 1): "NV4", (0, 2): "PHB", (1, 2): "SYS"}
    assert parse_peer_access(PEERS) == {(0, 1): True, (0, 2): False, (1, 2): False}


@given(st.text(alphabet="GPU012 X\tOK\nNV4=", max_size=80))
def test_any_matrix_is_read_or_passed_over(text: str) -> None:
    """No text makes the readers fail, and no device is its own peer."""
    for first, second in [*parse_topology(text), *parse_peer_access(text)]:
        assert first < second


class FakeNvml:
    """A library with two devices; the second supports little."""

    class NVMLError(Exception):
        """What every call may raise."""

    def __init__(self, *, driver: bool = True) -> None:
        self.driver = driver
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802
        """Begin."""
        if not self.driver:
            raise self.NVMLError("NVML Shared Library Not Found")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        """End."""
        self.open -= 1

    def __getattr__(self, name: str) -> Any:
        """Answers of a 3090 (handle 0) and of a device that supports nothing (handle 1)."""
        answers: dict[str, Any] = {
            "nvmlDeviceGetName": "NVIDIA GeForce RTX 3090",
            "nvmlDeviceGetUUID": b"GPU-0",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=24 * 2**30, free=20 * 2**30),
            "nvmlDeviceGetPciInfo": SimpleNamespace(busId="00000000:01:00.0"),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=37, memory=5),
            "nvmlDeviceGetPowerManagementLimit": 350_000,
            "nvmlDeviceGetCurrPcieLinkGeneration": 1,
            "nvmlDeviceGetCurrPcieLinkWidth": 16,
            "nvmlDeviceGetMaxPcieLinkGeneration": 4,
            "nvmlDeviceGetMaxPcieLinkWidth": 16,
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=7, usedGpuMemory=None)],
            "nvmlDeviceGetGraphicsRunningProcesses": [SimpleNamespace(pid=7, usedGpuMemory=9)],
        }
        fixed: dict[str, Any] = {
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlSystemGetDriverVersion": lambda: "550.1",
            "nvmlDeviceGetP2PStatus": lambda *_: 1,
            "nvmlDeviceGetTopologyCommonAncestor": lambda *_: 30,
        }
        if name in fixed:
            return fixed[name]

        def ask(handle: int) -> Any:
            if handle == 1:
                raise self.NVMLError("Not Supported")
            return answers[name]

        return ask


def test_nvml_tells_devices_peers_and_processes() -> None:
    """Names as bytes or text, processes once each, and the words of the topology."""
    library = FakeNvml()
    answer = nvidia.query_nvml(library)
    first, second = answer.devices
    assert (first.name, first.uuid, first.address) == (
        "NVIDIA GeForce RTX 3090",
        "GPU-0",
        "0000:01:00.0",
    )
    assert first.memory_bytes == 24 * 2**30
    assert first.now == LinkSpeed(gen=1, width=16)
    assert first.power_limit_w == 350.0
    assert first.utilization_percent == 37.0
    assert first.holders == (Holding(pid=7),)
    assert first.driver == "550.1"
    assert answer.peer_access == {(0, 1): False}
    assert answer.topology == {(0, 1): "PHB"}
    assert second.name is None
    assert second.holders is None
    assert second.memory_bytes is None
    assert not second.unified
    assert library.open == 0


def test_nvml_without_driver_or_library_says_why() -> None:
    """Neither is an error."""
    assert nvidia.query_nvml(None).trouble == "the library nvidia-ml-py is not installed"
    trouble = nvidia.query_nvml(FakeNvml(driver=False)).trouble
    assert trouble is not None
    assert "Not Found" in trouble


def test_the_real_library_answers_or_says_why() -> None:
    """On whatever machine this runs, the library's own module is understood."""
    answer = nvidia.query_nvml(nvidia.import_nvml())
    assert answer.devices or answer.trouble
