"""A prepared matrix in its run directory: begun or gone on with, run, and left readable."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hetero_test.launch.leftovers import sweep
from hetero_test.plan.defaults import DEMO_FOLDER
from hetero_test.rig.contention import ContentionWatch, looks
from hetero_test.session.loop import Session
from hetero_test.session.resume import begin_or_resume
from hetero_test.session.schedule import launches
from hetero_test.store.run_dir import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hetero_test.launch.interrupt import Interrupt
    from hetero_test.plan.prepare import Ready
    from hetero_test.session.loop import Watcher
    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Judgment


def run_matrix(
    ready: Ready,
    out: Path,
    *,
    resume: bool,
    watcher: Watcher,
    interrupt: Interrupt,
    render: Callable[[Record, Judgment], str],
) -> tuple[Record, Judgment]:
    """Run what is left of a matrix; the record and its judgment as they were published.

    Args:
        ready: the matrix, as prepared.
        out: the run directory.
        resume: go on with what ``out`` holds.
        watcher: told how the matrix gets on.
        interrupt: the wish to stop.
        render: record and judgment to the text of ``report.md``.

    Raises:
        UsageError: ``out`` was made for something else.
        StoreError: ``out`` is in use, holds something, or cannot be written.
    """
    store = Store(out)
    if not resume:
        store.refuse_used(besides=(DEMO_FOLDER,))
    limit = ready.manifest.limits.total_s
    deadline = None if limit is None else time.monotonic() + limit
    with store.owned():
        record = begin_or_resume(store, ready.manifest, resume=resume)
        manifest = record.manifest
        if resume and manifest is ready.manifest:
            watcher.say(f"nothing to go on with in {out}: starting anew")
        if resume:
            for left in sweep(manifest.mark, recorded=store.last_started()):
                watcher.say(f"ended what an interrupted run had left: {left}")
        watcher.say(
            f"{launches(manifest)} launches in {out}, and extra ones where the logs ask for them"
        )
        session = Session(
            engine=ready.engine,
            binaries=ready.binaries,
            survey=ready.survey,
            store=store,
            watcher=watcher,
            interrupt=interrupt,
            render=render,
            deadline=deadline,
            mark=manifest.mark,
            bystanders=ContentionWatch(looks()),
        )
        return session.run(record)
