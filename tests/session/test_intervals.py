"""What is published while a matrix runs, and what a killed one still has."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hetero_test.session import loop
from hetero_test.store.run_dir import Store
from hetero_test.values.record import Ending, Record
from hetero_test.values.verdict import Judgment
from tests.rigs import play, stored
from tests.scripted import MODEL_FLAGS, always, write_build

pytestmark = pytest.mark.process
ROOT = Path(__file__).parents[2]


def published(monkeypatch: pytest.MonkeyPatch, costs_between: float) -> list[int]:
    """How many runs each written ``run.json`` holds, from now on."""
    held: list[int] = []
    publish = Store.publish

    def noted(self: Store, record: Record, judgment: Judgment) -> None:
        held.append(len(record.runs))
        publish(self, record, judgment)

    monkeypatch.setattr(loop, "COSTS_BETWEEN", costs_between)
    monkeypatch.setattr(Store, "publish", noted)
    return held


def test_what_is_known_is_published_after_the_first_run_and_at_the_end(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between them only as time allows: the whole is not written for every run."""
    held = published(monkeypatch, 1e9)

    told = play(tmp_path, capsys)

    assert held == [1, len(told.json["runs"])]
    assert held[-1] > 10


def test_slow_runs_are_published_one_by_one(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where publishing costs next to nothing beside a run, it follows every one."""
    held = published(monkeypatch, 0)

    told = play(tmp_path, capsys, args=("--only", "1"))

    runs = len(told.json["runs"])
    assert held == [*range(1, runs + 1), runs]


def test_intervals_change_no_conclusion(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judged once at the end or after every run, the verdicts are the same."""
    told = []
    for name, costs in (("often", 0.0), ("seldom", 1e9)):
        published(monkeypatch, costs)
        told.append(play(tmp_path / name, capsys).json)

    for key in ("conclusion", "headline", "reason", "verdicts", "clusters", "counts"):
        assert told[0][key] == told[1][key]


def test_a_killed_matrix_still_shows_every_stored_run(tmp_path: Path) -> None:
    """By ``report``, whatever ``run.json`` held when the harness was killed, or without one."""
    build = write_build(tmp_path / "build", always(hang=0.05))
    out = tmp_path / "out"
    argv = [sys.executable, "-m", "hetero_test", "--build-dir", str(build), "--out", str(out)]
    process = subprocess.Popen(
        [*argv, "--", *MODEL_FLAGS],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT / "harness",
    )
    end = time.monotonic() + 60
    while len(stored(out)) < 4 and time.monotonic() < end:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    kept = set(stored(out))
    assert len(kept) >= 4

    for _ in range(2):
        record = Store(out).load()
        found = {str(Store(out).folder(run).relative_to(out)) for run in record.runs}
        assert {f"{folder}/run.json" for folder in found} == kept
        assert record.ending is Ending.RUNNING
        assert [run.order for run in record.runs] == list(range(len(kept)))
        (out / "run.json").unlink(missing_ok=True)


def test_what_lies_in_another_runs_place_is_no_run(tmp_path: Path, capsys: Any) -> None:
    """A copied folder, or a file cut short, adds nothing to what ``run.json`` names."""
    told = play(tmp_path, capsys, args=("--only", "1"))
    runs = told.out / "runs"
    before = Store(told.out).load()
    text = (runs / "V1/default-1/run.json").read_text()
    for name, content in (("default-9", text), ("default-8", text[:100]), ("x", "{}")):
        (runs / "V1" / name).mkdir()
        (runs / "V1" / name / "run.json").write_text(content)

    assert Store(told.out).load() == before


def test_a_run_that_run_json_names_must_be_there(tmp_path: Path, capsys: Any) -> None:
    """Finding others by their folders does not hide that one is missing."""
    told = play(tmp_path, capsys, args=("--only", "1"))
    (told.out / "runs/V1/default-1/run.json").unlink()

    with pytest.raises(Exception, match="V1/default-1"):
        Store(told.out).load()
    assert len(json.loads((told.out / "run.json").read_text())["runs"]) > 3
