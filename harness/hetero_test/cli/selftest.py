"""``hetero-test selftest``: the bundled engine with named faults, each of which must be seen.

A comparator that can only say PASS passes every test of its good days. So here the engine is
broken on purpose, in ways that are known. A :class:`Case` names the fault and what is right;
:func:`check` runs it and holds what was concluded against that.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from hetero_test.bundled.build import write_build
from hetero_test.bundled.faults import VARIABLE
from hetero_test.errors import ExitCode, UsageError
from hetero_test.launch.interrupt import interrupt_on_signals
from hetero_test.plan.options import RunOptions
from hetero_test.plan.prepare import prepare
from hetero_test.publish.printable import printable
from hetero_test.report.formats import report_renderer
from hetero_test.session.loop import Silent
from hetero_test.session.matrix import run_matrix
from hetero_test.values.record import Limits
from hetero_test.values.run import RunState
from hetero_test.values.verdict import Conclusion, Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Judgment

PASS, FAIL, OPEN = Conclusion.PASS, Conclusion.FAIL, Conclusion.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, and what must be concluded of it.

    Attributes:
        name: for people.
        fault: as the engine's variable takes it, see :mod:`hetero_test.bundled.faults`; empty for
            an engine without a fault.
        expected: the conclusion.
        state: a state that some run must have.
        failed: (kind, variant) of a verdict that must be FAIL.
        said: a text that headline, reason, verdicts or warnings must hold.
        only: the variants: by default the one that needs the anchor, and one with chained drafts.
        idle_s: limit without any output.
        pack: what the engine reads its model from.
    """

    name: str
    fault: str
    expected: Conclusion
    state: RunState | None = None
    failed: tuple[str, str] | None = None
    said: str = ""
    only: tuple[str, ...] = ("1", "4")
    idle_s: float = 8.0
    pack: Literal["canonical", "native"] = "canonical"


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


_ON_4 = "@has:--draft-chain-batch"
"""Only variant 4 of the two has this flag."""
LONGEST_S = 600.0
"""No run of the bundled engine takes this long, on however busy a machine."""
CASES = (
    Case("no fault", "", PASS),
    Case("a token flipped early", f"flip-early{_ON_4}", FAIL, failed=("exact", "4")),
    Case("a token flipped late", f"flip-late{_ON_4}", FAIL, failed=("exact", "4")),
    Case("a token flipped at the last place", f"flip-last{_ON_4}", FAIL, failed=("exact", "4")),
    Case("one placement is not deterministic", f"random-flip{_ON_4}", FAIL, failed=("repeat", "4")),
    Case("a crash before the dump", f"crash-before{_ON_4}", OPEN, RunState.CRASHED, said="SIGSEGV"),
    Case("a crash after the dump", f"crash-after{_ON_4}", OPEN, RunState.CRASHED, said="SIGSEGV"),
    Case(
        "a hang that is deaf to INT and TERM",
        f"hang:deaf{_ON_4}",
        OPEN,
        RunState.TIMED_OUT,
        idle_s=3.0,
    ),
    Case("a dump that ends early", f"truncate{_ON_4}", FAIL, RunState.TRUNCATED),
    Case("garbage from one placement", f"garbage{_ON_4}", FAIL, RunState.DEGENERATE),
    Case("equal garbage from everyone", "garbage:3", OPEN, RunState.DEGENERATE),
    Case("logits that are not finite", "nan-line", OPEN, RunState.DEGENERATE),
    Case("another prompt was read", f"wrong-prompt{_ON_4}", OPEN, RunState.WRONG_PROMPT),
    Case("sampling left on", "sampling-on", OPEN, RunState.NOT_GREEDY),
    Case("two dumps in one run", f"two-dumps{_ON_4}", OPEN, RunState.NO_STREAM),
    Case("a dump cut by foreign text, alike everywhere", "foreign-text", OPEN, RunState.NO_STREAM),
    Case("an error line with exit code 0", f"error-line{_ON_4}", OPEN, RunState.CRASHED),
    Case("flags refused after the loading", f"late-refusal{_ON_4}", PASS, RunState.REFUSED),
    Case("a placement that does not fit", f"out-of-memory{_ON_4}", PASS, RunState.NO_MEMORY),
    Case(
        "placement flags without effect",
        "ignore-roles",
        OPEN,
        said="nothing was seen to move",
        only=("2",),
    ),
    Case(
        "a drafter that silently stays where it was",
        "draft-fallback",
        OPEN,
        said="nothing was seen to move",
        only=("1",),
    ),
    Case("a native pack, whose estimate is not its final size", "", PASS, pack="native"),
    Case("a forced cache that is clipped", "clip-cache:40@forced", PASS, said="1s"),
    Case(
        "an automatic size that moves between repeats",
        "drifting-auto@auto,every:2,has:--draft-chain-batch",
        OPEN,
        said="different residencies",
    ),
    Case("a dead baseline", "dead-baseline", OPEN, RunState.CRASHED),
    Case("a noisy baseline", "noisy-baseline", OPEN, said="the baseline does not repeat itself"),
    Case("all placements wrong alike", "all-placed-wrong", FAIL, failed=("anchor", "1f")),
    Case(
        "a weak drafter under equal streams",
        f"weak-drafter{_ON_4}",
        PASS,
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
    made = write_build(folder / "engine", pack=case.pack)
    out = folder / "out"
    options = RunOptions(
        build_dir=made.build_dir,
        out=out,
        model_flags=made.model_flags,
        vocab=made.vocab,
        max_new=40,
        only=case.only,
        limits=Limits(run_s=LONGEST_S, idle_s=case.idle_s),
        argv=("selftest",),
    )
    # The engine gets the fault the way it gets everything else.
    fault = {VARIABLE: case.fault} if case.fault else {}
    with interrupt_on_signals() as interrupt, _environment(fault):
        ready = prepare(options)
        return run_matrix(
            ready,
            out,
            resume=False,
            watcher=Silent(),
            interrupt=interrupt,
            render=report_renderer(ready.manifest, out),
        )


@contextmanager
def _environment(env: dict[str, str]) -> Iterator[None]:
    """These variables are set while the block runs."""
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
