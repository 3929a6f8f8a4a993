"""A run is judged only where it belongs, and only as it was stored."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hetero_test.cli.main import main
from tests.rigs import play
from tests.scripted import when

pytestmark = pytest.mark.process

RUN = "runs/V1/default-1"


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a JSON file in its place."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def entry(out: Path, **changed: str) -> None:
    """Change variant 1's entry in ``run.json``."""

    def change(data: dict[str, Any]) -> None:
        next(run for run in data["runs"] if run["variant"] == "1").update(changed)

    edit(out / "run.json", change)


def other_folder(out: Path, other: Path) -> None:
    """``run.json`` names another directory's run."""
    entry(out, folder=f"../{other.name}/{RUN}")


def absolute_folder(out: Path, other: Path) -> None:
    """Likewise, by an absolute path."""
    entry(out, folder=str(other / RUN))


def baseline_folder(out: Path, _: Path) -> None:
    """``run.json`` names the baseline's run for variant 1."""
    entry(out, folder="runs/V0/default-1")


def linked_run(out: Path, other: Path) -> None:
    """The run's folder is a link out of the directory."""
    shutil.rmtree(out / RUN)
    (out / RUN).symlink_to(other / RUN)


def linked_file(out: Path, other: Path) -> None:
    """The run's file is a link out of the directory."""
    (out / RUN / "run.json").unlink()
    (out / RUN / "run.json").symlink_to(other / RUN / "run.json")


def linked_runs(out: Path, other: Path) -> None:
    """A folder above the run is a link out of the directory."""
    shutil.rmtree(out / "runs")
    (out / "runs").symlink_to(other / "runs")


def copied_baseline(out: Path, _: Path) -> None:
    """The baseline's run is copied over variant 1's."""
    shutil.copyfile(out / "runs/V0/default-1/run.json", out / RUN / "run.json")


def copied_stream(out: Path, _: Path) -> None:
    """The baseline's stream is written into variant 1's run."""
    baseline = json.loads((out / "runs/V0/default-1/run.json").read_text())
    stream = baseline["run"]["reading"]["stream"]
    edit(out / RUN / "run.json", lambda data: data["run"]["reading"].update(stream=stream))


def other_run(out: Path, other: Path) -> None:
    """Variant 1's run of another directory, sound in itself, takes the place of this one's."""
    shutil.copyfile(other / RUN / "run.json", out / RUN / "run.json")


DAMAGE = (
    *(other_folder, absolute_folder, baseline_folder, linked_run, linked_file, linked_runs),
    *(copied_baseline, copied_stream, other_run),
)


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_run_that_is_not_this_cells_is_never_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path, Path], None]
) -> None:
    """A FAIL stays one: whatever equal stream is put in its place ends with exit 5 and its path.

    A run is read from its own folder inside the run directory, never through a link, and its
    name and the md5 of its stream are those under which it was stored.
    """
    args = ("--only", "1", "--repeats", "1")
    differs = when("--main-device", flip=30)
    out = play(tmp_path, capsys, differs, args=args).out
    other = play(tmp_path / "other", capsys, args=args).out.rename(tmp_path / "passed")
    assert main(["report", str(out)]) == 1
    capsys.readouterr()

    damage(out, other)
    assert main(["report", str(out)]) == 5
    told = capsys.readouterr().err
    assert f"error: {out}/" in told
    assert "run.json: " in told
    assert "Traceback" not in told


def test_going_on_launches_anew_what_another_run_was_put_in_place_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stored run that ``run.json`` does not name yet counts only if it is this cell's own."""
    args = ("--only", "1", "--repeats", "1")
    differs = when("--main-device", flip=30)
    first = play(tmp_path, capsys, differs, args=args)
    before = len(first.launches)
    edit(first.out / "run.json", lambda data: data.update(runs=data["runs"][:1]))
    copied_stream(first.out, first.out)
    told = play(tmp_path, capsys, differs, args=(*args, "--resume"))
    assert told.code == 1
    assert len(told.launches) == before + 1
