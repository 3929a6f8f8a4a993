"""What a run directory holds, as values: what was asked, what came of it, how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from hetero_test.values.index import Index
from hetero_test.values.run import Device, PlannedVariant, Probe, Run

MANIFEST_SCHEMA = "hetero-test/manifest/2"
"""Name and version of the file. 2: the runs beside it are stored in their parts."""


class Ending(StrEnum):
    """How far a matrix got."""

    RUNNING = "running"
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    TOTAL_TIMEOUT = "total time limit"
    WEDGED = "rig wedged"
    BROKEN = "could not finish"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """Facts about the machine; a fact may be missing, never guessed.

    Attributes:
        devices: as the engine numbers them; empty when unknown.
        device_count: how many, None when it could not be told.
        how: how the devices were found.
        facts: (name, value) pairs of the host: CPU, memory, system, driver, …
        notes: anything odd about the device list.
    """

    devices: tuple[Device, ...] = ()
    device_count: int | None = None
    how: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """The build under test.

    Attributes:
        name: the engine family.
        path: the launched binary.
        sha256: of that binary, 64 hex digits.
        size_bytes: of that binary.
        version: as the engine prints it, None until a run tells it.
        build_dir: as the user gave it, made absolute.
    """

    name: str
    path: str
    sha256: str
    size_bytes: int
    version: str | None
    build_dir: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFacts:
    """The matrix file that was used.

    Attributes:
        name: its file name without the ending.
        path: where it lies; for a shipped one just its name.
        sha256: of the file's bytes.
    """

    name: str
    path: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A file or folder named by the model flags.

    Attributes:
        flag: the flag that names it.
        path: as given.
        size_bytes: of a file; None for a folder or when it cannot be read.
        edge_sha256: sha256 over the first and the last MiB of a file, not of the whole.
    """

    flag: str
    path: str
    size_bytes: int | None = None
    edge_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits of a matrix in seconds; None is no limit."""

    run_s: float
    idle_s: float
    total_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The recipe that removes known sources of difference, as the matrix gives it.

    Attributes:
        flags: put after the user's flags and before the variant's.
        env: set in the engine's environment.
        asked: True when ``--pinned`` was given.
        left_out: flags of the recipe that this engine's help does not know.
    """

    flags: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    asked: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether the matrix has a recipe at all."""
        return bool(self.flags or self.env)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What was asked: enough to run the same again and to refuse what is not the same.

    Attributes:
        harness: version of hetero-test.
        argv: the user's own command line, the program's name first.
        started: UTC, ISO 8601.
        model_flags: everything after the first ``--``.
        env: what the harness sets for every run, and device masks that were set already.
        on_device: the matrix's environment for running the baseline on one device alone;
            ``{device}`` stands for the device.
        owns: flags that the matrix owns.
        prediction: JSON text of ``hetero-test triage --json`` to stand beside the run.
        mark: put into the environment of every process, by which leftovers are found.
        secrets: texts to replace before publishing, as (text, placeholder); see
            :mod:`hetero_test.publish.redact`. Never written into a file meant for pasting.
    """

    harness: str
    argv: tuple[str, ...]
    started: str
    engine: EngineFacts
    matrix: MatrixFacts
    model_flags: tuple[str, ...]
    model: tuple[ModelFile, ...]
    env: tuple[tuple[str, str], ...]
    rig: Rig
    probes: tuple[Probe, ...]
    variants: tuple[PlannedVariant, ...]
    repeats: int
    warmup: int
    limits: Limits
    pinned: Pinned = Pinned()
    on_device: tuple[tuple[str, str], ...] = ()
    owns: tuple[str, ...] = ()
    strict: bool = False
    prediction: str | None = None
    redact: bool = True
    mark: str = ""
    secrets: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Record:
    """A run directory's content: the manifest, every run, and how the matrix ended.

    Attributes:
        runs: rounds, anchors, shared pairs and home baselines, in the order they ran.
        warmup: warm-up runs; never compared as repeats.
        rechecks: runs made to explain a difference or to see whether the rig still works.
        ending: how far it got.
        ending_reason: why it ended early, if it did.
        warnings: what was noticed while it ran, beside the runs.
    """

    manifest: Manifest
    runs: tuple[Run, ...] = ()
    warmup: tuple[Run, ...] = ()
    rechecks: tuple[Run, ...] = ()
    ending: Ending = Ending.RUNNING
    ending_reason: str | None = None
    warnings: tuple[str, ...] = ()

    @cached_property
    def index(self) -> Index:
        """Where its runs are found; made once."""
        return Index(self)
