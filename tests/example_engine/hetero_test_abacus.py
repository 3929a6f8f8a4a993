"""What hetero-test needs to know of the engine ``abacus``: all that the protocol asks.

It has one process a run, ids in and ids out, and no drafter, no experts, no cache. An engine that
has them tells more in its :class:`Reading`; one whose residency is the size of a cache also has
the three methods of :class:`hetero_test.SizedCache`.
"""

# ruff: noqa: ARG002 - it answers all that is asked, and needs little of what it is given
from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hetero_test import (
    Binaries,
    Device,
    EngineNotFoundError,
    LaunchedCell,
    Place,
    Probe,
    Reading,
    Residency,
    Sighting,
    Sign,
    Survey,
    Symptom,
    Timings,
    UsageError,
)

_ROD = re.compile(r"rod (\d{1,3}): (\w+)")
_MODEL = re.compile(r"model: rod (\d{1,3}), (\w+)")
_SPEED = re.compile(r"speed: (\d{1,9}\.\d) tok/s")
_IDS = re.compile(r"( \d{1,9})*")


class Abacus:
    """How the binary is found, asked, launched and read."""

    name = "abacus"
    probe_vocabulary = 30_000
    drafter_flags = "it has none"

    def find(self, build_dir: Path) -> Binaries:
        """One binary, right in the folder."""
        binary = build_dir.absolute() / "abacus"
        if not binary.is_file():
            raise EngineNotFoundError(f"no binary 'abacus' in {build_dir}", hint="build it first")
        return Binaries(engine=binary, device_tool=None, build_dir=binary.parent)

    def survey(
        self,
        binaries: Binaries,
        flags: Sequence[str],
        *,
        devices: int | None,
        kinds: Mapping[str, str],
        fast: str | None,
    ) -> Survey:
        """The rods that the engine lists, and the flags of its help; an answer takes a moment."""
        if kinds or fast is not None:
            raise UsageError("--device-kind and --fast-device: the abacus tells its rods itself")
        rods = _ROD.findall(_answer(binaries, "--list-rods"))
        found = tuple(Device(id=number, name=f"rod {number}", kind=wood) for number, wood in rods)
        return Survey(
            devices=found,
            device_count=devices or len(found) or None,
            how="abacus --list-rods",
            known_flags=frozenset(re.findall(r"--[a-z-]+", _answer(binaries, "--help"))) or None,
        )

    def has_drafter(self, flags: Sequence[str]) -> bool:
        """Never."""
        return False

    def has_experts(self, flags: Sequence[str]) -> bool | None:
        """Never."""
        return False

    def vocabulary(self, flags: Sequence[str]) -> int | None:
        """No file tells it."""
        return None

    def placeholders(
        self, survey: Survey, flags: Sequence[str], device: Device | None
    ) -> Mapping[str, str]:
        """``{device}`` in a variant that is made for each device."""
        return {} if device is None else {"device": device.id}

    def combine(self, flags: Sequence[str], variant_flags: Sequence[str]) -> tuple[str, ...]:
        """The last one of a flag counts."""
        return (*flags, *variant_flags)

    def cannot_fit(self, survey: Survey, flags: Sequence[str]) -> str | None:
        """A rod holds any number."""
        return None

    def command(
        self, binaries: Binaries, flags: Sequence[str], probe: Probe, *, probe_file: Path
    ) -> tuple[str, ...]:
        """The prompt as a file, and the length."""
        own = ("--prompt", str(probe_file), "--count", str(probe.max_new))
        return (str(binaries.engine), *flags, *own)

    def dialogue(self, command: Sequence[str], probe: Probe, folder: Path) -> None:
        """It runs by itself; a server would be told its prompt here."""

    def read(self, stdout: Path, stderr: Path, asked: LaunchedCell) -> Reading:
        """What the lines say. Whatever stands there, facts come out and no exception."""
        lines = stdout.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = stderr.read_text(encoding="utf-8", errors="replace").splitlines()
        placed = [found for found in map(_MODEL.fullmatch, lines) if found]
        output, trouble = _ids(lines, "output:")
        speeds = [found for found in map(_SPEED.fullmatch, lines) if found]
        residency = Residency(unknown="no line tells the rod")
        if placed:
            wood = placed[-1].group(2)
            residency = Residency(main_kind=wood, label=f"all on {wood}")
        return Reading(
            stream=output,
            stream_trouble=trouble,
            echo=_ids(lines, "prompt:")[0],
            signs=tuple(
                Sign(symptom=Symptom.REFUSED if "argument" in line else Symptom.ERROR, line=line)
                for line in errors
                if line.startswith("abacus: error:")
            ),
            residency=residency,
            main=_place(placed[-1]) if placed else Place(),
            sightings=tuple(Sighting(part="main", value=m[1], line=m[0]) for m in placed),
            timings=Timings(decode_tok_s=float(speeds[-1].group(1)) if speeds else None),
            lines=tuple(found.group() for found in placed),
            tail=tuple((*lines, *errors)[-5:]),
        )


def _answer(binaries: Binaries, flag: str) -> str:
    """What the engine prints when asked something; nothing where it cannot be asked."""
    try:
        command = [str(binaries.engine), flag]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _place(found: re.Match[str]) -> Place:
    return Place(device=found.group(1), kind=found.group(2), line=found.group())


def _ids(lines: Sequence[str], label: str) -> tuple[tuple[int, ...] | None, str | None]:
    """The ids of the only line with a label, or why there are none."""
    found = [line.removeprefix(label) for line in lines if line.startswith(label)]
    if len(found) != 1:
        return None, f"{len(found)} lines with {label}"
    if not _IDS.fullmatch(found[0]):
        return None, f"not ids: {label}{found[0][:60]}"
    return tuple(map(int, found[0].split())), None
