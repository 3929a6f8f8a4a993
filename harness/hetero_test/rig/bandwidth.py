"""Nominal memory bandwidth by name, from the table ``data/bandwidth.toml``, which gives sources.

GB/s are 1e9 bytes. A nominal bandwidth is an upper bound; what is not in the table is unknown.
Devices that a rig file only names get their bandwidth from the same table.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hetero_test.rig.facts import DeviceClass
from hetero_test.rig.sourced import Sourced, specified

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hetero_test.rig.facts import DeviceFacts, RigFacts

GIB = 2**30
BYTES_PER_TRANSFER = 8
"""One channel of 64 bits; DDR5's two half-channels of a module count as one."""
MEMORY_TOLERANCE = 0.12
"""Drivers name up to so much less than the card's nominal size."""

_MAKER = re.compile(r"(?:NVIDIA|AMD/ATI|AMD|ATI|Intel)\s+", re.IGNORECASE)
_MARKS = re.compile(r"\((?:TM|R)\)|™|®", re.IGNORECASE)
_BRAND = re.compile(r"\A(?:geforce|radeon|arc)\s+")
_TAIL = re.compile(r"\s+(?:Graphics|Series)\Z", re.IGNORECASE)


def gpu_bandwidth(name: str, memory_bytes: int | None = None) -> Sourced[float] | None:
    """Nominal bandwidth of a card in GB/s, by the name that its driver prints.

    The name has to be the whole name: "RTX 3080 Laptop GPU" is not an RTX 3080, and lspci's
    "Radeon RX 7900 XT/7900 XTX" is neither.

    Args:
        name: ``NVIDIA GeForce RTX 3090``, ``AMD Radeon RX 7900 XTX`` …
        memory_bytes: its memory, by which cards of one name differ.
    """
    plain = _plain(name)
    for row in _table()["gpu"]:
        if _plain(row["name"]) != plain:
            continue
        wanted = row.get("memory_gib")
        if wanted is not None and not _near(memory_bytes, wanted * GIB):
            continue
        return _specified(row)
    return None


def named_bandwidth(name: str, memory_bytes: int | None = None) -> Sourced[float] | None:
    """Nominal bandwidth of a card in GB/s, by the name that people write.

    As `gpu_bandwidth`, but the brand may be missing (``RTX 3090``), and where cards
    of one name differ in memory and the memory is not known, the one with the least is taken.
    """
    if (found := gpu_bandwidth(name, memory_bytes)) is not None:
        return found
    wanted = _unbranded(name)
    rows = [row for row in _table()["gpu"] if _unbranded(row["name"]) == wanted]
    if memory_bytes is not None:
        rows = [row for row in rows if _near(memory_bytes, row.get("memory_gib", 0) * GIB)] or [
            row for row in rows if "memory_gib" not in row
        ]
    if not rows:
        return None
    row = min(rows, key=lambda row: float(row.get("memory_gib", 0)))
    fact = _specified(row)
    if memory_bytes is None and "memory_gib" in row:
        return specified(fact.value, f"{fact.source} (the card of {row['memory_gib']} GiB)")
    return fact


def soldered_bandwidth(processor: str) -> Sourced[float] | None:
    """Nominal bandwidth of a chip with fixed memory in GB/s, by the processor's name."""
    text = _MARKS.sub("", processor).casefold()
    rows = sorted(_table()["soldered"], key=lambda row: -len(row["name"]))
    for row in rows:
        if re.match(re.escape(row["name"].casefold()) + r"(?!\w)(?! (?:pro|max|ultra)\b)", text):
            return _specified(row)
    return None


def module_bandwidth(channels: int, mt_s: int) -> float:
    """Nominal bandwidth in GB/s of so many 64-bit channels at so many MT/s."""
    return channels * BYTES_PER_TRANSFER * mt_s / 1000


def server_channels(processor: str) -> tuple[int, int, str] | None:
    """Channels a socket, their fastest supported MT/s, and the source; None: no such server."""
    for row in _table()["server"]:
        if re.search(row["pattern"], processor):
            return row["channels"], row["mt_s"], _table()["sources"][row["source"]]
    return None


def _specified(row: Mapping[str, Any]) -> Sourced[float]:
    source = _table()["sources"][row["source"]]
    return specified(float(row["gb_s"]), f"bandwidth table, {row['name']}: {source}")


def _near(size: int | None, nominal: int) -> bool:
    return size is not None and abs(size - nominal) <= MEMORY_TOLERANCE * nominal


def _unbranded(name: str) -> str:
    """The plain name without ``GeForce``, ``Radeon`` or ``Arc`` before it."""
    return _BRAND.sub("", _plain(name), count=1)


def _plain(name: str) -> str:
    """The name without maker, marks and tail, in lower case."""
    text = _MARKS.sub("", name).strip()
    text = _TAIL.sub("", _MAKER.sub("", text, count=1) if _MAKER.match(text) else text)
    return " ".join(text.casefold().split())


@cache
def _table() -> Mapping[str, Any]:
    file = files("hetero_test.rig").joinpath("data/bandwidth.toml")
    return tomllib.loads(file.read_text("utf-8"))


def with_named_bandwidths(rig: RigFacts) -> RigFacts:
    """The rig with the specified bandwidth of every device whose name the table knows.

    A bandwidth that the rig has already is left as it is.
    """
    devices = tuple(
        device
        if device.bandwidth_specified_gb_s is not None
        else replace(device, bandwidth_specified_gb_s=_by_name(device, rig))
        for device in rig.devices
    )
    return replace(rig, devices=devices)


def _by_name(device: DeviceFacts, rig: RigFacts) -> Sourced[float] | None:
    if device.device_class.value is DeviceClass.DISCRETE_GPU:
        if device.name is None:
            return None
        memory = None if device.memory_bytes is None else int(device.memory_bytes.value)
        return named_bandwidth(device.name.value, memory)
    # A chip with fixed memory is known by its processor, whose memory its GPU shares.
    cpu = None if rig.cpu is None else rig.cpu.name
    for name in (device.name, cpu):
        found = None if name is None else soldered_bandwidth(name.value)
        if found is not None:
            return found
    return None
