"""What a run directory holds, as values: what was asked, what came of it, how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from hetero_test.values.run import Device, Effect, Probe, Purpose, Run, RunState
from hetero_test.values.variant import PlannedVariant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Key = TypeVar("Key")
Command = tuple[str, str]
"""Id and prompt: what the repeats of one command share."""

MANIFEST_SCHEMA = "hetero-test/manifest/3"
"""Name and version of the file. 2: the runs beside it are stored in their parts. 3: the variables
that the runs inherit."""


class Ending(StrEnum):
    """How far a matrix got."""

    RUNNING = "running"
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    TOTAL_TIMEOUT = "total time limit"
    WEDGED = "rig wedged"
    NO_BASELINE = "the baseline does not start"
    REFUSED_BASELINE = "the engine refuses the flags after --"
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
        libraries: paths of the shared libraries beside the binary, each with the sha256 of its
            content (of a large one, of samples).
    """

    name: str
    path: str
    sha256: str
    size_bytes: int
    version: str | None
    build_dir: str
    libraries: tuple[tuple[str, str], ...] = ()


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
        inherited: variables of the environment that may change what the engine does.
        on_device: the matrix's environment for running the baseline on one device alone;
            ``{device}`` stands for the device.
        owns: flags that the matrix owns.
        one_device: the user said that one device is all there is, or picked the variants.
        harmless: regular expressions of lines that the matrix file calls harmless.
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
    inherited: tuple[tuple[str, str], ...] = ()
    on_device: tuple[tuple[str, str], ...] = ()
    owns: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    one_device: bool = False
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


class Index:
    """Where the runs of a record are found: by key, by id, by command, by prompt.

    Judge, schedule and report ask for the runs of one variant at a time. Made once for each
    record, so that nobody looks through all runs for each; each part when it is first asked for.
    """

    def __init__(self, record: Record) -> None:
        self._record = record

    # ---- the plan -------------------------------------------------------------------------

    @cached_property
    def rank(self) -> Mapping[str, int]:
        """The place of each variant in the matrix, by id; the baseline's is 0."""
        variants = self._record.manifest.variants
        return {entry.variant.id: place for place, entry in enumerate(variants)}

    # ---- rounds and extra runs --------------------------------------------------------------

    @cached_property
    def by_key(self) -> Mapping[tuple[str, str, int], Run]:
        """Each run by its key; of two with one key the last."""
        return {run.key: run for run in self._record.runs}

    @cached_property
    def by_id(self) -> Mapping[str, tuple[Run, ...]]:
        """The runs under each id, in the order of the record."""
        return _grouped(self._record.runs, lambda run: run.variant)

    @cached_property
    def by_command(self) -> Mapping[Command, tuple[Run, ...]]:
        """The runs of each command, in the order of the record."""
        return _grouped(self._record.runs, lambda run: (run.variant, run.probe))

    @cached_property
    def by_prompt(self) -> Mapping[str, tuple[Run, ...]]:
        """The runs of each prompt, by its name, in the order of the record."""
        return _grouped(self._record.runs, lambda run: run.probe)

    @cached_property
    def rounds(self) -> Mapping[str, tuple[Run, ...]]:
        """The runs of the rounds by prompt, in matrix order, then by repeat."""
        rank = self.rank
        return {
            name: tuple(
                sorted(
                    (r for r in runs if r.purpose is Purpose.ROUND and r.variant in rank),
                    key=lambda run: (rank[run.variant], run.repeat),
                )
            )
            for name, runs in self.by_prompt.items()
        }

    @cached_property
    def first_usable(self) -> Mapping[Command, Run]:
        """The first OK run of each command that has one."""
        found: dict[Command, Run] = {}
        for run in self._record.runs:
            if run.usable:
                found.setdefault((run.variant, run.probe), run)
        return found

    @cached_property
    def effects(self) -> Mapping[str, Effect | None]:
        """Each variant's worst effect over its OK runs; None for the baseline and without any."""
        found = {
            name: Effect.worst(run.effect for run in self.by_id.get(name, ()) if run.usable)
            for name in self.rank
        }
        return found | dict.fromkeys(self._baseline)

    def behind(self, name: str) -> str:
        """The id of the matrix variant behind that of an extra run."""
        runs = self.by_id.get(name)
        return runs[0].of if runs else name

    # ---- what is not run again -----------------------------------------------------------------

    @cached_property
    def given_up(self) -> frozenset[Command]:
        """Commands that are not launched again, after what became of one of their runs."""
        runs = self._record.runs
        return frozenset((run.variant, run.probe) for run in runs if run.state.not_repeated)

    @cached_property
    def hung_before(self) -> frozenset[str]:
        """Ids of the variants that hung in a warm-up; the baseline ran again after that."""
        hung = {run.variant for run in self._record.warmup if run.state is RunState.TIMED_OUT}
        return frozenset(hung.difference(self._baseline))

    @property
    def _baseline(self) -> tuple[str, ...]:
        """The baseline's id, if anything was planned."""
        return tuple(entry.variant.id for entry in self._record.manifest.variants[:1])

    # ---- further runs ----------------------------------------------------------------------------

    @cached_property
    def again(self) -> Mapping[Command, tuple[Run, ...]]:
        """Runs that were made to explain a difference, by their command, by repeat."""
        made = (run for run in self._record.rechecks if run.purpose is Purpose.RECHECK)
        # Runs under the id of a further run are that only if they were made as one.
        ordered = sorted(made, key=lambda run: run.repeat)
        return _grouped(ordered, lambda run: (run.variant, run.probe))


def _grouped(runs: Iterable[Run], key: Callable[[Run], Key]) -> dict[Key, tuple[Run, ...]]:
    found: dict[Key, list[Run]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return {name: tuple(members) for name, members in found.items()}
