"""``hetero-test run``: from parsed options to an exit code."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from harness.errors import ExitCode, UsageError
from harness.options import DEMO_FOLDER, add_arguments, default_out

__all__ = ["add_arguments", "carry_out", "run", "tell"]

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from harness.prepare import Ready
    from harness.record import Manifest, Record
    from harness.verdict import Judgment


def run(args: argparse.Namespace) -> int:
    """Run, or list, a matrix."""
    from harness.prepare import prepare

    if args.engine_flags is None:
        raise UsageError(
            "no model flags: write -- and then the engine's own flags",
            hint="hetero-test --build-dir build -- --pack /models/pack …",
        )
    if args.resume and args.out is None:
        raise UsageError("--resume: say which run directory is to be gone on with: --out DIR")
    if args.junit is not None:
        refuse_no_file(args.junit)
    args.out = args.out or default_out()
    ready = prepare(args)
    if args.list:
        from harness.listing import listing

        sys.stdout.write(listing(ready))
        return ExitCode.PASS
    return tell(args, *carry_out(args, ready))


def refuse_no_file(path: Path) -> None:
    """Refuse what no file can be written to while nothing is lost by it.

    Raises:
        UsageError: it is a folder, or below something that is none.
    """
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if path.is_dir() or not above.is_dir():
        what = "it is a folder" if path.is_dir() else f"{above} is no folder"
        raise UsageError(f"--junit {path}: {what}", hint="name a file")


def carry_out(args: argparse.Namespace, ready: Ready) -> tuple[Record, Judgment]:
    """Run a prepared matrix in ``args.out``."""
    from harness.bystanders import Bystanders, looks
    from harness.console import Console
    from harness.followups import launches
    from harness.interrupt import interrupt_on_signals
    from harness.processes import sweep
    from harness.resume import begin_or_resume
    from harness.session import Session
    from harness.store import Store

    out = args.out
    store = Store(out)
    if not args.resume:
        store.refuse_used(besides=(DEMO_FOLDER,))
    deadline = time.monotonic() + args.total_timeout if args.total_timeout else None
    with (
        interrupt_on_signals() as interrupt,
        store.owned(),
        Console(quiet=args.quiet) as console,
    ):
        record = begin_or_resume(store, ready.manifest, resume=args.resume)
        if args.resume and record.manifest is ready.manifest:
            console.say(f"nothing to go on with in {out}: starting anew")
        manifest = record.manifest
        if args.resume:
            for left in sweep(manifest.mark, recorded=store.last_started()):
                console.say(f"ended what an interrupted run had left: {left}")
        console.say(
            f"{launches(manifest)} launches in {out}, and extra ones where the logs ask for them"
        )
        session = Session(
            engine=ready.engine,
            binaries=ready.binaries,
            survey=ready.survey,
            store=store,
            watcher=console,
            interrupt=interrupt,
            render=report_renderer(manifest, out),
            deadline=deadline,
            mark=manifest.mark,
            bystanders=Bystanders(looks()),
        )
        return session.run(record)


def report_renderer(manifest: Manifest, out: Path) -> Callable[[Record, Judgment], str]:
    """The function that renders ``report.md``; loads its libraries at the first call."""

    def render(record: Record, judgment: Judgment) -> str:
        from harness.builders import build

        return build("markdown", record, judgment, out=out, redact=manifest.redact)

    return render


def tell(args: argparse.Namespace, record: Record, judgment: Judgment) -> int:
    """Verdict lines and the report's path on stdout; returns the exit code.

    Raises:
        StoreError: the JUnit file cannot be written; everything else was told before.
    """
    from harness.builders import build
    from harness.ci import annotation, write_summary
    from harness.exits import exit_code
    from harness.summary import verdict_lines

    out = args.out
    for line in verdict_lines(record, judgment):
        print(line)
    if (command := annotation(judgment, os.environ)) is not None:
        print(command)
    redact = record.manifest.redact
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        report = build("markdown", record, judgment, out=out, redact=redact)
        if (why := write_summary(report, os.environ)) is not None:
            print(f"hetero-test: warning: {why}", file=sys.stderr)
    print(f"report: {out / 'report.md'}", flush=True)
    if args.junit is not None:
        _write_junit(args.junit, build("junit", record, judgment, out=out, redact=redact))
    return exit_code(record, judgment)


def _write_junit(path: Path, text: str) -> None:
    from harness.errors import StoreError
    from harness.store import write

    try:
        write(path, text)
    except OSError as error:
        raise StoreError(
            f"--junit {path}: cannot be written: {error.strerror}",
            hint="hetero-test report RUNDIR --format junit prints the same",
        ) from error
