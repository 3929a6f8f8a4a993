"""The examples that a user can start from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hetero_test.cli.main import main
from hetero_test.errors import UsageError
from hetero_test.rig.bandwidth import with_named_bandwidths
from hetero_test.rig.facts_file import load_rig
from hetero_test.triage.model.facts_file import load_model_facts

if TYPE_CHECKING:
    from pathlib import Path

RIG_HINT = "hetero-test rig --example"
FACTS_HINT = "hetero-test triage --example-facts"


def printed(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints."""
    assert main(list(words)) == 0
    return capfd.readouterr().out


@pytest.fixture
def files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """Both examples as files."""
    rig, facts = tmp_path / "rig.toml", tmp_path / "facts.toml"
    rig.write_text(printed(capfd, "rig", "--example"), encoding="utf-8")
    facts.write_text(printed(capfd, "triage", "--example-facts"), encoding="utf-8")
    return rig, facts


def test_both_are_valid_as_they_stand_and_mean_what_they_say(files: tuple[Path, Path]) -> None:
    """The sizes of the published model; a card of which only the name is given is looked up."""
    rig, facts = files
    model = load_model_facts(facts)
    assert len(model.layers) == 48
    assert model.kv_bytes(1) == 96 * 1024
    experts = sum(t.size_bytes for layer in model.layers for t in layer.tensors)
    assert model.parameters is not None
    assert 4 < 8 * experts / model.parameters < 5
    machine = with_named_bandwidths(load_rig(rig))
    assert [device.id for device in machine.devices] == ["CUDA0", "CUDA1", "CPU"]
    told = [device.bandwidth_specified_gb_s for device in machine.devices]
    assert [fact and fact.value for fact in told] == [936.0, 360.0, 83.2]
    assert machine.devices[0].baselines[0].model == model.name


def test_they_make_an_answer_without_a_caution(
    files: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    """The examples do not contradict themselves, and the baseline counts for the model."""
    rig, facts = files
    text = printed(capfd, "triage", "--model-facts", str(facts), "--rig", str(rig), "--json")
    document = json.loads(text)
    assert document["cautions"] == []
    assert document["incumbent"]["decode_from"] == "measured"
    assert document["incumbent"]["decode_tok_s"] == 150.0


def test_each_is_commented(files: tuple[Path, Path]) -> None:
    """A third of the lines explains something."""
    for path in files:
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        assert sum("#" in line for line in lines) > len(lines) / 3


def test_a_rig_example_is_written_as_a_rig_is(tmp_path: Path) -> None:
    """To a new file, never over one that is there."""
    path = tmp_path / "rig.toml"
    assert main(["rig", "--example", "--out", str(path)]) == 0
    assert load_rig(path).devices
    assert main(["rig", "--example", "--out", str(path)]) == 2


@pytest.mark.parametrize("text", [None, "devices = 3", "devices = [", 'x = "y"', "[[devices]]"])
def test_errors_of_a_file_name_the_example(tmp_path: Path, text: str | None) -> None:
    """Missing, no TOML, an unknown key, a missing one: where to find what is expected."""
    path = tmp_path / "file.toml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    for load, hint in ((load_rig, RIG_HINT), (load_model_facts, FACTS_HINT)):
        with pytest.raises(UsageError) as caught:
            load(path)
        assert caught.value.hint is not None
        assert hint in caught.value.hint


def test_no_model_at_all_names_the_example_of_its_facts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where neither a file nor its facts are given."""
    rig = tmp_path / "rig.toml"
    rig.write_text(printed(capfd, "rig", "--example"), encoding="utf-8")
    assert main(["triage", "--rig", str(rig)]) == 2
    assert FACTS_HINT in capfd.readouterr().err
