"""The tiny models: the same bytes every time, and files that the engine's tools can read."""

from __future__ import annotations

from dataclasses import replace
from hashlib import md5
from typing import TYPE_CHECKING

import pytest

from hetero_test.gguf.header import TextArray, read_header

if TYPE_CHECKING:
    from pathlib import Path

tiny = pytest.importorskip("hetero_test.engines.llama_cpp.tiny_models")


def test_same_bytes(tmp_path: Path) -> None:
    """Writing a model again gives the same file, and the figures told of it keep their meaning."""
    (one,) = tiny.write_models(tmp_path / "a", ("dense-q4_0",)).values()
    (other,) = tiny.write_models(tmp_path / "b", ("dense-q4_0",)).values()
    assert one.read_bytes() == other.read_bytes()
    assert md5(one.read_bytes()).hexdigest() == "ecea25af28af34797b3300210d72ac82"


@pytest.mark.parametrize("name", tiny.TINY_MODELS)
def test_header(name: str, tmp_path: Path) -> None:
    """Every model has the shape that its entry says, and its weights in the type of its name."""
    model = tiny.TINY_MODELS[name]
    (path,) = tiny.write_models(tmp_path, (name,)).values()
    header = read_header(path)
    assert header.fields["general.architecture"] == model.arch
    assert header.fields[f"{model.arch}.block_count"] == model.n_layer
    tokens = header.fields["tokenizer.ggml.tokens"]
    assert isinstance(tokens, TextArray)
    assert tokens.count == model.n_vocab
    assert header.fields.get(f"{model.arch}.expert_count", 0) == model.n_expert
    shapes = {info.name: info.shape for info in header.tensors}
    assert shapes["output.weight"] == (model.n_embd, model.n_vocab)
    assert ("blk.0.ffn_up_exps.weight" in shapes) is bool(model.n_expert)


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    """A model that was written is not written again, and no scratch file is left."""
    (path,) = tiny.write_models(tmp_path, ("draft-f32",)).values()
    before = path.stat()
    tiny.write_models(tmp_path, ("draft-f32",))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert [each.name for each in tmp_path.iterdir()] == ["draft-f32.gguf"]


def test_ties_come_in_pairs(tmp_path: Path) -> None:
    """The canary is the dense model with another output matrix."""
    assert tiny.TINY_MODELS["tie-f32"] == replace(tiny.TINY_MODELS["dense-f32"], tie_eps=1e-6)


def test_unknown_name(tmp_path: Path) -> None:
    """A name that is no model's is refused."""
    with pytest.raises(KeyError):
        tiny.write_models(tmp_path, ("dense-f64",))
