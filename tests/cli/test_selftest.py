"""The negative control is itself held: it knows its faults, and it can disagree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hetero_test.bundled.faults import VARIABLE, active_faults
from hetero_test.cli.main import main
from hetero_test.cli.selftest import CASES, check
from hetero_test.errors import ExitCode
from hetero_test.values.run import RunState
from hetero_test.values.verdict import Conclusion


def test_every_fault_is_one_that_the_engine_knows(tmp_path: Path) -> None:
    """A mistyped fault would end the engine, which some cases would take for what they expect."""
    for case in CASES:
        active_faults({VARIABLE: case.fault}, (), counters=tmp_path)
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.process
def test_one_case_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    """It says what was expected and concluded, and counts."""
    assert main(["selftest", "--only", "flipped early"]) == ExitCode.PASS
    told = capsys.readouterr().out
    assert told.startswith("agrees a token flipped early: expected FAIL; FAIL")
    assert told.endswith("1 passed, 0 failed\n")


@pytest.mark.process
def test_it_disagrees_in_every_respect(tmp_path: Path) -> None:
    """Another conclusion, state, verdict or text than the expected one is told, each of them."""
    (plain,) = (case for case in CASES if case.name == "no fault")
    wanted = replace(
        plain,
        expected=Conclusion.FAIL,
        state=RunState.CRASHED,
        failed=("exact", "4"),
        said="a fault that nobody made",
    )
    finding = check(wanted, tmp_path)
    assert not finding.agrees
    concluded, *_, state, verdict, said = finding.text.split("; ")
    assert concluded.startswith("concluded PASS")
    assert state == "no run was CRASHED (OK)"
    assert verdict == "exact 4 did not fail"
    assert said == "nothing says 'a fault that nobody made'"


def test_a_name_that_no_case_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing run is no success."""
    assert main(["selftest", "--only", "no such fault"]) == ExitCode.USAGE
    assert "no fault of that name" in capsys.readouterr().err
