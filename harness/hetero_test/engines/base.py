"""What the road needs of an engine family, and the values that pass between them.

The road is shared; the shape of a log, and how a run is driven, are each engine's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from hetero_test.values.run import Device, Probe

if TYPE_CHECKING:
    from hetero_test.launch.dialogue import Dialogue
    from hetero_test.values.reading import Reading
    from hetero_test.values.run import Run


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
        variables: environment variables that the engine takes as flags, each with all names of
            its flag.
        prefixes: how the names of all variables begin that may change what the engine does.
    """

    devices: tuple[Device, ...]
    device_count: int | None
    how: str
    known_flags: frozenset[str] | None
    version: str | None = None
    notes: tuple[str, ...] = ()
    variables: Mapping[str, frozenset[str]] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedCell:
    """A cell that was launched, as its log is read: what was asked of the engine.

    Attributes:
        flags: all model and variant flags, in order.
        env: the environment delta of the run.
        probe: the prompt that was given.
        survey: what was known of the rig.
        folder: the run's own folder, for files that a dialogue left there.
    """

    flags: tuple[str, ...]
    env: Mapping[str, str]
    probe: Probe
    survey: Survey
    folder: Path

    @property
    def mask(self) -> str | None:
        """What gives devices other numbers than the survey may have seen; None where nothing does.

        A number alone then tells no card: the log's own name of it rules.
        """
        set_here = [f"{name}={value}" for name, value in self.env.items() if _MASK.search(name)]
        return " ".join(sorted(set_here)) or None


_MASK = re.compile(
    r"_VISIBLE_DEVICES$|_DEVICE_ORDER$|^ZE_AFFINITY_MASK$|^ONEAPI_DEVICE_SELECTOR$"
    r"|^GPU_DEVICE_ORDINAL$"
)


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

    def read(self, stdout: Path, stderr: Path, asked: LaunchedCell) -> Reading:
        """Everything that one run's output says; never raises on what it finds there."""


@runtime_checkable
class SizedCache(Protocol):
    """What an engine offers beside :class:`Engine` if a cache's size decides its residency.

    An engine without one has no such methods; whoever forces a residency asks for them.
    """

    def force(self, flags: Sequence[str], wanted: Run) -> tuple[str, ...] | None:
        """``flags`` so that the residency of ``wanted`` is forced; None if that cannot be."""

    def share(self, flags: Sequence[str], baseline: Run, got: Run) -> tuple[str, ...] | None:
        """``flags`` with one size that both a clipped anchor and the baseline can hold."""

    def size(self, run: Run) -> int | None:
        """The size that ``force`` would force, for finding the smallest of several runs."""
