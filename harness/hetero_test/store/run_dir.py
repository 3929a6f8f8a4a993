"""The run directory: what is written, when, and how it is found again.

::

    OUT/manifest.json                      what was asked
    OUT/probes/NAME.txt                    ids, blank-separated
    OUT/runs/V0/default-1/{stdout,stderr,outcome.json,run.json}
    OUT/warmup/…, OUT/rechecks/…           likewise
    OUT/running.json                       pid and start of the last engine
    OUT/run.json                           the whole, rewritten as time allows, and at the end
    OUT/report.md                          likewise

Every file is written beside its place and renamed into it, so a reader, and a resumed run,
finds either the old or the new one. What a run gave is in its own folder as soon as the run is
over. ``run.json`` names the runs that must be there; those that were stored after it was written
are found by their folders.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hetero_test.errors import StoreError, UsageError
from hetero_test.formats.files import inside
from hetero_test.store.run_json import dumps, from_file, load, pieces, to_text
from hetero_test.store.streams import Streams
from hetero_test.values.outcome import OUTCOME_SCHEMA
from hetero_test.values.record import MANIFEST_SCHEMA, Ending, Manifest, Record
from hetero_test.values.run import Purpose, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hetero_test.values.outcome import Outcome
    from hetero_test.values.run import Cell
    from hetero_test.values.verdict import Judgment

RUNNING = "running.json"
"""Who was started last; see :meth:`Store.note_start`."""
RUN_SCHEMA = "hetero-test/stored-run/2"
"""Name and version of a run's own file. 2: the run in its parts, as they are in memory, and the
md5 of its stream."""
FOLDERS = ("runs", "warmup", "rechecks")
"""The lists of a record, each in a folder of its own."""
LISTS = {
    Purpose.WARMUP: "warmup",
    Purpose.RECHECK: "rechecks",
    Purpose.AFTER_HANG: "rechecks",
}


def list_of(purpose: Purpose) -> str:
    """The list, and the folder, in which a run of this purpose is kept."""
    return LISTS.get(purpose, "runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """What a run's own file holds.

    Attributes:
        md5: of the stream, as it was when the run was stored.
        run: the run.
    """

    md5: str | None
    run: Run


class Store:
    """One run directory, owned by this process while it is open for writing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._streams = Streams()
        self._held: tuple[int, int] | None = None
        """Device and inode of the folder while it is owned, whatever stands under its name."""

    # ---- opening ------------------------------------------------------------------------

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Hold the directory; one process at a time owns it.

        Raises:
            StoreError: another process holds it, or it cannot be written.
        """
        with writing(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StoreError(
                    f"{self.root}: another hetero-test is writing to this folder",
                    hint="wait for it, or choose another --out",
                ) from error
            self._held = _identity(self.root)
            yield
        finally:
            os.close(handle)

    def refuse_used(self, *, besides: tuple[str, ...] = ()) -> None:
        """Refuse a directory that holds anything ``besides`` what is named.

        Raises:
            UsageError: it is not empty, or is no directory.
        """
        if self.root.exists() and not self.root.is_dir():
            raise UsageError(f"--out {self.root}: it is not a folder")
        held = [e.name for e in self.root.iterdir()] if self.root.is_dir() else []
        if [name for name in held if name not in {".lock", *besides}]:
            raise UsageError(
                f"--out {self.root}: the folder is not empty",
                hint="nothing in it was touched; choose another, or go on there with --resume",
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Write below the folder, which is never made again once it is gone."""
        with writing(self.root):
            now = _identity(self.root)
            if now is None:
                raise StoreError(
                    f"{self.root}: the folder is gone", hint="somebody removed or renamed it"
                )
            if self._held not in {None, now}:
                raise StoreError(
                    f"{self.root}: another folder stands in its place",
                    hint="somebody renamed the one that this matrix was written to: move that one "
                    "back, then go on with --resume",
                )
            yield

    def begin(self, manifest: Manifest) -> Record:
        """Write what was asked; the record is empty yet."""
        with self._writing():
            for probe in manifest.probes:
                write(self.probe_file(probe.name), probe.text)
            write(self.root / "manifest.json", to_text(manifest, schema=MANIFEST_SCHEMA))
        return Record(manifest=manifest)

    def load(self) -> Record:
        """The record that the directory holds.

        Raises:
            StoreError: it holds none, or what it holds cannot be read.
        """
        if not (self.root / "manifest.json").exists():
            raise UsageError(
                f"{self.root}: no manifest.json, so this is no run directory",
                hint="give the folder that hetero-test wrote, the one with report.md in it",
            )
        manifest = from_file(self.root / "manifest.json", Manifest, schema=MANIFEST_SCHEMA)
        index: dict[str, Any] = {name: [] for name in FOLDERS} | {"ending": Ending.RUNNING.value}
        if (self.root / "run.json").exists():
            index = load(self.root / "run.json")
        try:
            lists = {
                name: tuple(self._indexed(name, entry) for entry in index[name]) for name in FOLDERS
            }
            ending = Ending(index["ending"])
            noted = tuple(map(str, index.get("noted", ())))
            _check_known(manifest, (*lists["runs"], *lists["warmup"], *lists["rechecks"]))
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{self.root / 'run.json'}: it is not what was written") from error
        for name, runs in lists.items():
            lists[name] = (*runs, *self._beyond(manifest, name, runs))
        return Record(
            manifest=manifest,
            runs=lists["runs"],
            warmup=lists["warmup"],
            rechecks=lists["rechecks"],
            ending=ending,
            ending_reason=index.get("ending_reason"),
            warnings=noted,
        )

    def _indexed(self, name: str, entry: dict[str, Any]) -> Run:
        """A run of a list of ``run.json``, which must be the one that is stored.

        Raises:
            StoreError: it lies elsewhere than a run of its name does, or is another one.
            KeyError, TypeError: the entry is not what was written.
        """
        own = f"{name}/V{entry['variant']}/{entry['probe']}-{entry['repeat']}"
        if entry["folder"] != own:
            raise StoreError(
                f"{self.root / 'run.json'}: folder {entry['folder']!r}: its run belongs in {own}",
                hint="the file was changed since it was written; run the matrix again",
            )
        run = self.read(self.root / own)
        if entry["md5"] != run.md5:
            raise StoreError(
                f"{self.root / own / 'run.json'}: it is not the run that {self.root / 'run.json'} "
                f"names: md5 {run.md5}, not {entry['md5']}",
                hint="one of the files was changed since it was written; run the matrix again",
            )
        return run

    def _beyond(self, manifest: Manifest, name: str, named: tuple[Run, ...]) -> list[Run]:
        """The runs of a list that were stored after ``run.json`` was written, in their order.

        What cannot be read, was not planned or lies in another run's place is no such run; going
        on with the directory makes it again.
        """
        found = []
        known = {self.folder(run) for run in named}
        for path in (self.root / name).glob("V*/*/run.json"):
            if path.parent not in known:
                with suppress(StoreError, ValueError):
                    run = self.read(path.parent)
                    _check_known(manifest, (run,))
                    found.append(run)
        return sorted(found, key=lambda run: run.order)

    def read(self, folder: Path) -> Run:
        """The run that is stored in a folder, if it is the one that belongs there.

        Raises:
            StoreError: there is none, it lies elsewhere, belongs elsewhere, or was changed.
        """
        path = folder / "run.json"
        try:
            inside(self.root, str(path.relative_to(self.root)))
        except OSError as error:
            raise StoreError(
                f"{path}: {error.strerror}",
                hint="a run is read from its own folder in the run directory only: copy it there",
            ) from error
        held = from_file(path, StoredRun, schema=RUN_SCHEMA)
        run = self._streams.shared(held.run)
        if self.folder(run) != folder or held.md5 != run.md5:
            told = (
                "its md5 is not that of its stream"
                if self.folder(run) == folder
                else (f"it is the run of {self.folder(run).relative_to(self.root)}")
            )
            raise StoreError(
                f"{path}: {told}",
                hint="the file was changed or copied since it was written; run the matrix again",
            )
        return run

    # ---- cells --------------------------------------------------------------------------

    def probe_file(self, name: str) -> Path:
        """The file that the engine reads its prompt from."""
        return self.root / "probes" / f"{name}.txt"

    def folder(self, cell: Cell | Run) -> Path:
        """Where a cell's files lie."""
        return (
            self.root / list_of(cell.purpose) / f"V{cell.variant}" / f"{cell.probe}-{cell.repeat}"
        )

    def fresh_folder(self, cell: Cell) -> Path:
        """An empty folder for a cell; what an interrupted launch left there is dropped."""
        folder = self.folder(cell)
        with self._writing():
            inside(self.root, str(folder.relative_to(self.root)))
            if folder.exists():
                shutil.rmtree(folder)
            folder.mkdir(parents=True)
        return folder

    def note_start(self, pid: int, started: str | None) -> None:
        """Keep who is running, for a later process that finds this one killed."""
        with self._writing():
            write(self.root / RUNNING, dumps({"pid": pid, "started": started}), durable=False)

    def last_started(self) -> tuple[tuple[int, str], ...]:
        """Pid and start of the engine that was running when this folder was left, if any was."""
        try:
            held = load(self.root / RUNNING)
        except StoreError:
            return ()
        pid, started = held.get("pid"), held.get("started")
        if isinstance(pid, int) and isinstance(started, str):
            return ((pid, started),)
        return ()

    def save_outcome(self, folder: Path, outcome: Outcome) -> None:
        """Keep what came of a process, beside its output."""
        with self._writing():
            text = to_text(outcome, schema=OUTCOME_SCHEMA)
            write(folder / "outcome.json", text, durable=False)

    def save(self, run: Run) -> Run:
        """Keep what came of a cell; the same run, its stream shared with those equal to it."""
        run = self._streams.shared(run)
        with self._writing():
            held = StoredRun(md5=run.md5, run=run)
            write(self.folder(run) / "run.json", to_text(held, schema=RUN_SCHEMA))
        return run

    def publish(self, record: Record, judgment: Judgment) -> None:
        """Rewrite ``run.json`` atomically."""
        folders = {
            (list_of(run.purpose), *run.key): str(self.folder(run).relative_to(self.root))
            for run in (*record.runs, *record.warmup, *record.rechecks)
        }
        text = pieces(record, judgment, folders)
        with self._writing():
            write(self.root / "run.json", text, durable=record.ending is not Ending.RUNNING)

    def publish_report(self, report: str) -> None:
        """Rewrite ``report.md`` atomically."""
        with self._writing():
            write(self.root / "report.md", report, durable=False)


def _identity(folder: Path) -> tuple[int, int] | None:
    """Device and inode of a folder, None where there is none."""
    if not folder.is_dir():
        return None
    status = folder.stat()
    return status.st_dev, status.st_ino


def write(path: Path, text: str | Iterable[str], *, durable: bool = True) -> None:
    """Replace a file by a text, or its pieces, atomically; a durable one is then on disk.

    What can be made again from durable files need not be: waiting for a disk costs more than
    everything else that is done for a run.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("w", encoding="utf-8", newline="\n", errors="backslashreplace") as file:
            file.writelines([text] if isinstance(text, str) else text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def writing(root: Path) -> Iterator[None]:
    """Turn what a disk can refuse into an error that says where and what to do.

    Raises:
        StoreError: the disk is full, read-only, or does not allow it.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{error.filename or root}: cannot be written: {error.strerror}",
            hint=f"what was stored in {root} stays as it is and can be read with "
            "hetero-test report; make room or choose another --out, then go on with --resume",
        ) from error


def _check_known(manifest: Manifest, runs: tuple[Run, ...]) -> None:
    """A run of something that was never planned is no run of this record."""
    variants = {entry.variant.id for entry in manifest.variants}
    probes = {probe.name for probe in manifest.probes}
    for run in runs:
        if run.of not in variants or run.probe not in probes:
            raise ValueError(f"variant {run.of}, probe {run.probe}")


def add(record: Record, run: Run) -> Record:
    """The record with one more run in its list."""
    name = list_of(run.purpose)
    if name == "warmup":
        return replace(record, warmup=(*record.warmup, run))
    if name == "rechecks":
        return replace(record, rechecks=(*record.rechecks, run))
    return replace(record, runs=(*record.runs, run))
