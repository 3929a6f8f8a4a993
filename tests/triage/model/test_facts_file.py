"""The model-facts file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from hetero_test.errors import MatrixError
from hetero_test.triage.model.facts import Completeness, LayerFacts, LayerKind, ModelFacts
from hetero_test.triage.model.facts_file import dump_model_facts, load_model_facts
from tests.rig.strategies import models

if TYPE_CHECKING:
    from pathlib import Path

QWEN3_30B = """\
name = "Qwen3-30B-A3B"
arch = "qwen3moe"
n_embd = 2048
experts_total = 128
experts_used = 8

[[layers]]
index = "0-47"
kind = "full"
heads = 32
kv_heads = 4
key_length = 128
value_length = 128
"""


def facts_file(folder: Path, text: str) -> Path:
    """A model-facts file with this text."""
    path = folder / "model.toml"
    path.write_text(text, encoding="utf-8")
    return path


@settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck])
@given(model=models())
def test_a_model_survives_its_file(
    tmp_path_factory: pytest.TempPathFactory, model: ModelFacts
) -> None:
    """Whatever a model holds, its file reads back to an equal value."""
    path = facts_file(tmp_path_factory.mktemp("model"), dump_model_facts(model))
    assert load_model_facts(path) == model


def test_a_model_is_told_in_a_few_lines(tmp_path: Path) -> None:
    """A range of layers is one table, and its bytes count as told."""
    path = facts_file(tmp_path, QWEN3_30B)
    model = load_model_facts(path)
    assert [layer.index for layer in model.layers] == list(range(48))
    assert model.kv_bytes(1) == 96 * 1024
    assert model.completeness is Completeness.TOLD
    assert model.source == str(path)


def test_alternating_layers_stand_in_two_tables(tmp_path: Path) -> None:
    """Layers that are alike stand together even where others lie between them."""
    layers = tuple(
        LayerFacts(
            index=i,
            kind=LayerKind.FULL if i % 2 else LayerKind.SLIDING,
            kv_heads=8,
            key_length=64,
            value_length=64,
        )
        for i in range(6)
    )
    model = ModelFacts(
        name="m", arch="gpt-oss", source="s", n_embd=2880, layers=layers, sliding_window=128
    )
    text = dump_model_facts(model)
    assert text.count("[[layers]]") == 2
    assert 'index = "0, 2, 4"' in text
    assert load_model_facts(facts_file(tmp_path, text)) == model


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ('"0-47"', '"0-x"', 8, "not a list of layers"),
        ('"0-47"', '"9-3"', 8, "no such range"),
        ('"0-47"', '"0-9999999"', 8, "not a list of layers"),
        ('"0-47"', '"0-99999"', 8, "no such range"),
        ('"0-47"', '"0-47, 3"', 8, "a second time"),
        ('"full"', '"fulll"', 9, "should be"),
        ('"full"', '"sliding"', 9, "sliding_window"),
        ("kv_heads", "kv_head", 11, 'did you mean "kv_heads"'),
        ("key_length = 128", "key_length = -1", 7, "negative"),
        ("n_embd = 2048", "n_embd = 0", 3, "more than 0"),
        ("experts_used = 8", "experts_used = 200", 5, "more experts"),
        ("n_embd", "n_embed", 3, 'did you mean "n_embd"'),
    ],
)
def test_mistakes_are_told_with_their_line(
    tmp_path: Path, old: str, new: str, line: int, what: str
) -> None:
    """A mistake inside a range of layers is reported once, with the line of its table."""
    path = facts_file(tmp_path, QWEN3_30B.replace(old, new))
    with pytest.raises(MatrixError) as caught:
        load_model_facts(path)
    said = [text for text in caught.value.complaints if what in text]
    assert len(said) == 1, caught.value.complaints
    assert said[0].startswith(f"{path}:{line}:"), said


def test_a_model_has_layers(tmp_path: Path) -> None:
    """A file without layers says nothing that triage could use."""
    path = facts_file(tmp_path, 'name = "m"\narch = "a"\nn_embd = 8\nlayers = []\n')
    with pytest.raises(MatrixError, match="at least one layer"):
        load_model_facts(path)
