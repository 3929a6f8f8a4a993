"""A prediction stands beside the run that it was made for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.errors import ExitCode
from tests.reports.test_triage_reports import document
from tests.rigs import play
from tests.scripted import MODEL_FLAGS, write_build


def test_predicted_and_measured_stand_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``run --predict`` adds a table of predicted, measured and the gap; verdicts stay the same."""
    told = document()
    (tmp_path / "triage.json").write_text(json.dumps(told))
    args = ("--only", "1", "--predict", str(tmp_path / "triage.json"))
    run = play(tmp_path, capsys, args=args)
    assert run.code == ExitCode.PASS
    section = run.report.split("### Predicted and measured")[1].split("###")[0]
    assert "30.0" in section  # what the scripted engine says of its own decoding
    assert "decode" in section
    assert "prefill" in section
    assert main(["report", str(run.out), "--format", "html"]) == ExitCode.PASS
    assert "Predicted and measured" in capsys.readouterr().out
    assert "Predicted and measured" not in play(tmp_path / "plain", capsys, args=args[:2]).report


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "hetero-test/run/1"}'])
def test_what_is_no_prediction_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """A file of another kind is refused before anything is launched."""
    build = write_build(tmp_path / "build")
    path = tmp_path / "p.json"
    path.write_text(text)
    argv = ["--build-dir", str(build), "--predict", str(path), "--", *MODEL_FLAGS]
    assert main(argv) == ExitCode.USAGE
    assert "p.json" in capsys.readouterr().err
    path.unlink()
    assert main(argv) == ExitCode.USAGE
    assert "No such file" in capsys.readouterr().err
