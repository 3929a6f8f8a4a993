"""The negative control: the bundled engine with named faults, each of which must be seen.

A comparator that can only say PASS passes every test of its good days. So here the engine is
broken on purpose, in ways that are known, and what is concluded is held against what is right.

``hetero-test selftest``: every named fault, what was expected, and what was concluded.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hetero_test.bundled.build import write_build
from hetero_test.bundled.faults import fault_env
from hetero_test.cli import run as run_command
from hetero_test.plan.prepare import prepare
from hetero_test.values.run import RunState
from hetero_test.values.verdict import Conclusion, Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Judgment

CHAINED = "has:--draft-chain-batch"
QUICK = ("--max-new", "40", "--only", "1,4", "--idle-timeout", "8", "--quiet")
"""Two placements of 40 tokens: the one that needs the anchor, and one that is broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A fault, and what must be concluded of it.

    Attributes:
        name: for people.
        fault: (name, argument, condition) of :func:`hetero_test.bundled.faults.fault_env`;
            an empty name for an engine without a fault.
        expected: the conclusion.
        state: a state that some run must have.
        failed: (kind, variant) of a verdict that must be FAIL.
        said: a text that headline, reason, verdicts or warnings must hold.
    """

    name: str
    fault: tuple[str, str, str] = ("", "", "")
    args: tuple[str, ...] = ()
    pack: str = "canonical"
    expected: Conclusion
    state: RunState | None = None
    failed: tuple[str, str] | None = None
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was concluded of a case.

    Attributes:
        agrees: whether it is what was expected, in every respect.
        text: what was concluded, or in which respect it is not.
    """

    case: Case
    agrees: bool
    text: str


PASS, FAIL, OPEN = Conclusion.PASS, Conclusion.FAIL, Conclusion.INCONCLUSIVE


def _flip(where: str, fault: str) -> Case:
    return Case(
        name=f"a token flipped {where}",
        fault=(fault, "", CHAINED),
        expected=FAIL,
        failed=("exact", "4"),
    )


CASES = (
    Case(name="no fault", expected=PASS),
    _flip("early", "flip-early"),
    _flip("late", "flip-late"),
    _flip("at the last place", "flip-last"),
    Case(
        name="one placement is not deterministic",
        fault=("random-flip", "", CHAINED),
        expected=FAIL,
        failed=("repeat", "4"),
    ),
    Case(
        name="a crash before the dump",
        fault=("crash-before", "", CHAINED),
        expected=OPEN,
        state=RunState.CRASHED,
        said="SIGSEGV",
    ),
    Case(
        name="a crash after the dump",
        fault=("crash-after", "", CHAINED),
        expected=OPEN,
        state=RunState.CRASHED,
        said="SIGSEGV",
    ),
    Case(
        name="a hang that is deaf to INT and TERM",
        fault=("hang", "deaf", CHAINED),
        args=("--idle-timeout", "3"),
        expected=OPEN,
        state=RunState.TIMED_OUT,
    ),
    Case(
        name="a dump that ends early",
        fault=("truncate", "", CHAINED),
        expected=FAIL,
        state=RunState.TRUNCATED,
    ),
    Case(
        name="garbage from one placement",
        fault=("garbage", "", CHAINED),
        expected=FAIL,
        state=RunState.DEGENERATE,
    ),
    Case(
        name="equal garbage from everyone",
        fault=("garbage", "3", ""),
        expected=OPEN,
        state=RunState.DEGENERATE,
    ),
    Case(
        name="logits that are not finite",
        fault=("nan-line", "", ""),
        expected=OPEN,
        state=RunState.DEGENERATE,
    ),
    Case(
        name="another prompt was read",
        fault=("wrong-prompt", "", CHAINED),
        expected=OPEN,
        state=RunState.WRONG_PROMPT,
    ),
    Case(
        name="sampling left on",
        fault=("sampling-on", "", ""),
        expected=OPEN,
        state=RunState.NOT_GREEDY,
    ),
    Case(
        name="two dumps in one run",
        fault=("two-dumps", "", CHAINED),
        expected=OPEN,
        state=RunState.NO_STREAM,
    ),
    Case(
        name="a dump cut by foreign text, alike everywhere",
        fault=("foreign-text", "", ""),
        expected=OPEN,
        state=RunState.NO_STREAM,
    ),
    Case(
        name="an error line with exit code 0",
        fault=("error-line", "", CHAINED),
        expected=OPEN,
        state=RunState.CRASHED,
    ),
    Case(
        name="flags refused after the loading",
        fault=("late-refusal", "", CHAINED),
        expected=PASS,
        state=RunState.REFUSED,
    ),
    Case(
        name="a placement that does not fit",
        fault=("out-of-memory", "", CHAINED),
        expected=PASS,
        state=RunState.NO_MEMORY,
    ),
    Case(
        name="placement flags without effect",
        fault=("ignore-roles", "", ""),
        args=("--only", "2"),
        expected=OPEN,
        said="nothing was seen to move",
    ),
    Case(
        name="a drafter that silently stays where it was",
        fault=("draft-fallback", "", ""),
        args=("--only", "1"),
        expected=OPEN,
        said="nothing was seen to move",
    ),
    Case(
        name="a native pack, whose estimate is not its final size",
        pack="native",
        expected=PASS,
    ),
    Case(
        name="a forced cache that is clipped",
        fault=("clip-cache", "40", "forced"),
        expected=PASS,
        said="1s",
    ),
    Case(
        name="an automatic size that moves between repeats",
        fault=("drifting-auto", "", "auto,every:2,has:--draft-chain-batch"),
        expected=OPEN,
        said="different residencies",
    ),
    Case(
        name="a dead baseline",
        fault=("dead-baseline", "", ""),
        expected=OPEN,
        state=RunState.CRASHED,
    ),
    Case(
        name="a noisy baseline",
        fault=("noisy-baseline", "", ""),
        expected=OPEN,
        said="the baseline does not repeat itself",
    ),
    Case(
        name="all placements wrong alike",
        fault=("all-placed-wrong", "", ""),
        expected=FAIL,
        failed=("anchor", "1f"),
    ),
    Case(
        name="a weak drafter under equal streams",
        fault=("weak-drafter", "", CHAINED),
        expected=PASS,
        said="draft statistics differ",
    ),
)


def check(case: Case, folder: Path) -> Finding:
    """Run one case in an empty folder, and hold its conclusion against what is right."""
    record, judgment = _run(case, folder)
    wrong = tuple(_disagreements(case, record, judgment))
    text = "; ".join(wrong) if wrong else judgment.headline
    return Finding(case=case, agrees=not wrong, text=text)


def _run(case: Case, folder: Path) -> tuple[Record, Judgment]:
    made = write_build(folder / "engine", pack="native" if case.pack == "native" else "canonical")
    own = ["--build-dir", str(made.build_dir), "--vocab", str(made.vocab), *QUICK, *case.args]
    parser = argparse.ArgumentParser()
    run_command.add_arguments(parser)
    args = parser.parse_args([*own, "--out", str(folder / "out")])
    args.engine_flags, args.own_argv = made.model_flags, ["selftest"]
    name, argument, condition = case.fault
    when = tuple(filter(None, condition.split(",")))
    env = fault_env(name, argument=argument or None, when=when) if name else {}
    with _environment(env):
        return run_command.carry_out(args, prepare(args))


@contextmanager
def _environment(env: dict[str, str]) -> Iterator[None]:
    """The engine gets the fault the way it gets everything else."""
    before = dict(os.environ)
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _disagreements(case: Case, record: Record, judgment: Judgment) -> Iterator[str]:
    if judgment.conclusion is not case.expected:
        yield f"concluded {judgment.headline}"
    states = {run.state for run in record.runs}
    if case.state is not None and case.state not in states:
        yield f"no run was {case.state} ({', '.join(sorted(states))})"
    failed = {(v.kind, v.variant) for v in judgment.verdicts if v.result is Result.FAIL}
    if case.failed is not None and case.failed not in failed:
        yield f"{' '.join(case.failed)} did not fail"
    told = [judgment.headline, judgment.reason, *judgment.warnings]
    told += [f"{v.variant} {v.reason}" for v in judgment.verdicts]
    told += [str(run.reason) for run in record.runs]
    if case.said and not any(case.said in text for text in told):
        yield f"nothing says {case.said!r}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``selftest``."""
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only the faults whose name holds this text"
    )
    parser.add_argument("--list", action="store_true", help="name the faults, run nothing")


def run(args: argparse.Namespace) -> int:
    """0 only if every fault is concluded as it should be."""
    from hetero_test.cli.selftest import CASES, check
    from hetero_test.errors import ExitCode, UsageError
    from hetero_test.publish.printable import printable

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
