"""What a server's answer is read into."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.base import Symptom
from harness.engines.llama_reply import FILE, Reply, load, request
from harness.model import TokenChance
from tests.engines.llama_cpp.samples import LOGS


def real(name: str, folder: Path) -> Reply:
    """A real answer."""
    (folder / FILE).write_bytes((LOGS / f"{name}.reply.json").read_bytes())
    return load(folder)


def made(folder: Path, **content: Any) -> Reply:
    (folder / FILE).write_text(json.dumps(content))
    return load(folder)


def test_request() -> None:
    """It asks for the same tokens every time: greedy, nothing cached, as many as wanted."""
    body = request((1, 2), 60)
    assert body["prompt"] == [1, 2]
    assert body["n_predict"] == 60
    assert (body["temperature"], body["top_k"]) == (0, 1)
    assert body["cache_prompt"] is False
    assert body["return_tokens"] is True
    assert body["n_probs"] >= 5


def test_answer(tmp_path: Path) -> None:
    """Ids, log-probabilities and timings are read; nothing is amiss."""
    found = real("cpu", tmp_path)
    assert found.tokens is not None
    assert len(found.tokens) == 8
    assert found.prompt_tokens == 25
    assert not found.truncated
    assert not found.end_of_sequence
    assert [chance.id for chance in found.chances] == list(found.tokens)
    assert all(chance.logprob == chance.top[0][1] for chance in found.chances)
    assert found.timings["predicted_n"] == 8
    assert found.signs == ()


def test_speculation(tmp_path: Path) -> None:
    """Accepted draft tokens come with log-probability 0 and no candidates."""
    found = real("draft-other", tmp_path)
    assert found.timings["draft_n"] == 5
    assert TokenChance(id=found.chances[1].id, logprob=0.0) in found.chances


def test_no_numbers(tmp_path: Path) -> None:
    """Log-probabilities that are no numbers are a symptom, and no chance has them."""
    found = real("not-a-number", tmp_path)
    assert [sign.symptom for sign in found.signs] == [Symptom.NOT_A_NUMBER]
    assert "logprob None" in found.signs[0].line
    assert all(chance.logprob is None and chance.top == () for chance in found.chances)


@pytest.mark.parametrize(
    ("settings", "greedy"),
    [
        ({"temperature": 0.0, "top_k": 40}, True),
        ({"temperature": 0.8, "top_k": 1}, True),
        ({"temperature": 0.8, "top_k": 40}, False),
        ({}, True),
    ],
)
def test_greedy(settings: dict[str, float], greedy: bool, tmp_path: Path) -> None:
    """An engine that says it sampled did not decode greedily."""
    found = made(tmp_path, tokens=[1], generation_settings=settings)
    assert (Symptom.NOT_GREEDY not in {sign.symptom for sign in found.signs}) is greedy


def test_end_of_sequence(tmp_path: Path) -> None:
    """Both names of an end at an end-of-sequence token are known."""
    assert made(tmp_path, tokens=[1], stop_type="eos").end_of_sequence
    assert made(tmp_path, tokens=[1], stopped_eos=True).end_of_sequence
    assert not made(tmp_path, tokens=[1], stop_type="limit").end_of_sequence


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (None, "gave no answer"),
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "no JSON object"),
        ("{}", "no token ids"),
        ('{"tokens": "1 2"}', "no token ids"),
        ('{"tokens": [1, 2.5]}', "no token ids"),
        ('{"tokens": [true]}', "no token ids"),
        ('{"tokens": []}', "an empty stream"),
    ],
)
def test_no_stream(text: str | None, trouble: str, tmp_path: Path) -> None:
    """An answer without ids has no stream, and says why; an empty one is none either (B039)."""
    if text is not None:
        (tmp_path / FILE).write_text(text)
    found = load(tmp_path)
    assert found.tokens is None
    assert found.trouble is not None
    assert trouble in found.trouble


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    *("tokens", "id", "logprob", "top_logprobs", "completion_probabilities"),
                    *("generation_settings", "temperature", "top_k", "tokens_evaluated"),
                    *("timings", "predicted_n"),
                )
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(content=_JSON)
def test_no_answer_raises(content: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever JSON a server answers with, reading it raises nothing."""
    folder = tmp_path_factory.mktemp("reply", numbered=True)
    (folder / FILE).write_text(json.dumps(content))
    found = load(folder)
    assert found.tokens is None or all(isinstance(token, int) for token in found.tokens)
