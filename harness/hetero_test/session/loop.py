"""One matrix, from its plan to its last run: launch, read, store, and judge as it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from hetero_test.engines.base import Binaries, Engine, LaunchedCell, Survey
from hetero_test.errors import HeteroTestError
from hetero_test.judge.judge import judge
from hetero_test.launch.interrupt import Interrupt
from hetero_test.launch.process import launch
from hetero_test.launch.request import ProcessLimits, Request
from hetero_test.rig.contention import ContentionWatch
from hetero_test.session.build_guard import SameEngine, SameFiles
from hetero_test.session.effect import effects, worst
from hetero_test.session.schedule import next_cell, no_baseline, wedged
from hetero_test.session.state import state_of
from hetero_test.store.run_dir import Store, add
from hetero_test.values.outcome import StopReason
from hetero_test.values.record import Ending, Record
from hetero_test.values.run import Run
from hetero_test.values.verdict import Judgment

if TYPE_CHECKING:
    from pathlib import Path

    from hetero_test.values.outcome import Outcome
    from hetero_test.values.reading import Reading
    from hetero_test.values.run import Cell, Probe

COSTS_BETWEEN = 20
"""What is known so far is published again once this many times its cost has passed since."""


class Watcher(Protocol):
    """Who is told how the matrix gets on."""

    def say(self, text: str) -> None:
        """One line of talk beside the runs."""

    def begins(self, record: Record, cell: Cell) -> None:
        """A cell is about to be launched."""

    def ended(self, record: Record, run: Run) -> None:
        """A run was stored."""

    def judged(self, judgment: Judgment) -> None:
        """What is known so far was judged and published."""


class Silent:
    """Tells nobody."""

    def say(self, text: str) -> None:
        """Nothing."""

    def begins(self, record: Record, cell: Cell) -> None:
        """Nothing."""

    def ended(self, record: Record, run: Run) -> None:
        """Nothing."""

    def judged(self, judgment: Judgment) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that the loop needs beside the record.

    Attributes:
        render: record and judgment to the text of ``report.md``.
        deadline: ``time.monotonic()`` at which the total limit is reached, or None.
        mark: by which processes of this run directory are found.
        bystanders: watches the devices meanwhile.
    """

    engine: Engine
    binaries: Binaries
    survey: Survey
    store: Store
    watcher: Watcher
    interrupt: Interrupt
    render: Callable[[Record, Judgment], str]
    deadline: float | None
    mark: str
    bystanders: ContentionWatch

    def run(self, record: Record) -> tuple[Record, Judgment]:
        """Run what is left of a matrix; the record and its judgment as they were published."""
        record = replace(record, ending=Ending.RUNNING, ending_reason=None)
        publisher = _Publisher(self)
        try:
            with self.bystanders:
                record = self._loop(record, publisher)
            noted = dict.fromkeys((*record.warnings, *self.bystanders.told()))
            record = replace(record, warnings=tuple(noted))
        except BaseException as error:
            # Whatever went wrong, what was measured stays readable and says how far it got.
            told = error.what if isinstance(error, HeteroTestError) else str(error)
            publisher.last_words(publisher.latest or record, told or type(error).__name__)
            raise
        return record, publisher.publish(record)

    def _loop(self, record: Record, publisher: _Publisher) -> Record:
        engine, manifest = self.binaries.engine, record.manifest
        unchanged = (SameEngine(engine, manifest), SameFiles(manifest))
        while (cell := next_cell(record, self.engine)) is not None:
            if self.interrupt.requested:
                return replace(record, ending=Ending.INTERRUPTED)
            if self.deadline is not None and time.monotonic() >= self.deadline:
                return replace(record, ending=Ending.TOTAL_TIMEOUT)
            self.watcher.begins(record, cell)
            for same in unchanged:
                same.check()
            outcome, run = self._launch(record, cell)
            if outcome.stopped is StopReason.INTERRUPTED:
                return replace(record, ending=Ending.INTERRUPTED)
            if outcome.stopped is StopReason.TOTAL_LIMIT:
                return replace(record, ending=Ending.TOTAL_TIMEOUT)
            run = self.store.save(run)
            record = add(record, run)
            self.watcher.ended(record, run)
            publisher.after_run(record)
        for same in unchanged:  # the last runs, too, were of this engine
            same.check()
        if (why := wedged(record)) is not None:
            return replace(record, ending=Ending.WEDGED, ending_reason=why)
        if (found := no_baseline(record)) is not None:
            ending, why = found
            return replace(record, ending=ending, ending_reason=why)
        return replace(record, ending=Ending.COMPLETE)

    def _launch(self, record: Record, cell: Cell) -> tuple[Outcome, Run]:
        manifest = record.manifest
        probe = next(p for p in manifest.probes if p.name == cell.probe)
        folder = self.store.fresh_folder(cell)
        argv = self.engine.command(
            self.binaries, cell.flags, probe, probe_file=self.store.probe_file(probe.name)
        )
        request = Request(
            argv=argv,
            env=dict(cell.env),
            stdout=folder / "stdout",
            stderr=folder / "stderr",
            limits=ProcessLimits(
                run_s=manifest.limits.run_s,
                idle_s=manifest.limits.idle_s,
                deadline=self.deadline,
            ),
            mark=f"{self.mark}/{cell.variant}/{cell.probe}-{cell.repeat}",
            dialogue=self.engine.dialogue(argv, probe, folder),
        )
        outcome = launch(request, interrupt=self.interrupt, on_start=self.store.note_start)
        self.store.save_outcome(folder, outcome)
        reading = self._read(folder, cell, probe)
        return outcome, run_of(record, cell, probe, outcome, reading)

    def _read(self, folder: Path, cell: Cell, probe: Probe) -> Reading:
        asked = LaunchedCell(
            flags=cell.flags,
            env=dict(cell.env),
            probe=probe,
            survey=self.survey,
            folder=folder,
        )
        return self.engine.read(folder / "stdout", folder / "stderr", asked)


def run_of(record: Record, cell: Cell, probe: Probe, outcome: Outcome, reading: Reading) -> Run:
    """What came of a cell: the outcome of its process and the reading of its output. Pure."""
    variant = next(e.variant for e in record.manifest.variants if e.variant.id == cell.of)
    parts = effects(variant.effect, reading.sightings, reading.picked)
    is_baseline = cell.of == record.manifest.variants[0].variant.id
    return Run(
        cell=cell,
        outcome=outcome,
        reading=reading,
        finding=state_of(outcome, reading, probe),
        effect=None if is_baseline else worst(parts),
        effect_parts=parts,
    )


class _Publisher:
    """Judges what is known, and writes ``run.json`` and ``report.md``, while the matrix runs.

    What a run gave is stored in its own folder at once. To judge and to publish costs more the
    more runs there are, and more than a fast engine's run; so it follows at intervals, and after
    every run where the runs take longer than that.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.latest: Record | None = None  # with every run that was stored so far
        self.due_at = float("-inf")

    def after_run(self, record: Record) -> None:
        """Publish what is known, where it is due."""
        self.latest = record
        begun = time.monotonic()
        if begun < self.due_at:
            return
        judgment = self._document(record)
        try:
            self._report(record, judgment)
        except HeteroTestError:
            raise
        except Exception:  # noqa: BLE001, S110
            # A report that cannot be rendered must not end what can still be measured;
            # the last rendering, at the end, shows the reason.
            pass
        self.session.watcher.judged(judgment)
        now = time.monotonic()
        self.due_at = now + COSTS_BETWEEN * (now - begun)

    def publish(self, record: Record) -> Judgment:
        """Both, at the end."""
        judgment = self._document(record)
        self._report(record, judgment)
        return judgment

    def last_words(self, record: Record, why: str) -> None:
        """Say how far it got; the reason that is on its way to the user matters more."""
        with suppress(Exception):
            self.publish(replace(record, ending=Ending.BROKEN, ending_reason=why))

    def _document(self, record: Record) -> Judgment:
        judgment = judge(record)
        self.session.store.publish(record, judgment)
        return judgment

    def _report(self, record: Record, judgment: Judgment) -> None:
        self.session.store.publish_report(self.session.render(record, judgment))
