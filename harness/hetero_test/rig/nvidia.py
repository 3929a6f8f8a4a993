"""NVIDIA devices, by ``nvidia-smi`` in CSV and by the library NVML.

The columns are found by their names, so any order and any selection is read, with or without a
header and units. What a driver does not know or does not tell (``N/A``, ``ERR!``, and whatever
stands in brackets: ``[Not Supported]``, ``[GPU requires reset]``) is None.

NVML (package ``nvidia-ml-py``) gives the same facts faster, with processes and peer access. Every
call may fail alone ("not supported" on laptops, Jetson, in containers); that fact is None.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from hetero_test.launch.query import ToolResult, ToolState
from hetero_test.rig.links import LinkSpeed, full_address, link_speed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hetero_test.launch.query import Runner

QUERY = (
    "index",
    "name",
    "uuid",
    "pci.bus_id",
    "memory.total",
    "memory.free",
    "utilization.gpu",
    "pcie.link.gen.max",
    "pcie.link.gen.current",
    "pcie.link.width.max",
    "pcie.link.width.current",
    "power.limit",
    "driver_version",
)
APPS_QUERY = ("gpu_uuid", "pid", "process_name", "used_memory")

_UNKNOWN = re.compile(
    r"\[[^\[\]]*\]\Z|(?:n/?a|err!?|not supported|unknown error|insufficient permissions|"
    r"gpu requires reset|gpu is lost|no data)\Z",
    re.I,
)
"""In brackets the driver puts words in the place of a value, whatever the words are."""
_INTEGRATED = re.compile(r"\b(?:nvgpu|GB10|Jetson|Tegra|Orin|Thor|Xavier)\b", re.I)
"""Devices within a system on a chip, by the driver's name for them. They share its memory."""
MOST_ROWS = 4096
"""Of cards or processes; what comes behind them is not read."""
MOST_DEVICES = 256
"""More lines than any machine has cards are no list of cards."""
_BUS_ID = re.compile(r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\Z")
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*(?:MiB|MB|W|%)?\Z")
_UNIT = re.compile(r"\s*\[(?:MiB|MB|W|%)\]\Z")
_TOPOLOGY_CELL = re.compile(r"NV\d{1,2}|PIX|PXB|PHB|NODE|SYS|X\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A process on a device."""

    pid: int
    name: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NvidiaDevice:
    """One device, by the driver's own number (PCI order)."""

    index: int | None = None
    name: str | None = None
    uuid: str | None = None
    address: str | None = None
    """``0000:01:00.0``."""
    memory_bytes: int | None = None
    """None where the driver does not tell it: of a device that shares the system's memory (GB10,
    Jetson), and of a card where rights are missing or the card has failed."""
    free_bytes: int | None = None
    utilization_percent: float | None = None
    now: LinkSpeed | None = None
    capable: LinkSpeed | None = None
    """Of the device and the slot together (``gen.max`` is the minimum of both)."""
    power_limit_w: float | None = None
    driver: str | None = None
    holders: tuple[Holding, ...] | None = None
    """None: could not be seen."""

    @property
    def unified(self) -> bool:
        """Whether it shares the system's memory, by its name.

        That the driver names no memory is not enough: it does not for a card either, where
        rights are missing or the card needs a reset.
        """
        return not self.memory_bytes and _INTEGRATED.search(self.name or "") is not None


def parse_smi(text: str, columns: Sequence[str] | None = None) -> tuple[NvidiaDevice, ...]:
    """The devices in the output of ``nvidia-smi --query-gpu=… --format=csv[,noheader][,nounits]``.

    Args:
        text: the output.
        columns: the fields asked for, where the output has no header.
    """
    return tuple(_device(row) for row in parse_table(text, columns))


def parse_table(text: str, columns: Sequence[str] | None = None) -> tuple[dict[str, str], ...]:
    """Rows of nvidia-smi's CSV by column name, without units in the names and unknown values.

    The format quotes nothing, so a comma always parts two cells.
    """
    lines = (line for line in text.splitlines() if "," in line)
    rows = [[cell.strip() for cell in line.split(",")] for line in islice(lines, MOST_ROWS)]
    if columns is None:
        if not rows:
            return ()
        columns = [_UNIT.sub("", name) for name in rows.pop(0)]
    return tuple(
        {
            name: cell
            for name, cell in zip(columns, row, strict=True)
            if cell and not _UNKNOWN.match(cell)
        }
        for row in rows
        if len(row) == len(columns)
    )


def query(run: Runner) -> tuple[tuple[NvidiaDevice, ...], ToolResult]:
    """Ask nvidia-smi for all devices; the result says why there are none."""
    result = run(("nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv"))
    devices = parse_smi(result.stdout) if result.state is ToolState.ANSWERED else ()
    if len(devices) > MOST_DEVICES:
        return (), replace(result, state=ToolState.ENDLESS)
    return devices, result


def query_holders(run: Runner) -> dict[str, tuple[Holding, ...]] | None:
    """Processes by the device's uuid; None where nvidia-smi does not say."""
    result = run(("nvidia-smi", f"--query-compute-apps={','.join(APPS_QUERY)}", "--format=csv"))
    if result.state is not ToolState.ANSWERED:
        return None
    return parse_holders(result.stdout)


def parse_holders(text: str) -> dict[str, tuple[Holding, ...]]:
    """Processes by the device's uuid, from ``--query-compute-apps``."""
    found: dict[str, tuple[Holding, ...]] = {}
    for row in parse_table(text):
        pid = _whole(row.get("pid"))
        uuid = row.get("gpu_uuid")
        if pid is None or uuid is None:
            continue
        used = row.get("used_gpu_memory", row.get("used_memory"))
        holding = Holding(pid=pid, name=row.get("process_name", ""), memory_bytes=_mib(used))
        found[uuid] = (*found.get(uuid, ()), holding)
    return found


def parse_topology(text: str) -> dict[tuple[int, int], str]:
    """Words of the matrix of ``nvidia-smi topo -m`` by pair of devices, lower number first."""
    return _matrix(text, lambda cell: bool(_TOPOLOGY_CELL.match(cell)))


def parse_peer_access(text: str) -> dict[tuple[int, int], bool]:
    """Whether each pair can read each other, from ``nvidia-smi topo -p2p r``."""
    words = _matrix(text, lambda cell: cell.isupper())
    return {pair: word == "OK" for pair, word in words.items()}


def _matrix(text: str, sound: Callable[[str], bool]) -> dict[tuple[int, int], str]:
    columns: list[int] = []
    found: dict[tuple[int, int], str] = {}
    for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines():
        cells = line.split()
        row = re.fullmatch(r"GPU(\d{1,3})", cells[0]) if cells else None
        if row is None:
            continue
        if (len(cells) > 1 and re.fullmatch(r"GPU\d{1,3}", cells[1])) or not columns:
            columns = [int(cell[3:]) for cell in cells if re.fullmatch(r"GPU\d{1,3}", cell)]
            continue
        for column, cell in zip(columns, cells[1:], strict=False):
            first, second = sorted((int(row[1]), column))
            if first != second and sound(cell):
                found.setdefault((first, second), cell)
    return found


def _device(row: Mapping[str, str]) -> NvidiaDevice:
    address = row.get("pci.bus_id", row.get("gpu_bus_id"))
    return NvidiaDevice(
        index=_whole(row.get("index")),
        name=row.get("name", row.get("gpu_name")),
        uuid=row.get("uuid", row.get("gpu_uuid")),
        address=_address(address),
        memory_bytes=_mib(row.get("memory.total")),
        free_bytes=_mib(row.get("memory.free")),
        utilization_percent=_number(row.get("utilization.gpu")),
        now=_link(row, "current"),
        capable=_link(row, "max"),
        power_limit_w=_number(row.get("power.limit")),
        driver=row.get("driver_version"),
    )


def _link(row: Mapping[str, str], which: str) -> LinkSpeed | None:
    gen = _whole(row.get(f"pcie.link.gen.{which}"))
    width = _whole(row.get(f"pcie.link.width.{which}"))
    return link_speed(gen, width)


def _address(text: str | None) -> str | None:
    if (
        text is None
        or not re.fullmatch(r"[0-9a-fA-F:.]{7,16}", text)
        or text.count(":") not in {1, 2}
    ):
        return None
    return full_address(text)


def _number(text: str | None) -> float | None:
    found = _NUMBER.match(text) if text else None
    return float(found[1]) if found else None


def _whole(text: str | None) -> int | None:
    value = _number(text)
    return int(value) if value is not None else None


def _mib(text: str | None) -> int | None:
    """Bytes of what nvidia-smi calls MiB, and MB in old drivers; 0, for unknown, is None."""
    value = _number(text)
    return int(value * 2**20) if value else None


TOPOLOGY_WORDS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""``nvmlGpuTopologyLevel_t`` in the words of ``nvidia-smi topo -m``."""


P2P_CAPS_INDEX_READ = 0
P2P_STATUS_OK = 0
"""Of ``nvml.h``; the library's own constant for the first is a tuple by mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlAnswer:
    """What the library said; `trouble` says why it said nothing."""

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


def query_nvml(nvml: Any | None) -> NvmlAnswer:
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
        devices=tuple(_nvml_device(nvml, i, handle, driver) for i, handle in enumerate(handles)),
        peer_access=peer or None,
        topology=topology or None,
    )


def _nvml_device(nvml: Any, index: int, handle: Any, driver: str | None) -> NvidiaDevice:
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
    """Compute and graphics processes, each once; None where the driver lists neither."""
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
