"""NVIDIA devices through NVML, where the library ``nvidia-ml-py`` and a driver are there.

It tells what ``nvidia-smi`` tells, faster, and processes and peer access in one go. Every call
may fail alone ("not supported" on laptops, Jetson, in containers): such a fact is None.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.triage.links import full_address, link_speed
from harness.triage.nvidia import Holding, NvidiaDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOPOLOGY_WORDS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""``nvmlGpuTopologyLevel_t`` in the words of ``nvidia-smi topo -m``."""


P2P_CAPS_INDEX_READ = 0
P2P_STATUS_OK = 0
"""Of ``nvml.h``; the library's own constant for the first is a tuple by mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlAnswer:
    """What the library told; `trouble` says why there is nothing."""

    devices: tuple[NvidiaDevice, ...] = ()
    peer_access: dict[tuple[int, int], bool] | None = None
    topology: dict[tuple[int, int], str] | None = None
    trouble: str | None = None


def import_nvml() -> Any | None:
    """The module ``pynvml`` of the package nvidia-ml-py; None where it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def query(nvml: Any | None) -> NvmlAnswer:
    """Ask the library; never raises.

    Args:
        nvml: the module, or something like it; None: not installed.
    """
    if nvml is None:
        return NvmlAnswer(trouble="the library nvidia-ml-py is not installed")
    try:
        with _session(nvml):
            return _answer(nvml)
    except nvml.NVMLError as error:
        return NvmlAnswer(trouble=f"NVML is not available: {error}")


@contextmanager
def _session(nvml: Any) -> Iterator[None]:
    nvml.nvmlInit()
    try:
        yield
    finally:
        nvml.nvmlShutdown()


def _answer(nvml: Any) -> NvmlAnswer:
    driver = _text(_ask(nvml, nvml.nvmlSystemGetDriverVersion))
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    peer: dict[tuple[int, int], bool] = {}
    topology: dict[tuple[int, int], str] = {}
    for i, first in enumerate(handles):
        for j, second in enumerate(handles[:i]):
            asked = (first, second, P2P_CAPS_INDEX_READ)
            status = _ask(nvml, nvml.nvmlDeviceGetP2PStatus, *asked)
            if status is not None:
                peer[j, i] = status == P2P_STATUS_OK
            level = _ask(nvml, nvml.nvmlDeviceGetTopologyCommonAncestor, first, second)
            if level in TOPOLOGY_WORDS:
                topology[j, i] = TOPOLOGY_WORDS[level]
    return NvmlAnswer(
        devices=tuple(_device(nvml, i, handle, driver) for i, handle in enumerate(handles)),
        peer_access=peer or None,
        topology=topology or None,
    )


def _device(nvml: Any, index: int, handle: Any, driver: str | None) -> NvidiaDevice:
    def ask(name: str, *arguments: object) -> Any | None:
        return _ask(nvml, getattr(nvml, name), handle, *arguments)

    memory = ask("nvmlDeviceGetMemoryInfo")
    pci = ask("nvmlDeviceGetPciInfo")
    utilization = ask("nvmlDeviceGetUtilizationRates")
    limit_mw = ask("nvmlDeviceGetPowerManagementLimit")
    address = _text(pci.busId) if pci is not None else None
    return NvidiaDevice(
        index=index,
        name=_text(ask("nvmlDeviceGetName")),
        uuid=_text(ask("nvmlDeviceGetUUID")),
        address=full_address(address) if address else None,
        memory_bytes=(int(memory.total) or None) if memory is not None else None,
        free_bytes=int(memory.free) if memory is not None and memory.total else None,
        utilization_percent=float(utilization.gpu) if utilization is not None else None,
        now=link_speed(
            ask("nvmlDeviceGetCurrPcieLinkGeneration"), ask("nvmlDeviceGetCurrPcieLinkWidth")
        ),
        capable=link_speed(
            ask("nvmlDeviceGetMaxPcieLinkGeneration"), ask("nvmlDeviceGetMaxPcieLinkWidth")
        ),
        power_limit_w=limit_mw / 1000 if limit_mw is not None else None,
        driver=driver,
        holders=_holders(ask),
    )


def _holders(ask: Callable[[str], Any | None]) -> tuple[Holding, ...] | None:
    """Compute and graphics processes, each once; None where the driver tells neither."""
    found: dict[int, Holding] = {}
    told = False
    for name in (
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetGraphicsRunningProcesses",
    ):
        processes = ask(name)
        told = told or processes is not None
        for process in processes or ():
            used = process.usedGpuMemory
            found.setdefault(process.pid, Holding(pid=process.pid, memory_bytes=used or None))
    return tuple(found.values()) if told else None


def _ask(nvml: Any, call: Callable[..., Any], *arguments: object) -> Any | None:
    """The answer of one call; None where it is not supported here."""
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None


def _text(value: Any | None) -> str | None:
    """Text of a value that older releases give as bytes."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    return str(value) if value else None
