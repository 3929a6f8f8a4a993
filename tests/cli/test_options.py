"""Paths and numbers that no engine could make anything of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rigs import play
from tests.scripted import write_build

pytestmark = pytest.mark.process

LONG = "x" * 300
OPTIONS = ("--build-dir", "--out", "--tokens-file", "--junit", "--predict")


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("path", ["", LONG, "x/" * 3000])
def test_a_path_that_cannot_be_is_refused_before_anything_is_launched(
    option: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Empty or longer than the system allows: exit 2 with the option's name, no traceback."""
    told = play(tmp_path, capsys, args=(option, path))
    assert told.code == 2
    assert f"argument {option}: " in told.stderr
    assert len(told.stderr) < 300
    assert not told.launches


def test_a_loop_of_links_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that leads back to itself can be neither read nor written."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    told = play(tmp_path, capsys, args=("--out", str(tmp_path / "loop")))
    assert told.code == 2
    assert "symbolic links" in told.stderr


@pytest.mark.parametrize("option", ["--build-dir", "--out"])
def test_a_relative_path_needs_a_current_folder(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the current folder was removed a relative path means nothing: exit 2."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    told = play(tmp_path, capsys, args=(option, "somewhere"))
    assert told.code == 2
    assert "the current folder is gone" in told.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEED", "1" * 5000),
        ("SEED", "-1"),
        ("SEED", "0x7"),
        ("TOKENS", "0"),
        ("TOKENS", "9" * 12),
        ("TOKENS", "9" * 30),
        ("VOCAB", "0"),
        ("VOCAB", "9" * 15),
        ("VOCAB", "²"),
    ],
)
def test_the_environment_is_held_to_the_same_bounds_as_options(
    name: str,
    value: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A number that no prompt can be made of is refused, and no memory is filled with it."""
    monkeypatch.setenv(f"HETERO_TEST_{name}", value)
    told = play(tmp_path, capsys)
    assert told.code == 2, told.stderr
    assert len(told.stderr) < 300
    assert not told.launches


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--repeats", "99999999999999"),
        ("--warmup", "1001"),
        ("--max-new", "999999999999"),
        ("--tokens", "999999999999"),
        ("--vocab", "999999999999"),
    ],
)
def test_a_mistyped_number_does_not_fill_the_memory(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nobody can mean is refused before a plan or a prompt of that size is made."""
    told = play(tmp_path, capsys, args=(option, value, "--list"))
    assert told.code == 2
    assert not told.launches


@pytest.mark.parametrize("below", [False, True])
def test_a_junit_file_that_cannot_be_is_refused_before_the_matrix_runs(
    below: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Hours of runs must not end with 5 because of a path that was wrong from the start."""
    place = tmp_path
    if below:
        (tmp_path / "file").touch()
        place = tmp_path / "file" / "junit.xml"
    told = play(tmp_path, capsys, args=("--junit", str(place)))
    assert told.code == 2
    assert "--junit" in told.stderr
    assert not told.launches


def test_going_on_needs_the_name_of_a_run_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--resume`` without ``--out`` would begin another run directory, and call it going on."""
    from hetero_test.cli.main import main
    from tests.scripted import MODEL_FLAGS

    build = write_build(tmp_path / "build")
    assert main(["--build-dir", str(build), "--resume", "--", *MODEL_FLAGS]) == 2
    assert "--out DIR" in capsys.readouterr().err
