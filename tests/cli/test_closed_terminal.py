"""A terminal that is closed is a wish to stop."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.scripted import MODEL_FLAGS, when, write_build

pytestmark = pytest.mark.process


def begun(
    words: Sequence[str], *, controlling: bool, before: str = ""
) -> tuple[subprocess.Popen[bytes], int]:
    """The program with a terminal of its own, and that terminal's other end."""
    other_end, terminal = pty.openpty()

    def own() -> None:
        if controlling:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    line = f'{before} exec {sys.executable} -m hetero_test "$@"'
    process = subprocess.Popen(
        ["/bin/sh", "-c", line, "sh", *words],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=own,  # noqa: PLW1509 - this test has one thread
    )
    os.close(terminal)
    return process, other_end


def heard(other_end: int, word: bytes) -> None:
    """Read what is printed until a word comes."""
    said = b""
    while word not in said:
        said += os.read(other_end, 4096)


@pytest.mark.parametrize("controlling", [True, False])
def test_a_matrix_whose_terminal_is_closed_was_interrupted(
    tmp_path: Path, *, controlling: bool
) -> None:
    """Exit 130, and the record says so: by SIGHUP, or where none is sent, by the failing write."""
    build = write_build(tmp_path / "build", when("--main-device", hang=0.5))
    out = tmp_path / "out"
    words = ("--build-dir", str(build), "--out", str(out), "--repeats", "3", "--", *MODEL_FLAGS)
    process, other_end = begun(words, controlling=controlling)
    heard(other_end, b"launches in")
    while not (out / "runs/V0").exists():
        time.sleep(0.01)
    os.close(other_end)
    assert process.wait(60) == 130
    assert json.loads((out / "run.json").read_text())["ending"] == "interrupted"


def test_what_cannot_be_told_to_a_closed_terminal_was_interrupted(tmp_path: Path) -> None:
    """Without a matrix too: standard output that was a terminal and is gone ends with 130."""
    build = write_build(tmp_path / "build")
    words = ("--build-dir", str(build), "--list", "--", *MODEL_FLAGS)
    process, other_end = begun(words, controlling=False)
    os.close(other_end)
    assert process.wait(60) == 130


def test_a_terminal_that_is_closed_under_nohup_ends_nothing(tmp_path: Path) -> None:
    """Whoever ignores SIGHUP wants the matrix to go on; only its last words are told to nobody."""
    build = write_build(tmp_path / "build")
    out = tmp_path / "out"
    words = ("--build-dir", str(build), "--out", str(out), "--only", "1", "--", *MODEL_FLAGS)
    process, other_end = begun(words, controlling=True, before="trap '' HUP;")
    heard(other_end, b"launches in")
    os.close(other_end)
    assert process.wait(60) == 130
    assert json.loads((out / "run.json").read_text())["ending"] == "complete"
