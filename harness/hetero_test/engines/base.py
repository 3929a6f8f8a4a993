"""What the road needs of an engine family, and the values that pass between them.

The road is shared; the shape of a log, and how a run is driven, are each engine's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hetero_test.values.run import Device, Probe, Residency, Speculation, Timings, TokenChance

if TYPE_CHECKING:
    from hetero_test.launch.dialogue import Dialogue
    from hetero_test.values.run import Run


class Symptom(StrEnum):
    """What a log line can show of a run that went wrong."""

    REFUSED = "refused"
    NO_MEMORY = "no memory"
    ERROR = "error"
    NOT_A_NUMBER = "not a number"
    NOT_GREEDY = "not greedy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A symptom and the log line that shows it."""

    symptom: Symptom
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Where the log shows one part of the placement.

    Attributes:
        part: ``main``, ``draft``, …, the names that matrix files use under ``effect``.
        value: where it is; None when the engine never tells this in this mode.
        line: the log line that shows it.
    """

    part: str
    value: str | None
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one run's output says; facts only, no judgment.

    Attributes:
        stream: the ids of the only well-formed dump; None if there is none.
        stream_trouble: why there is none (or several), with the line.
        echo: the prompt as the engine repeats it; None if it did not.
        echo_expected: False for an engine that never echoes.
        echo_trouble: why the prompt was not read as given, where the engine says more than an echo.
        end_of_sequence: the engine reports that it stopped at an end-of-sequence.
        vocabulary: the engine's vocabulary size where it prints one.
        picked: placements that the engine announces to have chosen itself, by part.
        context: what is recorded beside the residency, no part of equality.
        lines: role, memory and peer lines, verbatim, for the report.
    """

    stream: tuple[int, ...] | None = None
    stream_trouble: str | None = None
    echo: tuple[int, ...] | None = None
    echo_expected: bool = True
    echo_trouble: str | None = None
    end_of_sequence: bool = False
    vocabulary: int | None = None
    signs: tuple[Sign, ...] = ()
    residency: Residency = Residency(unknown="no line tells")
    context: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    sightings: tuple[Sighting, ...] = ()
    picked: Mapping[str, str] = field(default_factory=dict)
    speculation: Speculation | None = None
    timings: Timings = Timings()
    chances: tuple[TokenChance, ...] | None = None
    version: str | None = None
    devices: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """The executables of one build.

    Attributes:
        engine: the binary that is launched and hashed.
        device_tool: the binary that lists devices, if there is one.
        build_dir: where they were found.
    """

    engine: Path
    device_tool: Path | None
    build_dir: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was found out about engine and devices before the first launch.

    Attributes:
        devices: distinct devices; empty when unknown.
        device_count: how many, None when it could not be told.
        how: how it was found, in words for the report.
        known_flags: the flags that the engine's help lists; None when it gave none.
        version: the engine's version, where it says it without a model.
        notes: anything odd, for the report.
    """

    devices: tuple[Device, ...]
    device_count: int | None
    how: str
    known_flags: frozenset[str] | None
    version: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One cell as its log is read: what was asked of the engine.

    Attributes:
        flags: all model and variant flags, in order.
        env: the environment delta of the run.
        survey: what was known of the rig.
        folder: the run's own folder, for files that a dialogue left there.
    """

    flags: tuple[str, ...]
    env: Mapping[str, str]
    probe: Probe
    survey: Survey
    folder: Path


class Engine(Protocol):
    """One family of inference binaries."""

    name: str
    probe_vocabulary: int
    """Vocabulary that the probe generator assumes where the model does not tell."""
    drafter_flags: str
    """The flags that give a drafter, named when none is there."""

    def find(self, build_dir: Path) -> Binaries:
        """The binaries below a build folder.

        Raises:
            EngineNotFoundError: there is none; the message names what was looked for.
        """

    def survey(
        self,
        binaries: Binaries,
        flags: Sequence[str],
        *,
        devices: int | None,
        kinds: Mapping[str, str],
        fast: str | None,
    ) -> Survey:
        """Ask the binaries for devices and flags.

        Args:
            binaries: as found.
            flags: the user's model flags.
            devices: the number of devices as the user gives it; it rules.
            kinds: kinds that the user declares, by device id.
            fast: the device that the user calls the fast one; put first.

        Raises:
            UsageError: a device is named that is not there, or this engine has no use for it.
        """

    def has_drafter(self, flags: Sequence[str]) -> bool:
        """Whether the model flags bring a drafter."""

    def has_experts(self, flags: Sequence[str]) -> bool | None:
        """Whether the model is a mixture of experts; None where that cannot be told."""

    def vocabulary(self, flags: Sequence[str]) -> int | None:
        """The model's vocabulary size, read before any launch; None where it cannot be.

        Raises:
            UsageError: the flags name a model that cannot be read.
        """

    def placeholders(
        self, survey: Survey, flags: Sequence[str], device: Device | None
    ) -> Mapping[str, str]:
        """What ``{name}`` stands for in the matrix; ``device`` is set within a ``for_each``."""

    def combine(self, flags: Sequence[str], variant_flags: Sequence[str]) -> tuple[str, ...]:
        """The user's flags with a variant's; where the last one wins, one after the other."""

    def cannot_fit(self, survey: Survey, flags: Sequence[str]) -> str | None:
        """Why a placement cannot fit its devices, from sizes alone; None where it may."""

    def command(
        self, binaries: Binaries, flags: Sequence[str], probe: Probe, *, probe_file: Path
    ) -> tuple[str, ...]:
        """The argument vector of one run.

        Args:
            binaries: as found.
            flags: the user's model flags and the variant's, combined.
            probe: the prompt as ids, and how many new tokens are wanted.
            probe_file: a file that holds the ids, for engines that read them from one.
        """

    def dialogue(self, command: Sequence[str], probe: Probe, folder: Path) -> Dialogue | None:
        """What to say to a running engine; None for one that runs by itself."""

    def read(self, stdout: Path, stderr: Path, asked: Asked) -> Reading:
        """Everything that one run's output says; never raises on what it finds there."""

    def force(self, flags: Sequence[str], wanted: Run) -> tuple[str, ...] | None:
        """``flags`` so that the residency of ``wanted`` is forced; None if that cannot be."""

    def share(self, flags: Sequence[str], baseline: Run, got: Run) -> tuple[str, ...] | None:
        """``flags`` with one size that both a clipped anchor and the baseline can hold."""

    def size(self, run: Run) -> int | None:
        """The size that ``force`` would force, for finding the smallest of several runs."""
