"""The program on a terminal: the live line, and what an interrupt leaves."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pexpect
import pytest

from hetero_test.errors import ExitCode
from tests.scripted import MODEL_FLAGS, always, when, write_build

pytestmark = pytest.mark.process

HETERO_TEST = (sys.executable, "-m", "hetero_test")


def spawn(*args: str, cwd: Path) -> pexpect.spawn[str]:
    """The program on a terminal of its own."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "harness"), "TERM": "xterm"}
    env.pop("COLUMNS", None)  # xdist's; the terminal of this test has a width of its own
    return pexpect.spawn(
        HETERO_TEST[0],
        [*HETERO_TEST[1:], *args],
        cwd=str(cwd),
        env=env,
        timeout=60,
        encoding="utf-8",
        dimensions=(24, 120),
    )


def test_on_a_terminal_a_live_line_shows_what_runs(tmp_path: Path) -> None:
    """The live line names the variant, the time, the way to go; it is gone at the end."""
    build = write_build(tmp_path / "build", always(hang=2.5))
    child = spawn(
        "--build-dir", str(build), "--only", "1", "--repeats", "1", "--", *MODEL_FLAGS, cwd=tmp_path
    )
    child.expect(r"1/2 variant 0, repeat 1 · \d")
    child.expect(r"2/2 variant 1, repeat 1 · [^\r]* to the end · 1 OK, 0 not · 0 PASS / 0 FAIL")
    child.expect("PASS — ")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_one_interrupt_finishes_the_bookkeeping(tmp_path: Path) -> None:
    """Ctrl-C once: exit 130, a valid partial report, and the cut run is not stored."""
    build = write_build(tmp_path / "build", when("--draft-chain-batch", hang=60))
    out = tmp_path / "out"
    child = spawn("--build-dir", str(build), "--out", str(out), "--", *MODEL_FLAGS, cwd=tmp_path)
    child.expect(r"variant 4, repeat 1 · \d")
    child.sendintr()
    child.expect("INCONCLUSIVE — ")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == ExitCode.INTERRUPTED
    import json

    told = json.loads((out / "run.json").read_text())
    assert told["conclusion"] == "INCONCLUSIVE"
    assert told["ending"] == "interrupted"
    assert [run["variant"] for run in told["runs"]] == ["0", "1", "2", "3"]
    assert "INCONCLUSIVE" in (out / "report.md").read_text().splitlines()[0]


def test_an_interrupted_matrix_keeps_a_proven_fail(tmp_path: Path) -> None:
    """What was proven before Ctrl-C stays proven; the exit code is 130 all the same."""
    rules = (
        when("--main-device 1", nth=[2], flip=3),
        when("--auto-roles", nth=[2], hang=60),
    )
    build = write_build(tmp_path / "build", *rules)
    out = tmp_path / "out"
    args = ("--only", "2,6", "--repeats", "3")
    child = spawn(
        "--build-dir", str(build), "--out", str(out), *args, "--", *MODEL_FLAGS, cwd=tmp_path
    )
    child.expect(r"variant 6, repeat 2 · \d")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == ExitCode.INTERRUPTED
