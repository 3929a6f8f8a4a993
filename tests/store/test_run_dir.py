"""What is stored stays: damaged files, full disks, folders that vanish, reports made again."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hetero_test.cli.main import main
from hetero_test.errors import ExitCode
from tests.rigs import play, stored
from tests.scripted import MODEL_FLAGS, launches, script, when, write_build

pytestmark = pytest.mark.process

BREAKS = {
    "replaced": 'cp "{binary}" "{binary}.2"; echo >> "{binary}.2"; mv "{binary}.2" "{binary}"',
    "gone": 'mv "{binary}" "{binary}.old"',
}


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"schema": "other"}', "\x00"])
def test_a_damaged_file_is_told_and_not_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    """A manifest or run.json that is not what was written ends with exit 5 and its path."""
    told = play(tmp_path, capsys, args=("--only", "1"))
    for name in ("run.json", "manifest.json"):
        (told.out / name).write_text(damage)
        assert main(["report", str(told.out)]) == ExitCode.COULD_NOT_FINISH
        err = capsys.readouterr().err
        assert name in err
        assert "Traceback" not in err


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
@pytest.mark.parametrize("name", ["manifest.json", "run.json", "runs/V0/default-1/run.json"])
def test_a_file_that_is_nested_without_end_is_damage(
    text: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What no parser can take in is told with its path, and is no bug of the reader."""
    told = play(tmp_path, capsys, args=("--only", "1", "--repeats", "1"))
    (told.out / name).write_text(text)
    assert main(["report", str(told.out)]) == 5
    error = capsys.readouterr().err
    assert f"{told.out / name}: not what was written: line 1, column " in error
    assert "lists and objects are nested more than 100 levels deep" in error
    assert "Traceback" not in error


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system with room for little, mounted at ``folder``."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no file system may be mounted here: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_told_and_what_was_stored_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 5 with the reason; the stored runs can be read, and gone on with on a larger disk."""
    build = write_build(tmp_path / "build", when(talk=30_000))
    with small_disk(tmp_path / "disk"):
        out = tmp_path / "disk" / "out"
        code = main(["--build-dir", str(build), "--out", str(out), "--", *MODEL_FLAGS])
        told = capsys.readouterr()
        assert code == ExitCode.COULD_NOT_FINISH, told
        assert "No space left" in told.err
        assert "Traceback" not in told.err
        kept = stored(out)
        assert kept
        assert main(["report", str(out), "--format", "json"]) == ExitCode.INCONCLUSIVE
        shutil.copytree(out, tmp_path / "larger")
    code = main(
        [
            "--build-dir",
            str(build),
            "--out",
            str(tmp_path / "larger"),
            "--resume",
            "--",
            *MODEL_FLAGS,
        ]
    )
    assert code == ExitCode.PASS
    assert len(stored(tmp_path / "larger")) == 16


def test_a_disk_that_fills_between_two_writes_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the disk says no, what was stored before stays as it was."""
    calls = iter(range(1000))
    real = os.fsync

    def full(handle: int) -> None:
        if next(calls) == 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    told = play(tmp_path, capsys, args=("--only", "1"))
    assert told.code == ExitCode.COULD_NOT_FINISH
    assert "No space left" in told.stderr
    assert told.json["ending"] == "could not finish"
    assert "No space left" in told.json["ending_reason"]


@pytest.mark.parametrize("name", BREAKS)
def test_what_was_measured_stays_told_when_the_matrix_breaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Whatever ends a matrix, both documents hold every stored run and keep a proven FAIL."""
    build = write_build(tmp_path / "build", when("--main-device", "1", flip=3))
    program = build / "strata"
    kept, count = build / "kept", build / "count"
    shutil.copyfile(program, kept)
    kept.chmod(0o755)
    # The second run of variant 2 is the twelfth launch.
    script(
        program,
        f'case "$*" in *--help*) exec "{kept}" "$@";; esac\necho >> "{count}"\n'
        f'[ "$(wc -l < "{count}")" = 13 ] && {{ {BREAKS[name].format(binary=program)}; }}\n'
        f'exec "{kept}" "$@"\n',
    )
    out = tmp_path / "out"
    code = main(["--build-dir", str(build), "--out", str(out), "--", *MODEL_FLAGS])

    assert code == ExitCode.COULD_NOT_FINISH, capsys.readouterr()
    document = json.loads((out / "run.json").read_text())
    assert len(document["runs"]) == len(stored(out)) == 13
    assert (document["conclusion"], document["ending"]) == ("FAIL", "could not finish")
    assert "FAIL" in (out / "report.md").read_text().partition("\n")[0]


def test_a_folder_that_cannot_be_written_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path that leads through a file, or to a place that takes no folders, is no traceback."""
    build = write_build(tmp_path / "build")
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "out", Path("/proc/none/out")):
        code = main(["--build-dir", str(build), "--out", str(out), "--", *MODEL_FLAGS])
        assert code in {ExitCode.USAGE, ExitCode.COULD_NOT_FINISH}
        err = capsys.readouterr().err
        assert str(out) in err
        assert "Traceback" not in err
    assert launches(build) == []


def test_a_folder_that_vanishes_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever removes the run directory while it is written gets a message, not a traceback."""
    build = write_build(tmp_path / "build")
    out = tmp_path / "out"
    program = script(
        build / "strata",
        f'exec "{sys.executable}" -I -S "{build / "program.py"}" "$@"\n',
    )
    text = program.read_text().replace("exec", f'case "$*" in *chain*) rm -rf "{out}";; esac\nexec')
    program.write_text(text)
    code = main(["--build-dir", str(build), "--out", str(out), "--", *MODEL_FLAGS])
    assert code == ExitCode.COULD_NOT_FINISH
    err = capsys.readouterr().err
    assert str(out) in err
    assert "Traceback" not in err


def test_rendering_again_gives_the_same_bytes(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """``report`` prints what report.md holds, however often; a moved folder changes nothing."""
    build = write_build(tmp_path / "build", when("--auto-roles", flip=3))
    out = tmp_path / "out"
    assert main(["--build-dir", str(build), "--out", str(out), "--", *MODEL_FLAGS]) == 1
    capfdbinary.readouterr()
    written = (out / "report.md").read_bytes()
    assert main(["report", str(out)]) == ExitCode.FAIL
    assert capfdbinary.readouterr().out == written
    out.rename(tmp_path / "moved")
    assert main(["report", str(tmp_path / "moved")]) == ExitCode.FAIL
    assert capfdbinary.readouterr().out == written


def test_a_folder_that_was_replaced_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another folder under the name of the run directory ends with 5, and blames no engine.

    Nothing is written to the other folder, and what was measured is in the one that was renamed.
    """
    out, renamed = tmp_path / "out", tmp_path / "renamed"
    binary = write_build(tmp_path / "build") / "strata"
    move = f'[ -d "{renamed}" ] || {{ mv "{out}" "{renamed}"; mkdir "{out}"; }}'
    script(binary, f'case "$*" in *--main-device*) {move} ;; esac\n' + binary.read_text())
    words = ("--build-dir", str(binary.parent), "--out", str(out), "--repeats", "1")
    code = main([*words, "--", *MODEL_FLAGS])
    told = capsys.readouterr()
    assert code == ExitCode.COULD_NOT_FINISH
    assert f"error: {out}: another folder stands in its place" in told.err
    assert not list(out.iterdir())
    assert (renamed / "runs/V0/default-1/run.json").exists()
