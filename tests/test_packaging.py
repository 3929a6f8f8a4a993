"""Every way in which the program is installed, on each Python that it promises and that is here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
DEMO = ("demo", "--quiet", "--only", "1", "--repeats", "1", "--max-new", "12")
NOT_COPIED = (".git", ".venv", ".mypy_cache", ".ruff_cache", "__pycache__", "dist", "build")
pytestmark = [pytest.mark.process, pytest.mark.slow]


def run(
    *command: str | Path, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command that sees nothing of the environment that these tests run in."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [os.fspath(word) for word in command],
        cwd=cwd,
        env={**kept, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def interpreter(version: str) -> str:
    """A Python of that version: this one, on PATH, or of pyenv; skips the test where none is."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    name = f"python{version}"
    here = Path(sys.base_prefix, "bin", name)
    others = sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"))
    for found in map(shutil.which, (str(here), name, *map(str, others))):
        # A shim of pyenv is on PATH whether or not there is something behind it.
        if found is not None and answers(found):
            return found
    pytest.skip(f"{name} is not on PATH")


def answers(python: str) -> bool:
    """Whether there is an interpreter behind a name."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, so that building and installing leave nothing in it."""
    ignored = shutil.ignore_patterns(*NOT_COPIED, "hetero-test-2*")
    return Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("src") / "checkout", ignore=ignored))


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source distribution, and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--quiet", "--outdir", out, checkout, cwd=out)
    return out


def test_distributions_hold_matrices_and_reports(built: Path) -> None:
    """The source distribution has both folders as they are, the wheel what the program reads."""
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("matrices", "reports"):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
        assert files
        assert {path.relative_to(ROOT).as_posix() for path in files} <= inside
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (*(ROOT / "matrices").iterdir(), *(ROOT / "reports" / "templates").iterdir()):
        assert f"hetero_test/data/{path.relative_to(ROOT).as_posix()}" in names
    assert {name.partition("/")[0] for name in names} == {
        "hetero_test",
        f"hetero_test-{wheel.name.split('-')[1]}.dist-info",
    }


@pytest.mark.parametrize("version", PYTHONS)
def test_each_way_of_installing_works(
    version: str, checkout: Path, built: Path, tmp_path: Path
) -> None:
    """A wheel, an editable install and a bare checkout, beside a distribution named ``harness``."""
    venv = tmp_path / "venv"
    run(interpreter(version), "-m", "venv", venv, cwd=tmp_path)
    python, program = venv / "bin" / "python", venv / "bin" / "hetero-test"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile")
    (wheel,) = built.glob("*.whl")
    run(*pip, wheel, harness_distribution(tmp_path), cwd=tmp_path)

    works((program,), tmp_path, "wheel")
    works((python, "-m", "hetero_test"), tmp_path, "module")
    place = where(python, tmp_path)
    assert place.is_relative_to(venv)
    assert [path.name for path in (place / "data" / "matrices").iterdir()]

    run(*pip, "--no-deps", "--force-reinstall", "--editable", checkout, cwd=tmp_path)
    assert where(python, tmp_path) == checkout / "harness" / "hetero_test"
    (site,) = (venv / "lib").glob("python*/site-packages")
    (pth,) = [path for path in site.glob("*.pth") if "hetero" in path.name]
    # A path and nothing else: what an import hook finds, type checkers and editors do not.
    assert pth.read_text().split() == [str(checkout / "harness")]
    works((program,), tmp_path, "editable")

    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "hetero-test", cwd=tmp_path)
    bare = (python, "-m", "hetero_test")
    works(bare, checkout, "bare", env={"PYTHONPATH": "harness"}, out=tmp_path)
    works(bare, checkout / "harness", "inside", out=tmp_path)


def works(
    command: Sequence[str | Path],
    cwd: Path,
    name: str,
    *,
    env: dict[str, str] | None = None,
    out: Path | None = None,
) -> None:
    """The program answers, and its demo, which reads a matrix and a template, passes."""
    folder = (out or cwd) / f"out-{name}"
    assert run(*command, "--version", cwd=cwd, env=env).stdout.startswith("hetero-test ")
    told = run(*command, *DEMO, "--out", folder, cwd=cwd, env=env).stdout
    assert told.startswith("PASS"), told
    assert re.search(r"^# ", (folder / "report.md").read_text(), re.MULTILINE)


def where(python: Path, cwd: Path) -> Path:
    """The folder that ``hetero_test`` is imported from, while ``harness`` is another's."""
    code = "import harness, hetero_test; print(harness.OTHER, hetero_test.__file__)"
    other, _, file = run(python, "-c", code, cwd=cwd).stdout.strip().partition(" ")
    assert other == "yes"
    return Path(file).parent


def harness_distribution(folder: Path) -> Path:
    """A wheel with a package of the name that our source folder has too."""
    wheel = folder / "harness-1.0-py3-none-any.whl"
    info = "harness-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("harness/__init__.py", 'OTHER = "yes"\n')
        archive.writestr("harness/cli/__init__.py", "raise SystemExit(1)\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: harness\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return wheel
