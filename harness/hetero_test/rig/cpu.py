"""The host processor and its memory: ``lscpu``, procfs, sysfs, control groups, ``dmidecode``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hetero_test.formats.json import JsonError, parse
from hetero_test.launch.query import ToolState
from hetero_test.rig.bandwidth import module_bandwidth, server_channels
from hetero_test.rig.facts import CpuFacts, DeviceClass
from hetero_test.rig.links import read_text
from hetero_test.rig.sourced import Sourced, assumed, measured, specified

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hetero_test.launch.query import Runner

ISA_FLAGS = (
    ("amx_tile", "amx"),
    ("avx512f", "avx512"),
    ("avx2", "avx2"),
    ("avx", "avx"),
    ("sve", "sve"),
    ("asimd", "neon"),
)
"""Flags of lscpu and what they amount to, widest first."""
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_NO_LIMIT = 2**60
"""Version 1 of control groups writes a number near 2**63 for no limit."""
_SERVER_NAME = re.compile(r"\bEPYC\b|\bXeon\b|\bThreadripper\b|\bAmpere\b|\bNeoverse\b", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Modules:
    """The memory modules that are fitted."""

    count: int
    channels: int | None
    """Channels that hold a module, by the labels of their slots; None: the labels do not say."""
    mt_s: int
    """Configured speed of the slowest."""
    kind: str
    """``DDR5``."""

    def __str__(self) -> str:
        return f"{self.count}x {self.kind}-{self.mt_s}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """The processor, as far as it is known."""

    cpu: CpuFacts = field(default_factory=CpuFacts)
    cache_bytes: int = 0
    """The last level of caches, all together; 0: unknown."""
    trouble: str | None = None
    """Why nothing is known, where nothing is."""


def read_processor(run: Runner) -> Processor:
    """The processor by ``lscpu -J``."""
    result = run(("lscpu", "-J"))
    fields = parse_lscpu(result.stdout) if result.state is ToolState.ANSWERED else {}
    if not fields:
        silent = result.state is ToolState.ANSWERED
        trouble = "lscpu -J printed nothing that is understood" if silent else result.trouble
        return Processor(trouble=trouble)
    source = "lscpu -J"
    sockets = _whole(fields.get("Socket(s)", fields.get("Cluster(s)")))
    per_socket = _whole(fields.get("Core(s) per socket", fields.get("Core(s) per cluster")))
    cores = sockets * per_socket if sockets and per_socket else None
    name = fields.get("Model name")
    cpu = CpuFacts(
        name=measured(name, source) if name else None,
        sockets=_fact(sockets, source),
        cores=_fact(cores, source),
        threads=_fact(_whole(fields.get("CPU(s)")), source),
        numa_nodes=_fact(_whole(fields.get("NUMA node(s)")), source),
        isa=_isa(fields.get("Flags", "")),
    )
    cache = _cache(fields.get("L3 cache", fields.get("L2 cache", "")))
    return Processor(cpu=cpu, cache_bytes=cache)


def parse_lscpu(text: str) -> dict[str, str]:
    """Fields of ``lscpu -J`` by name without the colon, nested or flat, first of a name."""
    try:
        tree = parse(text, lax_numbers=True)
    except JsonError:
        return {}
    found: dict[str, str] = {}
    entries = tree.get("lscpu") if isinstance(tree, dict) else None
    queue = list(entries) if isinstance(entries, list) else []
    while queue:
        entry = queue.pop(0)
        if isinstance(entry, dict):
            field, data = entry.get("field"), entry.get("data")
            if isinstance(field, str) and isinstance(data, str):
                found.setdefault(field.rstrip(":"), data)
            children = entry.get("children")
            queue.extend(children if isinstance(children, list) else [])
    return found


def processor_class(cpu: CpuFacts) -> Sourced[DeviceClass]:
    """Desktop or server, by name, number of sockets and of NUMA nodes."""
    if cpu.name and _SERVER_NAME.search(cpu.name.value):
        return specified(DeviceClass.SERVER_CPU, f"{cpu.name.value!r} has four channels or more")
    if cpu.sockets and cpu.sockets.value > 1:
        return measured(
            DeviceClass.SERVER_CPU, f"{cpu.sockets.value} sockets ({cpu.sockets.source})"
        )
    return assumed(DeviceClass.DESKTOP_CPU, "neither name nor sockets are those of a server")


def meminfo(proc: Path) -> Mapping[str, int]:
    """Bytes by field of ``/proc/meminfo``; empty where there is none."""
    found = {}
    for line in (read_text(proc / "meminfo") or "").splitlines():
        if field := re.fullmatch(r"(\w+):\s+(\d{1,15}) kB", line.strip()):
            found[field[1]] = int(field[2]) * 1024
    return found


def memory_limit(proc: Path, sysfs: Path) -> Sourced[int] | None:
    """The smallest memory limit of this process's control groups; None: no limit, or not seen."""
    limits = []
    for line in (read_text(proc / "self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if ".." in path:
            continue
        if number == "0" and not controllers:
            root, file = sysfs / "fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            root, file = sysfs / "fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        folder = root / path.strip("/")
        # A limit of any group above holds as well.
        for group in (folder, *folder.parents):
            text = read_text(group / file)
            if text is not None and text.isdecimal() and 0 < int(text) < _NO_LIMIT:
                limits.append((int(text), str(group / file)))
            if group == root:
                break
    if not limits:
        return None
    size, where = min(limits)
    return measured(size, where)


def read_modules(run: Runner) -> tuple[Modules | None, str | None]:
    """The memory modules by ``dmidecode``, which needs root, and why there are none."""
    result = run(("dmidecode", "-t", "memory"))
    modules = parse_dmidecode(result.stdout) if result.state is ToolState.ANSWERED else None
    if modules is not None:
        return modules, None
    if result.state is ToolState.ANSWERED:
        return None, "dmidecode -t memory names no module with a speed (a virtual machine?)"
    words = result.trouble
    return None, words + ("" if result.state is ToolState.MISSING else " (it needs root)")


def parse_dmidecode(text: str) -> Modules | None:
    """The modules in ``dmidecode -t memory``; None where no slot has size and speed."""
    count = 0
    speeds: list[int] = []
    kinds: list[str] = []
    labels: list[str | None] = []
    for block in re.split(r"\n\s*\n", text):
        lines = re.findall(r"^[ \t]+(\w[\w ]*): (.*)$", block, re.MULTILINE)
        fields: dict[str, str] = {name: value.strip() for name, value in lines}
        if "Memory Device" not in block or not re.match(r"\d", fields.get("Size", "")):
            continue
        speed = fields.get("Configured Memory Speed", fields.get("Configured Clock Speed", ""))
        found = re.match(r"(\d{3,6}) M(?:T/s|Hz)", speed)
        if found is None:
            continue
        count += 1
        speeds.append(int(found[1]))
        kinds.append(fields.get("Type", "DDR"))
        labels.append(_channel(fields.get("Bank Locator", ""), fields.get("Locator", "")))
    if not count:
        return None
    known = {label for label in labels if label is not None}
    channels = len(known) if None not in labels else None
    return Modules(count=count, channels=channels, mt_s=min(speeds), kind=kinds[0])


def memory_bandwidth(
    modules: Modules | None, cpu: CpuFacts
) -> tuple[Sourced[float] | None, str | None]:
    """Nominal bandwidth of the system's memory in GB/s, and a remark where it is unknown.

    The modules decide. Without them only an upper bound is known, and only for a server.
    """
    if modules is not None and modules.channels:
        gb_s = module_bandwidth(modules.channels, modules.mt_s)
        source = f"dmidecode: {modules}, {modules.channels} channels of 8 bytes a transfer"
        return specified(gb_s, source), None
    server = server_channels(cpu.name.value) if cpu.name else None
    if server is None:
        return None, "the nominal bandwidth of the system's memory is unknown"
    channels, mt_s, source = server
    sockets = cpu.sockets.value if cpu.sockets else 1
    bound = module_bandwidth(channels * sockets, mt_s)
    return None, (
        f"the modules are unknown; {sockets} x {channels} channels with DDR-{mt_s} would be "
        f"{bound:.1f} GB/s ({source})"
    )


_CHANNEL = re.compile(
    r"(?<![A-Z])CH(?:AN(?:NEL)?)?[-_ ]?(?P<name>[A-Z]|[0-9]{1,2})(?![A-Z0-9])", re.I
)
_LETTER = re.compile(r"(?:DIMM|DDR[345])[-_ ]?(?P<name>[A-Z])[-_ ]?[0-9]{1,2}(?![A-Z0-9])", re.I)
"""``DIMM_A1``, ``DIMMB2``: the letter is the channel, the digit the slot in it."""
_ABOVE = re.compile(
    r"(?<![A-Z])(?P<kind>P|CPU|PROC|SOCKET|NODE|CONTROLLER|MC|IMC)[-_ ]?(?P<number>[0-9]{1,3})"
    r"(?![A-Z0-9])",
    re.I,
)
"""What has channels of its own, and thus a channel A each: socket, node, memory controller."""


def _channel(bank: str, slot: str) -> str | None:
    """Which channel a slot's labels name, with all that it is a part of; None: they name none.

    Board makers agree on no form: ``P0 CHANNEL A``, ``Controller1-ChannelA-DIMM0``,
    ``P0_Node1_Channel0_Dimm0``, ``CPU1_DIMM_A1``.
    """
    for form in (_CHANNEL, _LETTER):
        for label in (bank, slot):
            if channel := form.search(label):
                above = {
                    f"{found['kind']}{int(found['number'])}".upper()
                    for found in _ABOVE.finditer(f"{bank} {slot}")
                }
                return "/".join((*sorted(above), channel["name"].upper()))
    return None


def _isa(flags: str) -> Sourced[str] | None:
    words = set(flags.split())
    for flag, name in ISA_FLAGS:
        if flag in words:
            return measured(name, "flags of lscpu -J")
    return None


def _cache(text: str) -> int:
    """Bytes of ``384 MiB (12 instances)``, which is the sum over the instances; 0: unknown."""
    found = re.match(r"(\d{1,6}(?:\.\d{1,3})?) ?([KMG])(?:iB)?\b", text)
    return int(float(found[1]) * _UNITS[found[2]]) if found else 0


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 else None


def _fact(value: int | None, source: str) -> Sourced[int] | None:
    return measured(value, source) if value else None
