"""Standard streams and environments that a shell, a CI runner or a container can bring."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.scripted import MODEL_FLAGS, write_build

pytestmark = pytest.mark.process


@dataclass(frozen=True)
class Bash:
    """What a shell line that called the program came to."""

    code: int
    stdout: bytes
    stderr: str
    out: Path


def call(
    folder: Path,
    redirect: str = "",
    *args: str,
    env: dict[str, str] | None = None,
    before: str = "",
) -> Bash:
    """Call the program in a shell, on the smallest matrix that can pass."""
    build = write_build(folder / "build")
    out = folder / "out"
    options = args or ("--only", "1", "--repeats", "1")
    words = ("--build-dir", str(build), "--out", str(out), *options, "--", *MODEL_FLAGS)
    line = f"{shlex.quote(sys.executable)} -m hetero_test {shlex.join(words)} {redirect}"
    done = subprocess.run(
        ["bash", "-c", f"{before} {line}"],
        capture_output=True,
        timeout=120,
        env={**os.environ, **(env or {})},
        check=False,
    )
    return Bash(
        code=done.returncode,
        stdout=done.stdout,
        stderr=done.stderr.decode("utf-8", "replace"),
        out=out,
    )


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full", "<&-", ">&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_or_full_does_not_change_the_exit_code(
    tmp_path: Path, redirect: str
) -> None:
    """Talk that nobody can read ends nothing: least of all with 1, which means FAIL."""
    told = call(tmp_path, redirect)
    assert told.code == 0, told.stderr
    assert "PASS — 1 of 1" in (told.out / "report.md").read_text()


def test_nothing_is_told_into_a_file_of_the_run(tmp_path: Path) -> None:
    """With every stream closed, no file of the run directory takes the place of one."""
    told = call(tmp_path, "<&- >&- 2>&-")
    assert (told.out / ".lock").read_bytes() == b""
    assert told.code == 0


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full"])
def test_a_mistake_is_a_mistake_though_nobody_can_be_told(tmp_path: Path, redirect: str) -> None:
    """A usage error ends with 2 also where standard error cannot be written."""
    assert call(tmp_path, redirect, "--only", "no-such").code == 2


@pytest.mark.parametrize("args", [("--list",), ("--only", "1", "--repeats", "1")])
def test_a_full_standard_output_is_said_and_is_no_bug(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    """The product could not be delivered: exit 5, and a sentence rather than a traceback."""
    told = call(tmp_path, ">/dev/full", *args)
    assert told.code == 5
    assert "standard output cannot be written: No space left" in told.stderr
    assert "Traceback" not in told.stderr
    assert "Exception" not in told.stderr


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
)
def test_an_encoding_without_a_dash_does_not_end_a_matrix(
    tmp_path: Path, env: dict[str, str]
) -> None:
    """A character that the terminal's encoding lacks is shown as an escape."""
    told = call(tmp_path, "", env=env)
    assert told.code == 0, told.stderr
    assert told.stdout.startswith(rb"PASS \u2014 1 of 1")


def test_a_path_that_is_no_text_is_printed_as_it_is(tmp_path: Path) -> None:
    """The report's path can be used as it was printed, whatever bytes it holds."""
    build = write_build(tmp_path / "build")
    out = os.fsencode(tmp_path) + b"/o\xff\xfe"
    argv: list[str | bytes | Path] = [sys.executable, "-m", "hetero_test", "--build-dir", build]
    argv += ["--out", out]
    done = subprocess.run(
        [*argv, "--only", "1", "--repeats", "1", "--quiet", "--", *MODEL_FLAGS],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"report: " + out + b"/report.md\n" in done.stdout


def test_a_reader_that_goes_leaves_the_matrix_running(tmp_path: Path) -> None:
    """Behind ``2>&1 >/dev/null | head -1`` every run is still made."""
    told = call(tmp_path, "2>&1 >/dev/null | head -1; exit ${PIPESTATUS[0]}")
    assert told.code == 0
    assert (told.out / "runs" / "V1f" / "default-1" / "run.json").is_file()


def test_a_user_without_a_home_can_run_a_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may have neither HOME nor an entry for its user: nothing to hide."""
    from hetero_test.publish.host import host_secrets

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    pairs = host_secrets(argv=(), model_flags=(), env=(), build_dir=tmp_path, out=tmp_path / "out")
    assert (str(tmp_path), "<build>") in pairs
