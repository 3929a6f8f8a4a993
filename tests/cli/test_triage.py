"""``hetero-test triage`` from the command line to its texts."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hetero_test.cli.main import main
from hetero_test.errors import UsageError
from hetero_test.rig import probe
from hetero_test.rig.facts_file import dump_rig, load_rig
from hetero_test.rig.sourced import Origin, Sourced
from hetero_test.triage.answer import parse
from hetero_test.triage.model.facts import TokenLists
from hetero_test.triage.model.facts_file import dump_model_facts
from tests.triage.answer.test_calibrate import write_run
from tests.triage.rigs import card, cpu, dense, mixture, rig, strix

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Arguments that name a model and a rig."""
    model, machine = tmp_path / "model.toml", tmp_path / "rig.toml"
    model.write_text(dump_model_facts(mixture()), encoding="utf-8")
    machine.write_text(dump_rig(strix()), encoding="utf-8")
    return ["--model-facts", str(model), "--rig", str(machine)]


def test_markdown_on_stdout_ends_with_what_does_not_help(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The verdict first, the sections in order."""
    words = ["triage", *files, "--incumbent", "22,192", "--baseline", "ROCm0=22,192"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("## ❌ NO-GO — keep what runs today\n")
    heads = [line for line in out.splitlines() if line.startswith("### ")]
    assert heads == ["### Options", "### Hazards", "### What does not help here"]
    assert "12.5%" in out


def test_json_has_a_schema_and_no_zero_for_the_unknown(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Null where nothing is known; every option with its verdict and flags."""
    assert main(["triage", *files, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["schema"] == "hetero-test/triage/1"
    assert set(document) == {
        "schema",
        "verdict",
        "cautions",
        "question",
        "model",
        "rig",
        "incumbent",
        "options",
        "hazards",
        "unhelpful",
        "inputs",
        "calibration",
    }
    assert {i["origin"] for i in document["inputs"]} == {"measured", "specified", "assumed"}
    today = [option for option in document["options"] if option["incumbent"]]
    assert [option["call"] for option in today] == [None]
    assert document["calibration"]["points"] == 53


def test_html_is_written_beside_and_is_the_same_each_time(files: list[str], tmp_path: Path) -> None:
    """A page with its picture inside; the same bytes for the same question."""
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages:
        assert main(["triage", *files, "--html", str(page)]) == 0
    first = pages[0].read_text(encoding="utf-8")
    assert first.count("<svg") == 1
    assert first == pages[1].read_text(encoding="utf-8")


def test_html_without_matplotlib_says_what_to_install(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Before any work, with the extra's name."""
    find = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == "matplotlib" else find(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    assert main(["triage", *files, "--html", str(tmp_path / "x.html")]) == 2
    assert "hetero-test[html]" in capsys.readouterr().err


def test_paths_of_this_machine_are_not_published(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Home, user and host are replaced unless --no-redact is given."""
    assert main(["triage", *files]) == 0
    assert str(tmp_path) not in capsys.readouterr().out


def test_splits_come_from_a_number_or_a_log(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log's name is the source."""
    log = tmp_path / "load.log"
    log.write_text("llama: graph splits = 668 (with bs=512), 144 (with bs=1)\n", encoding="utf-8")
    assert main(["triage", *files, "--splits", str(log), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (row,) = [i for i in document["inputs"] if i["name"] == "graph splits"]
    assert (row["value"], row["source"]) == ("144", "load.log")
    assert main(["triage", *files, "--splits", "33", "--json"]) == 0
    assert "33 graph splits" in capsys.readouterr().out


def test_a_drafter_is_read_from_its_facts_and_compared_by_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Break-even, acceptance in any form, token lists by hash."""
    target, draft, machine = (tmp_path / name for name in ("t.toml", "d.toml", "rig.toml"))
    target.write_text(dump_model_facts(dense()), encoding="utf-8")
    draft.write_text(dump_model_facts(dense(layers=16, layer_mb=60)), encoding="utf-8")
    text = dump_rig(rig(card(), card("CUDA1", gib=12, gb_s=360.0), cpu()))
    machine.write_text(text, encoding="utf-8")
    common = ["triage", "--model-facts", str(target), "--rig", str(machine), "--json"]
    words = ["--draft", str(draft), "--draft-device", "CUDA1", "--draft-window", "2"]
    for given in (
        ["--accepted", "0.6"],
        ["--accepted-at", "0.7,0.5"],
        ["--acceptance-p", "0.7"],
    ):
        assert main([*common, *words, *given, "--verify", "3=1.3", "--beta", "0.2"]) == 0
        options = json.loads(capsys.readouterr().out)["options"]
        (found,) = [option for option in options if option["key"] == "drafter:CUDA1"]
        assert found["gain"] is not None
        assert any(given[0] in note for note in found["notes"])
        assert any("token lists: checked: the token lists are equal" in n for n in found["notes"])
    assert main([*common, "--draft", "own", "--accepted", "0.8"]) == 0
    options = json.loads(capsys.readouterr().out)["options"]
    (own,) = [option for option in options if option["key"].startswith("own-head")]
    assert "3.40 tokens a round (given)" in own["notes"]


def test_calibrate_writes_into_the_rig_file(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fitted values are printed and stand in the file."""
    folder = write_run(tmp_path / "out", {"0": ["-dev", "ROCm0"]}, {"0": 22.0})
    assert main(["triage", *files, "--calibrate", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "ROCm0 moe Q4_K:" in out
    fitted = load_rig(tmp_path / "rig.toml").device("ROCm0")
    assert fitted is not None
    assert len(fitted.bandwidth_effective) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--context", "0"], "--context 0: at least 1"),
        (["--slots", "0"], "--slots"),
        (["--batch", "-5"], "--batch"),
        (["--depth", "-1"], "--depth"),
        (["--link", "0"], "--link 0: it has to be above zero"),
        (["--kv-type", "q9"], "no such KV cache type"),
        (["--baseline", "CUDA0"], "not DEVICE=TOK_S"),
        (["--baseline", "CUDA7=3"], "no device 'CUDA7'"),
        (["--baseline", "CUDA0=fast"], "is no number"),
        (["--incumbent", "-3"], "above zero"),
        (["--splits", "nothere.log"], "nothere.log"),
        (["--draft", "own", "--draft-device", "X"], "no such device"),
        (["--draft", "own", "--accepted", "1.4"], "--accepted 1.4"),
        (["--draft", "own", "--accepted", "0.4", "--acceptance-p", "0.4"], "give one of"),
        (["--draft", "own", "--accepted-at", "a,b"], "--accepted-at"),
        (["--draft", "own", "--verify", "1=1"], "not ROWS=COST"),
        (["--draft", "own", "--draft-window", "0"], "--draft-window"),
        (["--build-dir", "nothere"], "no such folder"),
        (["--prompt-per-reply", "nan"], "--prompt-per-reply"),
        (["--calibrate", "nothere"], "cannot read"),
    ],
)
def test_mistakes_are_told_with_the_flag(
    files: list[str], words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What, where, and exit code 2; never a traceback."""
    assert main(["triage", *files, *words]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert "Traceback" not in err


def test_one_model_is_asked_for(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One of the two has to be given, not both."""
    assert main(["triage"]) == 2
    assert "give one of --model" in capsys.readouterr().err
    assert main(["triage", *files, "--model", "x.gguf"]) == 2
    assert "give one of --model" in capsys.readouterr().err


def test_calibrate_needs_a_rig_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of this machine stand in no file that could be written to."""
    model = tmp_path / "model.toml"
    model.write_text(dump_model_facts(dense()), encoding="utf-8")
    monkeypatch.setattr(parse, "read_rig", lambda _path: strix())
    assert main(["triage", "--model-facts", str(model), "--calibrate", str(tmp_path)]) == 2


def test_a_log_without_splits_is_an_error(tmp_path: Path) -> None:
    """With what to do about it."""
    log = tmp_path / "load.log"
    log.write_text("load_tensors: CPU_Mapped model buffer size = 3.0 MiB\n", encoding="utf-8")
    with pytest.raises(UsageError, match="graph splits"):
        parse.splits(str(log))


def test_token_lists_that_are_not_there_are_not_compared(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not checked is a state of its own."""
    draft = tmp_path / "draft.toml"
    draft.write_text(dump_model_facts(replace(dense(), tokens_sha256=None)), encoding="utf-8")
    assert main(["triage", *files, "--draft", str(draft)]) == 0
    assert f"token lists: {TokenLists.NOT_CHECKED}" in capsys.readouterr().out.replace("`", "")


@pytest.mark.process
def test_without_a_rig_file_this_machines_memory_is_measured(
    files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same figure as in the file that `hetero-test rig` writes, not a class's middle."""
    fact = Sourced(value=12.5, origin=Origin.MEASURED, source="read test", low=12.0, high=13.0)
    monkeypatch.setattr(probe, "read_bandwidth", lambda *_sizes, **_repeats: fact)
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0.0, 0.0))
    assert main(["triage", *files[:2], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    host = next(device for device in document["rig"] if device["id"] == "CPU")
    assert host["bandwidth_gb_s"] == 12.5
    assert host["bandwidth_assumed_gb_s"] is None


def test_without_room_for_the_read_test_the_first_row_says_what_was_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before model and rig, with the command that measures it."""
    model, machine = tmp_path / "model.toml", tmp_path / "rig.toml"
    model.write_text(dump_model_facts(dense()), encoding="utf-8")
    machine.write_text(dump_rig(rig(cpu(gb_s=None))), encoding="utf-8")
    assert main(["triage", "--model-facts", str(model), "--rig", str(machine)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "## ❌ NO-GO — there is nothing to compare CPU alone with"
    assert lines[4].startswith("| caution | CPU: memory bandwidth not measured, assumed 70 GB/s")
    assert any("run hetero-test rig" in line for line in lines[:6])


def test_what_was_measured_is_shown_as_it_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user's own numbers, to their digit, and called measured."""
    model, machine = tmp_path / "model.toml", tmp_path / "rig.toml"
    model.write_text(dump_model_facts(dense()), encoding="utf-8")
    machine.write_text(dump_rig(rig(card(gb_s=None), cpu())), encoding="utf-8")
    words = ["triage", "--model-facts", str(model), "--rig", str(machine)]
    assert main([*words, "--baseline", "CUDA0=24,900"]) == 0
    out = capsys.readouterr().out
    assert "CUDA0 alone: 24.0 tok/s, prefill 900 tok/s (measured) |" in out
    row = next(line for line in out.splitlines() if line.startswith("| CUDA0 alone | today"))
    assert "| 24.0 [" in row
    assert "| 900 [" in row
    assert main([*words, "--baseline", "CUDA0=24,900", "--json"]) == 0
    today = json.loads(capsys.readouterr().out)["options"][0]
    assert today["reason"] == "taken for what runs today (24.0 tok/s measured)"
    assert main([*words, "--baseline", "CUDA0=24"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"24\.0 tok/s \(measured\), prefill \d+ tok/s \(predicted\) \|", out)
