"""The README is executed: help, options, exit codes and commands are the real ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hetero_test.cli.main import COMMANDS, main
from hetero_test.errors import ExitCode, HeteroTestError, NothingToCompareError, UsageError
from hetero_test.plan.matrix import find, shipped

pytestmark = pytest.mark.process

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
        [sys.executable, "-m", "hetero_test", *args, "--help"],
        env={"COLUMNS": "80", "PATH": "", "PYTHONPATH": str(ROOT / "harness")},
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


def test_every_room_can_be_found_from_contributing() -> None:
    """The table of CONTRIBUTING names each folder of the package, and none that is not there."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("| room |")[1].split("\n\n")[0]
    named = set(re.findall(r"^\| `([a-z_/]+)/`", table, re.MULTILINE))
    package = ROOT / "harness" / "hetero_test"
    rooms = {path.parent.relative_to(package).as_posix() for path in package.rglob("*/__init__.py")}
    assert named == rooms - {"triage"}


def test_every_file_that_contributing_names_is_there() -> None:
    """A path from the top or below the package leads somewhere; NAME stands for any name."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = set(re.findall(r"`([\w.]+(?:/[\w.]+)+/?)`", text))
    paths = {path for path in found if "NAME" not in path}
    assert len(paths) > 20
    tops = (ROOT, ROOT / "harness", ROOT / "harness" / "hetero_test")
    assert not {path for path in paths if not any((top / path).exists() for top in tops)}


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
        [sys.executable, "-m", "hetero_test.triage.learn.evaluate"],
        env={"PATH": "", "PYTHONPATH": str(ROOT / "harness")},
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
    """On two equal cards: 16 runs, 20 PASS / 0 FAIL, exit 0."""
    out = tmp_path / "out"
    assert main(["demo", "--out", str(out), "--quiet"]) == ExitCode.PASS
    told = capsys.readouterr().out
    assert "16 runs, 20 PASS / 0 FAIL (8 repeat, 10 exact, 2 anchor)" in told
    assert "16 runs, `20 PASS / 0 FAIL`" in README
    assert told.startswith(
        "PASS — 6 of 6 variants exact (5 at their own residency, 6 at the baseline's), "
        "3 proven to have moved, 3 leave no trace, 0 not run\n"
    )
