"""NVIDIA devices, as ``nvidia-smi`` tells them in CSV.

The columns are found by their names, so any order and any selection is read, with or without
a header and units. What a driver cannot tell (``N/A``, ``[N/A]``, ``[Not Supported]``) is None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.triage.links import LinkSpeed, full_address, link_speed
from harness.triage.tools import ToolResult, ToolState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.triage.tools import Runner

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
    r"\[?(?:n/?a|not supported|unknown error|insufficient permissions)\]?\Z", re.I
)
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
    """None on devices that share the system's memory (GB10, Jetson)."""
    free_bytes: int | None = None
    utilization_percent: float | None = None
    now: LinkSpeed | None = None
    capable: LinkSpeed | None = None
    """Of the device and the slot together (``gen.max`` is the minimum of both)."""
    power_limit_w: float | None = None
    driver: str | None = None
    addressing: str | None = None
    """``addressing_mode``: ``HMM``, ``ATS`` or None."""
    holders: tuple[Holding, ...] | None = None
    """None: could not be seen."""

    @property
    def unified(self) -> bool:
        """Whether it shares the system's memory: the driver names no memory of its own."""
        return not self.memory_bytes


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
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
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
    """Ask nvidia-smi for all devices; the result tells why there are none."""
    fields = [*QUERY, "addressing_mode"]
    result = run(("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv"))
    if result.state is ToolState.FAILED and "addressing_mode" in result.stdout + result.stderr:
        # Drivers before 535 refuse the whole query for one field that they do not know.
        result = run(("nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv"))
    devices = parse_smi(result.stdout) if result.state is ToolState.ANSWERED else ()
    return devices, result


def query_holders(run: Runner) -> dict[str, tuple[Holding, ...]] | None:
    """Processes by the device's uuid; None where nvidia-smi does not tell."""
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
        addressing=None if row.get("addressing_mode") == "None" else row.get("addressing_mode"),
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
    """Bytes of what nvidia-smi calls MiB, and MB in old drivers; 0 where it knows none is None."""
    value = _number(text)
    return int(value * 2**20) if value else None
