"""Run the tests on every mutant of the rules; tell which one no test notices.

No part of the ordinary suite: it takes an hour. ``python -m tests.mutation`` runs all of it,
``python -m tests.mutation judge/recheck.py`` one module. Exit code 1 if any mutant survives
that ``tests/README.md`` does not list.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import time
import types
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import hypothesis
import pydantic
import pytest

from tests.mutation.mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "harness" / "hetero_test"
TESTS = ROOT / "tests"
CPU_LIMIT_S = 240
"""Of processor time, so that a busy machine makes no mutant look as if it had no end."""
WALL_LIMIT_S = 1200
ARGUMENTS = (
    *("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("--hypothesis-profile", "mutation"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
RANDOM = ("judge/test_properties.py", "session/test_schedule_properties.py")
TARGETS = {
    "judge/comparison.py": "judge/test_exact.py",
    "judge/evidence.py": "judge/test_evidence.py",
    "judge/groups.py": "judge/test_groups.py",
    "judge/judge.py": "judge/test_judge.py",
    "judge/moved.py": "judge/test_moved.py",
    "judge/recheck.py": "judge/test_recheck.py",
    "judge/rules.py": "judge/test_exact.py",
    "judge/streams.py": "judge/test_streams.py",
    "judge/variants.py": "judge/test_variants.py",
    "judge/warnings.py": "judge/test_warnings.py",
    "judge/wording.py": "judge/test_wording.py",
    "plan/plan.py": "plan/test_plan.py",
    "plan/visible_devices.py": "plan/test_visible_devices.py",
    "session/schedule.py": "session/test_schedule.py",
    "values/record.py": "values/test_index.py",
    "values/run.py": "values/test_run.py",
    "values/run_ids.py": "judge/test_groups.py",
}
"""Modules of the package, and the test file of each that is tried first."""
EXTRA = (
    "session/test_extra_runs.py",
    "session/test_pinned_runs.py",
    "values/test_words.py",
)
"""Test files that hold the rest of what ``session/schedule.py`` and ``values/run.py`` do."""
ALONE = {
    "session/effect.py": ("session/test_effect.py",),
    "session/garbage.py": ("session/test_garbage.py",),
    "session/state.py": ("session/test_state.py", "session/test_state_of_streams.py"),
}
"""Rules that few test files hold, which are all that is tried."""


def tests_of(target: str) -> list[str]:
    """Test files in the order that kills soonest: the module's own, the plain, the random."""
    if target in ALONE:
        return [str(TESTS / name) for name in ALONE[target]]
    plain = sorted(f"judge/{path.name}" for path in (TESTS / "judge").glob("test_*.py"))
    others = [name for name in (*plain, *TARGETS.values(), *EXTRA) if name not in RANDOM]
    names = dict.fromkeys((TARGETS[target], *others, *RANDOM))
    return [str(TESTS / name) for name in names]


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed tree."""

    def __init__(self, target: str, mutant: Mutant) -> None:
        self.name = "hetero_test." + target.removesuffix(".py").replace("/", ".")
        self.code = compile(mutant.tree, str(PACKAGE / target), "exec")

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def exec_module(self, module: types.ModuleType) -> None:
        exec(self.code, module.__dict__)


def survives(target: str, mutant: Mutant) -> bool:
    """Whether all tests pass on a mutant, tried in a process of its own."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
        sys.meta_path.insert(0, _Mutated(target, mutant))
        with (
            Path(os.devnull).open("w") as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
        ):
            first, *others = tests_of(target)
            code = pytest.main([*ARGUMENTS, first])  # most fall here, before all is collected
            if code == pytest.ExitCode.OK and others:
                code = pytest.main([*ARGUMENTS, *others])
        os._exit(code)
    end = time.monotonic() + WALL_LIMIT_S
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return judged(os.waitstatus_to_exitcode(status))
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False  # a matrix that does not end is noticed


def judged(code: int) -> bool:
    """Whether pytest's exit code says that all tests passed.

    Raises:
        RuntimeError: pytest itself did not work, so nothing was tested.
    """
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        return False  # a matrix that does not end is noticed
    # A module that cannot be imported any more ends the collection: noticed.
    if code not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}:
        raise RuntimeError(f"pytest ended with {code}")
    return code == pytest.ExitCode.OK


def argued(readme: str) -> set[tuple[str, str]]:
    """Module and mutant of every survivor that the README argues away."""
    found: set[tuple[str, str]] = set()
    target = ""
    for line in readme.splitlines():
        if line.startswith("- `"):
            target = line.split("`")[1]
        elif line.startswith("  - `"):
            found.add((target, line.removeprefix("  - `").removesuffix("`")))
    return found


def main(chosen: Sequence[str]) -> int:
    """Try every mutant of the chosen modules; the number of new survivors decides."""
    hypothesis.settings.register_profile(
        "mutation",
        max_examples=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )
    pydantic.TypeAdapter(int)  # loaded once, before the forks
    sys.dont_write_bytecode = False  # tests are compiled once, not for each mutant
    known = argued((ROOT / "tests" / "README.md").read_text(encoding="utf-8"))
    every = [*TARGETS, *ALONE]
    tried, left, new = 0, 0, 0
    for target in chosen or every:
        source = (PACKAGE / target).read_text(encoding="utf-8")
        if not survives(target, Mutant(0, "nothing is changed", ast.parse(source))):
            raise RuntimeError(f"{target}: its tests fail as it is")
        for mutant in mutants(source):
            tried += 1
            if survives(target, mutant):
                left += 1
                listed = (target, mutant.what) in known
                new += not listed
                mark = "listed  " if listed else "SURVIVES"
                print(f"{mark} {target}:{mutant.line}: {mutant.what}", flush=True)
    print(f"{tried} mutants, {tried - left} noticed, {left} survive, {new} of them not listed")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
