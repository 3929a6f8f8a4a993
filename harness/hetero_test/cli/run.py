"""``hetero-test run``: parsed options come in, an exit code goes out.

:func:`execute` runs the matrix; with ``--list``, :func:`listing` gives the plan and every command
line, and nothing is launched.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.cli.options import add_arguments, out_dir
from hetero_test.errors import ExitCode, UsageError
from hetero_test.plan.options import RunOptions
from hetero_test.publish.printable import visible, visible_path
from hetero_test.session.schedule import launches, planned_cells
from hetero_test.values.record import Limits
from hetero_test.values.run import NO_TRACE, Purpose

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from hetero_test.plan.prepare import Ready
    from hetero_test.values.record import Record
    from hetero_test.values.variant import PlannedVariant
    from hetero_test.values.verdict import Judgment

__all__ = ["add_arguments", "execute", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """A matrix run as it was asked for on the command line.

    Attributes:
        options: of the run itself.
        listed: print the plan, run nothing.
        junit: a JUnit file that is written as well.
        quiet: no progress on stderr.
    """

    options: RunOptions
    listed: bool
    junit: Path | None
    quiet: bool


def run_command(
    args: argparse.Namespace, *, out: Path, build_dir: Path, model_flags: Sequence[str]
) -> RunCommand:
    """Parsed words of ``run`` and ``demo`` as one value.

    Args:
        args: as parsed by a parser with :func:`add_arguments`.
        out: the run directory, see :func:`out_dir`.
        build_dir: folder that holds the engine's binaries.
        model_flags: the engine's own command line.

    Raises:
        UsageError: a file that is to be written cannot be.
    """
    if args.junit is not None:
        _refuse_no_file(args.junit)
    options = RunOptions(
        build_dir=build_dir,
        out=out,
        model_flags=tuple(model_flags),
        matrix=args.matrix,
        only=args.only,
        skip=args.skip,
        devices=args.devices,
        expect_devices=args.expect_devices,
        kinds=tuple(args.device_kind),
        fast_device=args.fast_device,
        max_new=args.max_new,
        repeats=args.repeats,
        warmup=args.warmup,
        pinned=args.pinned,
        limits=Limits(run_s=args.timeout, idle_s=args.idle_timeout, total_s=args.total_timeout),
        tokens=args.tokens,
        seed=args.seed,
        vocab=args.vocab,
        tokens_files=tuple(args.tokens_file),
        resume=args.resume,
        strict=args.strict,
        predict=args.predict,
        redact=not args.no_redact,
        argv=tuple(args.own_argv),
    )
    return RunCommand(options=options, listed=args.list, junit=args.junit, quiet=args.quiet)


def _refuse_no_file(path: Path) -> None:
    """Refuse what no file can be written to while nothing is lost by it.

    Raises:
        UsageError: it is a folder, or below something that is none.
    """
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if path.is_dir() or not above.is_dir():
        what = "it is a folder" if path.is_dir() else f"{above} is no folder"
        raise UsageError(f"--junit {path}: {what}", hint="name a file")


def run(args: argparse.Namespace) -> int:
    """Run, or list, a matrix."""
    if args.engine_flags is None:
        raise UsageError(
            "no model flags: write -- and then the engine's own flags",
            hint="hetero-test --build-dir build -- --pack /models/pack …",
        )
    return execute(
        run_command(
            args, out=out_dir(args), build_dir=args.build_dir, model_flags=args.engine_flags
        )
    )


def execute(command: RunCommand) -> int:
    """Carry a command out; the exit code."""
    from hetero_test.plan.prepare import prepare

    ready = prepare(command.options)
    if command.listed:
        sys.stdout.write(listing(ready))
        return ExitCode.PASS
    return _tell(command, *_carry_out(command, ready))


def _carry_out(command: RunCommand, ready: Ready) -> tuple[Record, Judgment]:
    from hetero_test.cli.progress import Console
    from hetero_test.launch.interrupt import interrupt_on_signals
    from hetero_test.report.formats import report_renderer
    from hetero_test.session.matrix import run_matrix

    out = command.options.out
    with interrupt_on_signals() as interrupt, Console(quiet=command.quiet) as console:
        return run_matrix(
            ready,
            out,
            resume=command.options.resume,
            watcher=console,
            interrupt=interrupt,
            render=report_renderer(ready.manifest, out),
        )


def _tell(command: RunCommand, record: Record, judgment: Judgment) -> int:
    """Verdict lines and the report's path on stdout; returns the exit code.

    Raises:
        StoreError: the JUnit file cannot be written; everything else was told before.
    """
    from hetero_test.cli.ci import annotation, write_summary
    from hetero_test.judge.judge import exit_code
    from hetero_test.judge.wording import verdict_lines
    from hetero_test.report.formats import build

    out = command.options.out
    for line in verdict_lines(record, judgment):
        print(line)
    if (mark := annotation(judgment, os.environ)) is not None:
        print(mark)
    redact = record.manifest.redact
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        report = build("md", record, judgment, out=out, redact=redact)
        if (why := write_summary(report, os.environ)) is not None:
            print(f"hetero-test: warning: {visible(why)}", file=sys.stderr)
    print(f"report: {visible_path(out / 'report.md')}", flush=True)
    if command.junit is not None:
        _write_junit(command.junit, build("junit", record, judgment, out=out, redact=redact))
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
        *(f"inherits  {name}={value}" for name, value in manifest.inherited),
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
