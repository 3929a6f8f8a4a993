"""A prediction stands beside the run that it was made for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hetero_test.cli.main import main
from hetero_test.errors import ExitCode
from tests.report.test_triage_reports import document
from tests.rigs import play
from tests.scripted import MODEL_FLAGS, write_build


@pytest.mark.process
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


@pytest.mark.process
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "line 1, column 1: not JSON"),
        (b"[]", "line 1, column 1: it is no JSON object"),
        (b"{}", 'schema: it is not "hetero-test/triage/1"'),
        (b'{"schema": "hetero-test/run/1"}', 'schema: it is not "hetero-test/triage/1"'),
        (b'{"schema": "hetero-test/triage/1",\n"options": 5}', "options: "),
        (b'{"schema": "hetero-test/triage/1",\n"a": NaN}', "line 2, column 6: NaN is no number"),
        (b"[" * 100_000, "line 1, column 101: lists and objects are nested"),
        (b'{"a": ' + b"9" * 5000 + b"}", "line 1, column 7: a whole number of more than"),
        (b'{"a": "\xe9"}', "it is not UTF-8 text"),
    ],
)
def test_what_is_no_prediction_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, told: str
) -> None:
    """A file of another kind is refused before anything is launched, with the place in it."""
    build = write_build(tmp_path / "build")
    path = tmp_path / "p.json"
    path.write_bytes(content)
    argv = ["--build-dir", str(build), "--predict", str(path), "--", *MODEL_FLAGS]
    assert main(argv) == ExitCode.USAGE
    assert f"p.json: {told}" in capsys.readouterr().err
    path.unlink()
    assert main(argv) == ExitCode.USAGE
    assert "No such file" in capsys.readouterr().err


@pytest.mark.process
def test_a_stored_prediction_that_is_none_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A manifest that was edited is an error with the file and the place, not a traceback."""
    (tmp_path / "triage.json").write_text(json.dumps(document()))
    run = play(tmp_path, capsys, args=("--only", "1", "--predict", str(tmp_path / "triage.json")))
    path = run.out / "manifest.json"
    manifest = json.loads(path.read_text())
    for text in ("[" * 100_000, '{"schema": "hetero-test/triage/1", "options": 5}', "{"):
        path.write_text(json.dumps({**manifest, "prediction": text}))
        assert main(["report", str(run.out)]) == ExitCode.COULD_NOT_FINISH
        assert "the prediction in manifest.json: " in capsys.readouterr().err
