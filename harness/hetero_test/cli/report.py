"""``hetero-test report RUNDIR``: judge and render again from what was stored."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hetero_test.cli.options import path

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``report``."""
    from hetero_test.report.formats import FORMATS

    parser.add_argument("rundir", type=path, metavar="RUNDIR", help="folder of a run")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="md",
        help="what to print on stdout (default: md)",
    )
    parser.add_argument("--no-redact", action="store_true", help="keep names, paths and addresses")
    parser.add_argument("--strict", action="store_true", help="judge as run --strict does")


def run(args: argparse.Namespace) -> int:
    """Print one format; the exit code is the conclusion's."""
    from dataclasses import replace

    from hetero_test.judge.judge import conclusion_code, judge
    from hetero_test.report.formats import build_bytes
    from hetero_test.store.run_dir import Store

    record = Store(args.rundir).load()
    if args.strict:
        record = replace(record, manifest=replace(record.manifest, strict=True))
    judgment = judge(record)
    redact = record.manifest.redact and not args.no_redact
    made = build_bytes(args.format, record, judgment, out=args.rundir, redact=redact)
    sys.stdout.buffer.write(made)
    sys.stdout.flush()
    return conclusion_code(judgment)
