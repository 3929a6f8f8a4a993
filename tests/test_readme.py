"""The README is executed: help, options, exit codes and commands are the real ones."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.cli import COMMANDS, main
from harness.errors import ExitCode, HeteroTestError, NothingToCompareError, UsageError
from harness.matrix import find, shipped

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(marker: str) -> str:
    """The fenced block behind a marker."""
    found = re.search(rf"<!-- {marker} -->\n```\w*\n(.*?)```\n", README, re.DOTALL)
    assert found is not None, marker
    return found.group(1)


def help_of(*args: str) -> str:
    """What ``--help`` prints at a width of 80 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "harness", *args, "--help"],
        env={"COLUMNS": "80", "PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_help_in_the_readme_is_the_real_one() -> None:
    """The block behind the marker is what ``hetero-test --help`` prints."""
    assert block("help") == help_of()


def test_every_option_of_run_is_in_the_readme() -> None:
    """An option that works is in the help, and the help is in the README."""
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", help_of("run")))
    assert options <= set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", block("help")))


def test_the_exit_codes_in_the_readme_are_those_of_the_code() -> None:
    """The table and the help name each code once, and no other."""
    table = {int(n) for n in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    told = {int(n) for n in re.findall(r"^  (\d+) +\S", help_of().split("exit codes:")[1], re.M)}
    assert table == told == {int(code) for code in ExitCode}


def test_each_error_class_has_its_own_exit_code() -> None:
    """Usage is 2, nothing to compare 3, everything else that is not a verdict 5."""
    assert UsageError.exit_code is ExitCode.USAGE
    assert NothingToCompareError.exit_code is ExitCode.NOTHING_TO_COMPARE
    assert HeteroTestError.exit_code is ExitCode.COULD_NOT_FINISH


def test_every_command_and_matrix_is_in_the_readme() -> None:
    """What can be called is named."""
    for name in COMMANDS:
        assert f"hetero-test {name}" in README or name == "run"
    for name in shipped():
        assert f"`{name}`" in README


def test_every_module_can_be_found_from_contributing() -> None:
    """The table of CONTRIBUTING names each module of ``harness/``, and none that is not there."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.findall(r"`([a-z_]+)`", text.split("| you want to change")[1].split("## Rules")[0])
    modules = {path.stem for path in (ROOT / "harness").glob("*.py")} - {"__init__", "__main__"}
    assert modules <= set(table)
    assert set(table) <= modules


def test_every_package_is_in_the_wheel() -> None:
    """A folder with modules in it is listed for setuptools, or a wheel would miss it."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {"harness.matrices", "harness.reports"}
    for path in (ROOT / "harness").rglob("*.py"):
        found.add(".".join(path.parent.relative_to(ROOT).parts))
    assert set(listed) == found


def test_the_matrix_in_the_readme_is_valid(tmp_path: Path) -> None:
    """The example can be saved and used as it stands."""
    found = re.search(r"```toml\n(.*?)```", README, re.DOTALL)
    assert found is not None
    (tmp_path / "my.toml").write_text(found.group(1))
    assert [variant.id for variant in find(str(tmp_path / "my.toml")).variants] == ["1"]


def test_the_gate_calls_the_test_command_of_the_readme() -> None:
    """``.ci/run`` takes its command from the README, which names one line."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "README.md" in script
    command = block("test command").strip()
    assert command.count("\n") == 0
    extracted = subprocess.run(
        [
            *("bash", "-c"),
            "sed -n '/<!-- test command -->/,/^```$/p' README.md "
            "| sed -e '1,/^```/d' -e '/^```$/d'",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert extracted.stdout.strip() == command


def test_the_evaluation_in_the_readme_is_the_real_one() -> None:
    """The table stands beside the command that prints it, and is what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "harness.triage.evaluate"],
        env={"PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"<!-- evaluation -->\n(.*?)\n\n", README, re.DOTALL)
    assert found is not None
    assert found.group(1) in done.stdout


def test_the_demo_does_what_the_readme_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On two equal cards: 16 runs, 20 PASS / 0 FAIL, exit 0 (D35)."""
    out = tmp_path / "out"
    assert main(["demo", "--out", str(out), "--quiet"]) == ExitCode.PASS
    told = capsys.readouterr().out
    assert "16 runs, 20 PASS / 0 FAIL (8 repeat, 10 exact, 2 anchor)" in told
    assert "16 runs, `20 PASS / 0 FAIL`" in README
    assert told.startswith(
        "PASS — 6 of 6 variants exact (5 at their own residency, 6 at the baseline's), "
        "3 proven to have moved, 3 leave no trace, 0 not run\n"
    )
