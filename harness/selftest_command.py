"""``hetero-test selftest``: every named fault, what was expected, and what was concluded."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``selftest``."""
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only the faults whose name holds this text"
    )
    parser.add_argument("--list", action="store_true", help="name the faults, run nothing")


def run(args: argparse.Namespace) -> int:
    """0 only if every fault is concluded as it should be."""
    from harness.errors import ExitCode, UsageError
    from harness.plain import printable
    from harness.selftest import CASES, check

    cases = [case for case in CASES if args.only in case.name]
    if not cases:
        raise UsageError(f"--only {args.only}: no fault of that name", hint="selftest --list")
    wrong = 0
    for case in cases:
        if args.list:
            print(f"{case.name}: {case.expected}")
            continue
        with TemporaryDirectory(prefix="hetero-test-") as folder:
            finding = check(case, Path(folder))
        wrong += not finding.agrees
        mark = "agrees  " if finding.agrees else "DISAGREES"
        line = f"{mark} {case.name}: expected {case.expected}; {finding.text}"
        print(printable(line, 400), flush=True)
    if not args.list:
        print(f"{len(cases) - wrong} passed, {wrong} failed")
    sys.stdout.flush()
    return ExitCode.FAIL if wrong else ExitCode.PASS
