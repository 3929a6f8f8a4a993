"""Files that never end, or that nobody writes to, wherever a file can be named."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rigs import play
from tests.scripted import MODEL_FLAGS, write_build

pytestmark = pytest.mark.process

BOUND = 3 * 2**30
"""Bytes of address space: enough for the program, too little for a file without an end."""
OPTIONS = ("--tokens-file", "--matrix", "--predict")


def call(*args: str) -> subprocess.CompletedProcess[str]:
    """Call the program with a bound on its memory and its time."""
    return subprocess.run(
        [sys.executable, "-m", "hetero_test", *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (BOUND, BOUND)),
    )


def special(folder: Path, kind: str) -> Path:
    """A path of a kind that is read without an end, or waited for."""
    path = folder / "odd.toml"
    match kind:
        case "device":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case _:
            with path.open("wb") as file:
                file.truncate(2**40)  # sparse: it takes no room
    return path


@pytest.mark.parametrize("kind", ["device", "pipe", "endless"])
@pytest.mark.parametrize("option", OPTIONS)
def test_a_run_is_refused_by_a_file_that_has_no_end(tmp_path: Path, option: str, kind: str) -> None:
    """Exit 2 with the file and what it is, before any launch; no hang and no lack of memory."""
    build = write_build(tmp_path / "build")
    path = special(tmp_path, kind)
    out = tmp_path / "out"
    told = call(
        *("--build-dir", str(build), "--out", str(out), option, str(path), "--", *MODEL_FLAGS)
    )
    assert told.returncode == 2, told.stderr
    assert str(path) in told.stderr
    assert "Traceback" not in told.stderr
    assert not (out / "runs").exists()


@pytest.mark.parametrize("kind", ["device", "pipe", "endless"])
@pytest.mark.parametrize("args", [("--rig",), ("--model-facts",), ("--log",)])
def test_triage_refuses_facts_that_have_no_end(tmp_path: Path, args: tuple[str], kind: str) -> None:
    """Rig files, facts of a model and loader logs likewise: exit 2 with the file's name."""
    path = special(tmp_path, kind)
    command = ("rig", "--log") if args == ("--log",) else ("triage", *args)
    told = call(*command, str(path))
    assert told.returncode == 2, told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("kind", ["device", "pipe", "endless"])
@pytest.mark.parametrize("name", ["manifest.json", "run.json"])
def test_a_stored_file_that_has_no_end_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    """The run directory cannot be read: exit 5 with the file; never a record without its runs."""
    out = play(tmp_path, capsys, args=("--only", "1", "--repeats", "1")).out
    (out / name).unlink()
    special(tmp_path, kind).rename(out / name)
    told = call("report", str(out))
    assert told.returncode == 5, told.stderr
    assert str(out / name) in told.stderr
    assert "Traceback" not in told.stderr
