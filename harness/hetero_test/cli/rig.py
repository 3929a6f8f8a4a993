"""``hetero-test rig``: this machine as a rig file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hetero_test.cli.options import path

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

LONGEST_NOTE = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``rig``."""
    parser.add_argument(
        "--under-load",
        action="store_true",
        help="watch links and utilization while your engine decodes: links downshift when idle",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=10.0,
        metavar="S",
        help="how long to watch under load (default: 10)",
    )
    parser.add_argument(
        "--example", action="store_true", help="print a rig file with comments, to be changed"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of TOML")
    parser.add_argument(
        "--out", type=path, metavar="FILE", help="write the rig to a new file instead of stdout"
    )
    parser.add_argument(
        "--log",
        type=path,
        metavar="FILE",
        help="a loader's log, for what ggml says of unified memory (uma: 0 or 1)",
    )
    parser.add_argument(
        "--no-read-test",
        action="store_true",
        help="do not measure the bandwidth of the system's memory (some seconds)",
    )


def run(args: argparse.Namespace) -> int:
    """Look at the machine and print it.

    Raises:
        UsageError: an option is out of range, the log cannot be read, or the file exists.
        StoreError: the file cannot be written.
    """
    from hetero_test.engines.llama_cpp.loader_log import read_loader_log
    from hetero_test.errors import UsageError
    from hetero_test.publish.printable import printable
    from hetero_test.rig.facts_file import dump_rig
    from hetero_test.rig.machine import Sampling
    from hetero_test.rig.probe import READ_TEST_PASSES, probe_rig, this_machine

    if not 0.5 <= args.seconds <= 3600:
        raise UsageError(f"--seconds {args.seconds:g} is not between 0.5 and 3600")
    if args.out is not None and args.out.exists():
        raise UsageError(
            f"{args.out} exists and may hold facts that were fitted or written by hand",
            hint="name another file",
        )
    if args.example:
        return _print_example(args.out)
    uma = None if args.log is None else read_loader_log(args.log).only_uma
    if args.under_load:
        _say(f"watching for {args.seconds:g} s: keep your load running")
    machine = this_machine(passes=None if args.no_read_test else READ_TEST_PASSES)
    sampling = Sampling(under_load=args.under_load, seconds=args.seconds)
    rig = probe_rig(machine, sampling, uma=uma)
    for note in rig.notes:
        _say(printable(note, LONGEST_NOTE))
    return _put(_json(rig) if args.json else dump_rig(rig), args.out)


def _print_example(out: Path | None) -> int:
    from hetero_test.formats.examples import Example, example_text

    return _put(example_text(Example.RIG), out)


def _put(text: str, out: Path | None) -> int:
    """Print a text, or write it to a file; the exit code."""
    from hetero_test.errors import ExitCode
    from hetero_test.store.run_dir import write, writing

    if out is None:
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()
    else:
        with writing(out):
            write(out, text)
        _say(f"wrote {out}")
    return int(ExitCode.PASS)


def _json(rig: object) -> str:
    """The rig as JSON, every fact an object with value, origin, source, low and high."""
    from dataclasses import asdict
    from typing import Any, cast

    from hetero_test.publish.printable import json_text

    values = {"schema": "hetero-test/rig/1", **asdict(cast("Any", rig))}
    return json_text(values, indent=2)


def _say(text: str) -> None:
    from hetero_test.publish.printable import visible_lines

    print(f"hetero-test: {visible_lines(text)}", file=sys.stderr)
