"""An engine of somebody else's: a distribution of its own, found by its entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hetero_test
from hetero_test.cli.main import main
from hetero_test.errors import ExitCode
from tests.example_engine.hetero_test_abacus import Abacus

pytestmark = pytest.mark.process

EXAMPLE = Path(__file__).parent / "example_engine"
HARNESS = Path(hetero_test.__file__).parents[1]
MATRIX = (EXAMPLE / "abacus.toml").read_text(encoding="utf-8")
HALF = '[[variant]]\nid = "2"\nname = "rounded"\nflags = ["--half"]\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the example is installed as pip installs it."""
    folder = tmp_path_factory.mktemp("site")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    options = ("--no-deps", "--no-compile", "--target", str(folder))
    subprocess.run([*pip, *options, str(EXAMPLE)], check=True, timeout=120, capture_output=True)
    assert [path.name for path in folder.glob("*.dist-info")] == [
        "hetero_test_abacus-1.0.dist-info"
    ]
    return folder


def outside(
    folder: Path, matrix: str, *paths: Path, flags: tuple[str, ...] = ("--model", "11")
) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder of the user's, with a matrix file of his own."""
    (folder / "mine.toml").write_text(matrix, encoding="utf-8")
    command = [sys.executable, "-m", "hetero_test", "--matrix", "mine.toml", "--out", "out"]
    command += ["--build-dir", str(EXAMPLE / "engine"), "--quiet", "--", *flags]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HARNESS, *paths)))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_is_an_engine() -> None:
    """The type checker holds it to the protocol, whose values the package names publicly."""
    engine: hetero_test.Engine = Abacus()
    assert not isinstance(engine, hetero_test.SizedCache)


def test_it_is_run_through_a_matrix_from_outside(site: Path, tmp_path: Path) -> None:
    """Compared, proven to have moved by its own line, and stored as any other."""
    done = outside(tmp_path, MATRIX, site)
    assert done.returncode == ExitCode.PASS, done.stderr
    told = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert {run["variant"]: run["effect"] for run in told["runs"]} == {"0": None, "1": "PROVEN"}
    assert [v["result"] for v in told["verdicts"] if v["kind"] == "exact"] == ["PASS", "PASS"]


def test_another_stream_of_it_fails(site: Path, tmp_path: Path) -> None:
    """A variant that rounds gives other ids at the same residency."""
    done = outside(tmp_path, MATRIX + HALF, site)
    assert done.returncode == ExitCode.FAIL, done.stderr
    assert "differs at equal residency (2)" in done.stdout


def test_a_flag_that_it_refuses_is_no_pass(site: Path, tmp_path: Path) -> None:
    """Its own error line is quoted, nothing is concluded, and the command line is to be mended."""
    done = outside(tmp_path, MATRIX, site, flags=("--no-such-flag",))
    assert done.returncode == ExitCode.USAGE
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "abacus: error: unrecognized arguments: --no-such-flag" in report


def test_what_is_not_installed_is_not_there(tmp_path: Path) -> None:
    """The matrix file is refused with its line and the engines that there are."""
    done = outside(tmp_path, MATRIX)
    assert done.returncode == ExitCode.USAGE
    assert "mine.toml:1: engine: unknown engine 'abacus'" in done.stderr
    assert "known: strata, llama_cpp, ik_llama" in done.stderr


# ---- packages that are broken -------------------------------------------------------------------

WHOLE = "from tests.example_engine.hetero_test_abacus import Abacus\n"
BROKEN = {
    "import": ("import no_such_module_of_mine\n", "No module named 'no_such_module_of_mine'"),
    "name": ("", "has no attribute 'Abacus'"),
    "constructor": ("class Abacus:\n    def __init__(self): 1 / 0\n", "ZeroDivisionError"),
    "methods": ("class Abacus:\n    name = 'abacus'\n", "has no cannot_fit, combine, command"),
    "another name": (f"{WHOLE}class Abacus(Abacus):\n    name = 'sand'\n", "calls itself 'sand'"),
}


def distribution(folder: Path, name: str, code: str) -> Path:
    """An installed distribution with an entry point for ``abacus``."""
    module, info = name.replace("-", "_"), folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[hetero_test.engines]\nabacus = {module}:Abacus\n")
    (folder / f"{module}.py").write_text(code)
    return folder


def called(folder: Path) -> int:
    """The program on the example's matrix, in this process."""
    build = str(EXAMPLE / "engine")
    matrix = str(EXAMPLE / "abacus.toml")
    return main(["--matrix", matrix, "--build-dir", build, "--out", str(folder / "out"), "--"])


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_package_is_told(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong, which package it is and what to do; no traceback, and nothing is launched."""
    code, what = BROKEN[how]
    name = f"broken-{how.replace(' ', '-')}"
    monkeypatch.syspath_prepend(distribution(tmp_path / "site", name, code))
    assert called(tmp_path) == ExitCode.NOTHING_TO_COMPARE
    told = capsys.readouterr().err
    assert f"engine 'abacus' of {name}" in told
    assert what in told
    assert "mend or uninstall that package" in told
    assert "Traceback" not in told
    assert not (tmp_path / "out").exists()


def test_two_packages_with_one_engine_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which of the two would read the logs must not depend on an order."""
    for name in ("one-abacus", "other-abacus"):
        monkeypatch.syspath_prepend(distribution(tmp_path / name, name, WHOLE))
    assert called(tmp_path) == ExitCode.NOTHING_TO_COMPARE
    told = capsys.readouterr().err
    assert "is brought by several packages" in told
    assert "one-abacus (one_abacus:Abacus)" in told
    assert "other-abacus (other_abacus:Abacus)" in told
