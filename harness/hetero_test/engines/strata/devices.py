"""Which devices a Strata build sees, and which flags it knows, before anything is launched."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hetero_test.engines.base import Survey
from hetero_test.launch.query import Answer, ask
from hetero_test.values.run import Device

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from hetero_test.engines.base import Binaries

ASK_S = 60.0
"""How long a question to a binary may take; a driver that is asleep needs some seconds."""

_DEVICE = re.compile(r"device (\d{1,6}): (.*?)(?: \(HIP (gfx\w+)\))?\s*")
_EXACT_BYTES = re.compile(r"\((\d{1,18}) B\)")
_GIB = re.compile(r"\b(\d{1,9}(?:\.\d{1,9})?) GiB\b")
_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*\w")
_NONE = "(no GPU device)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListing:
    """A device listing, read.

    Attributes:
        devices: by ascending ordinal, each once.
        blocks: how many blocks of text they came from.
        empty: the tool says that there is none.
        notes: what is odd about it.
    """

    devices: tuple[Device, ...]
    blocks: int
    empty: bool
    notes: tuple[str, ...]


def survey(binaries: Binaries, *, devices: int | None, ask_s: float = ASK_S) -> Survey:
    """Ask a build for its devices and flags; a number that the user gave rules.

    Whatever the binaries do, this answers: a fact that could not be had is None.
    """
    help_ = ask((str(binaries.engine), "--help"), limit_s=ask_s)
    flags = frozenset(_FLAG.findall(help_.stderr + "\n" + help_.stdout))
    notes = []
    if help_.trouble is not None or not flags:
        why = help_.trouble or "it names no flags"
        notes.append(f"{binaries.engine.name} --help could not be used: {why}")
        flags = frozenset()
    found = _count(_listed(binaries.device_tool, ask_s))
    if devices is not None:
        if found.device_count is not None and found.device_count != devices:
            notes.append(f"--devices {devices} was given; {found.how} shows {found.device_count}")
        found = replace(found, device_count=devices, how=f"--devices {devices}")
    return replace(found, known_flags=flags or None, notes=(*notes, *found.notes))


def _count(tries: Iterable[tuple[str, Answer]]) -> Survey:
    """The first answer that tells the devices; else what every one of them lacked."""
    notes: list[str] = []
    for how, answer in tries:
        listing = parse_listing(answer.stdout)
        trouble = answer.trouble
        if trouble is None and not listing.devices and not listing.empty:
            trouble = "it lists no device"
        if trouble is None and _is_first_only(how, answer, listing):
            trouble = (
                "it shows device 0 alone, as builds do that describe only the first of several"
            )
        if trouble is None:
            return Survey(
                devices=listing.devices,
                device_count=len(listing.devices),
                how=how,
                known_flags=None,
                notes=(*notes, *listing.notes),
            )
        notes.append(f"{how}: {trouble}")
    return Survey(
        devices=(), device_count=None, how="not found", known_flags=None, notes=tuple(notes)
    )


def _is_first_only(how: str, answer: Answer, listing: ToolListing) -> bool:
    """Whether a listing may have stopped at ordinal 0.

    Without options, builds that know the device roles describe the first device twice and
    add the peer table; others describe the first device and say nothing of the rest.
    """
    if how.endswith("--list-devices") or listing.empty:
        return False
    return listing.blocks == 1 and "peer access" not in answer.stdout


def _listed(tool: Path | None, ask_s: float) -> Iterable[tuple[str, Answer]]:
    if tool is None:
        yield "strata-device", Answer(stdout="", stderr="", trouble="there is none in the build")
        return
    yield f"{tool.name} --list-devices", ask((str(tool), "--list-devices"), limit_s=ask_s)
    yield tool.name, ask((str(tool),), limit_s=ask_s)


def parse_listing(text: str) -> ToolListing:
    """The devices in what ``strata-device`` prints, with and without ``--list-devices``.

    Distinct ordinals are counted, never lines: one device may be described several times.
    """
    facts: dict[int, dict[str, str]] = {}
    notes: list[str] = []
    blocks, current, backend = 0, None, "CUDA"
    for line in text.splitlines():
        match = _DEVICE.fullmatch(line)
        if match is not None:
            blocks += 1
            ordinal, name = int(match[1]), match[2].strip()
            current = facts.setdefault(ordinal, {"name": name})
            if current["name"] != name:
                notes.append(f"device {ordinal} is listed as {current['name']} and as {name}")
        elif not line[:1].isspace():
            current = None
        elif current is not None:
            current.update(_facts(line.strip()))
        if (match is not None and match[3]) or re.match(r"\s+(?:HIP )?arch\s+gfx", line):
            backend = "HIP"
    devices = tuple(_device(ordinal, facts[ordinal], backend) for ordinal in sorted(facts))
    missing = sorted(set(range(max(facts, default=-1) + 1)) - set(facts)) if facts else []
    if missing and len(missing) <= len(facts):
        notes.append(f"no device {', '.join(map(str, missing))} is listed")
    notes += [f"device {device.id}: {device.note}" for device in devices if device.note]
    return ToolListing(devices=devices, blocks=blocks, empty=_NONE in text, notes=tuple(notes))


def _facts(line: str) -> dict[str, str]:
    """What an indented line says of its device."""
    if line.startswith("cannot run:"):
        return {"note": line}
    if "STRATA_EMULATE_CC" in line:
        return {"emulated": "the compute capability is emulated (STRATA_EMULATE_CC)"}
    if line.startswith("VRAM total"):
        exact = _EXACT_BYTES.search(line)
        return {"bytes": exact[1]} if exact is not None else {}
    if re.match(r"(?:arch|compute capability)\s", line):
        size = _GIB.search(line)
        if size is not None:
            return {"bytes": str(round(float(size[1]) * 2**30))}
    return {}


def _device(ordinal: int, facts: dict[str, str], backend: str) -> Device:
    notes = [facts[key] for key in ("note", "emulated") if key in facts]
    return Device(
        id=str(ordinal),
        name=facts["name"],
        kind=kind(backend, facts["name"], emulated="emulated" in facts),
        memory_bytes=int(facts["bytes"]) if "bytes" in facts else None,
        note="; ".join(notes) or None,
    )


def kind(backend: str, name: str, *, emulated: bool = False) -> str:
    """What decides a device's rounding: two cards of one model and backend are one kind."""
    return f"{backend} {name}" + (" (emulated)" if emulated else "")
