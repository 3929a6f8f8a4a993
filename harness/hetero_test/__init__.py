"""hetero-test: whether a model split over unequal accelerators is exact, and what it buys.

For a caller from Python: :func:`run_matrix` runs a matrix, :func:`load_run` reads a run directory,
:func:`judge_run` compares its streams, :func:`render_run` makes a report of it. Whoever brings an
engine of his own writes an :class:`Engine`, whose values are named here too, and an entry point of
the group ``hetero_test.engines``; an engine whose cache size decides what is computed where also
offers :class:`SizedCache`. What is not named in ``__all__`` may change with any version.

Nothing is loaded before somebody asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from hetero_test.engines.base import Binaries, Engine, LaunchedCell, SizedCache, Survey
    from hetero_test.errors import EngineNotFoundError, HeteroTestError, UsageError
    from hetero_test.plan.options import RunOptions
    from hetero_test.report.formats import TextForm
    from hetero_test.session.loop import Watcher
    from hetero_test.values.reading import (
        CacheSize,
        Factor,
        Place,
        Reading,
        Residency,
        Row,
        Sighting,
        Sign,
        Speculation,
        Symptom,
        Timings,
        TokenChance,
    )
    from hetero_test.values.record import Limits, Record
    from hetero_test.values.run import Device, Probe, Run, RunState
    from hetero_test.values.verdict import Conclusion, Judgment, Result, Verdict

__all__ = [
    "Binaries",
    "CacheSize",
    "Conclusion",
    "Device",
    "Engine",
    "EngineNotFoundError",
    "Factor",
    "HeteroTestError",
    "Judgment",
    "LaunchedCell",
    "Limits",
    "Place",
    "Probe",
    "Reading",
    "Record",
    "Residency",
    "Result",
    "Row",
    "Run",
    "RunOptions",
    "RunState",
    "Sighting",
    "Sign",
    "SizedCache",
    "Speculation",
    "Survey",
    "Symptom",
    "Timings",
    "TokenChance",
    "UsageError",
    "Verdict",
    "Watcher",
    "judge_run",
    "load_run",
    "render_run",
    "run_matrix",
]

_HOMES = (
    *("errors", "engines.base", "plan.options", "session.loop"),
    *("values.reading", "values.record", "values.run", "values.verdict"),
)
"""Where the names above are, but for the functions below."""


def run_matrix(options: RunOptions, *, watcher: Watcher | None = None) -> tuple[Record, Judgment]:
    """Run a matrix as ``hetero-test run`` does, and write its run directory.

    At INT, TERM or HUP the matrix ends early, and its record says so (``record.ending``); a second
    signal ends a running engine at once.

    Args:
        options: what is run, and where.
        watcher: told how the matrix gets on; by default nobody is.

    Raises:
        UsageError: an option, a flag or a file is wrong.
        NothingToCompareError: something is missing, and nothing was launched.
        StoreError: the run directory cannot be written.
        RuntimeError: called from another thread than the main one.
    """
    from threading import current_thread, main_thread

    from hetero_test.launch.interrupt import interrupt_on_signals
    from hetero_test.plan.prepare import prepare
    from hetero_test.report.formats import report_renderer
    from hetero_test.session.loop import Silent
    from hetero_test.session.matrix import run_matrix as run_prepared

    if current_thread() is not main_thread():
        raise RuntimeError("run_matrix() must be called from the main thread")
    ready = prepare(options)
    with interrupt_on_signals() as interrupt:
        return run_prepared(
            ready,
            options.out,
            resume=options.resume,
            watcher=watcher or Silent(),
            interrupt=interrupt,
            render=report_renderer(ready.manifest, options.out),
        )


def load_run(folder: Path) -> Record:
    """What a run directory holds: what was asked, and every run that was stored.

    Raises:
        UsageError: the folder is not a run directory.
        StoreError: what it holds cannot be read, or is of another version.
    """
    from hetero_test.store.run_dir import Store

    return Store(folder).load()


def judge_run(record: Record, *, strict: bool | None = None) -> Judgment:
    """Compare the streams of a record; pure, so an old record can be judged again.

    Args:
        record: as run or loaded.
        strict: accept no effect that was not seen; None as it was asked for when it was run.
    """
    from dataclasses import replace

    from hetero_test.judge.judge import judge

    if strict is not None:
        record = replace(record, manifest=replace(record.manifest, strict=strict))
    return judge(record)


def render_run(
    record: Record, judgment: Judgment, folder: Path, *, form: TextForm = "md", redact: bool = True
) -> str:
    """A report, fit for pasting unless ``redact`` is False.

    Args:
        record: as run or loaded.
        judgment: of that record.
        folder: its run directory, whose path is replaced in the report.
        form: ``html`` needs the extra of that name for its chart.
        redact: replace names, paths and addresses.
    """
    from hetero_test.report.formats import build

    return build(form, record, judgment, out=folder, redact=redact)


if not TYPE_CHECKING:  # a type checker would take any name for one that is here

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in __all__:
            homes = (import_module(f"{__name__}.{home}") for home in _HOMES)
            return next(vars(home)[name] for home in homes if name in vars(home))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
