"""``hetero-test run``: from parsed options to an exit code.

``--list``: the plan and every command line, without running anything. Pure.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.cli.options import DEMO_FOLDER, add_arguments, default_out
from hetero_test.errors import ExitCode, UsageError
from hetero_test.publish.printable import visible
from hetero_test.session.schedule import launches, planned_cells
from hetero_test.values.run import NO_TRACE, Purpose

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from hetero_test.plan.prepare import Ready
    from hetero_test.values.record import Manifest, Record
    from hetero_test.values.run import PlannedVariant
    from hetero_test.values.verdict import Judgment

__all__ = ["add_arguments", "carry_out", "run", "tell"]


def run(args: argparse.Namespace) -> int:
    """Run, or list, a matrix."""
    from hetero_test.plan.prepare import prepare

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
        from hetero_test.cli.run import listing

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
    from hetero_test.cli.progress import Console
    from hetero_test.launch.interrupt import interrupt_on_signals
    from hetero_test.launch.leftovers import sweep
    from hetero_test.rig.contention import Bystanders, looks
    from hetero_test.session.loop import Session
    from hetero_test.session.resume import begin_or_resume
    from hetero_test.session.schedule import launches
    from hetero_test.store.run_dir import Store

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
        from hetero_test.report.formats import build

        return build("markdown", record, judgment, out=out, redact=manifest.redact)

    return render


def tell(args: argparse.Namespace, record: Record, judgment: Judgment) -> int:
    """Verdict lines and the report's path on stdout; returns the exit code.

    Raises:
        StoreError: the JUnit file cannot be written; everything else was told before.
    """
    from hetero_test.cli.ci import annotation, write_summary
    from hetero_test.judge.judge import exit_code
    from hetero_test.judge.wording import verdict_lines
    from hetero_test.report.formats import build

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
    from hetero_test.errors import StoreError
    from hetero_test.store.run_dir import write

    try:
        write(path, text)
    except OSError as error:
        raise StoreError(
            f"--junit {path}: cannot be written: {error.strerror}",
            hint="hetero-test report RUNDIR --format junit prints the same",
        ) from error


def listing(ready: Ready) -> str:
    """Variants, devices, and the command of every planned launch, one a line."""
    manifest = ready.manifest
    lines = [
        f"engine    {manifest.engine.name}, sha256 {manifest.engine.sha256[:12]}",
        f"matrix    {manifest.matrix.name}, sha256 {manifest.matrix.sha256[:12]}",
        f"devices   {_devices(ready)}",
        *(f"          {note}" for note in manifest.rig.notes),
        *(f"prompt    {p.name}: {len(p.ids)} ids, {p.source}" for p in manifest.probes),
        "",
        "variants",
        *(_variant(entry) for entry in manifest.variants),
        "",
        f"{launches(manifest)} launches, and extra ones where the logs ask for them",
        *_commands(ready),
    ]
    lines += [f"warning: {text}" for text in manifest.warnings]
    return "\n".join(visible(line) for line in lines) + "\n"


def _devices(ready: Ready) -> str:
    rig = ready.manifest.rig
    count = "unknown" if rig.device_count is None else str(rig.device_count)
    names = "; ".join(f"{device.id}: {device.name}" for device in rig.devices)
    return f"{count} ({rig.how})" + (f": {names}" if names else "")


def _variant(entry: PlannedVariant) -> str:
    variant = entry.variant
    text = f"  {variant.id:<4} {variant.name}"
    if not entry.planned:
        return f"{text}: {'REFUSED' if entry.refused else 'SKIPPED'}, {entry.why_not}"
    if silent := [part for part, value in variant.effect if value == NO_TRACE]:
        text += f" (leaves no trace: {', '.join(silent)})"
    elif not variant.effect and variant.flags:
        text += " (leaves no trace)"
    return text


def _commands(ready: Ready) -> list[str]:
    probes = {probe.name: probe for probe in ready.manifest.probes}
    out = []
    for cell in planned_cells(ready.manifest, ready.engine):
        argv = ready.engine.command(
            ready.binaries,
            cell.flags,
            probes[cell.probe],
            probe_file=Path("probes") / f"{cell.probe}.txt",
        )
        env = " ".join(f"{name}={shlex.quote(value)}" for name, value in cell.env)
        name = f"V{cell.variant}/{cell.probe}-{cell.repeat}"
        if cell.purpose is Purpose.WARMUP:
            name = f"warmup/{name}"
        out.append(f"  {name:<16} {env + ' ' if env else ''}{shlex.join(argv)}")
    return out
