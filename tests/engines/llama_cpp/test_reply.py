"""What a server's answer is read into."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hetero_test.engines.base import LaunchedCell, Survey
from hetero_test.engines.llama_cpp import reading as llama_reading
from hetero_test.engines.llama_cpp.reply import FILE, Reply, load, request
from hetero_test.session.state import state_of
from hetero_test.store.run_json import from_file, to_text
from hetero_test.values.outcome import Outcome, StopReason
from hetero_test.values.reading import Symptom, TokenChance
from hetero_test.values.remark import Weight
from hetero_test.values.run import (
    Probe,
    Run,
    RunState,
)
from tests.engines.llama_cpp.samples import LOGS
from tests.runs import PLAIN

PROBE = Probe(name="p", ids=(1, 2, 3, 4), max_new=4)


def asked(folder: Path) -> LaunchedCell:
    """A run whose answer lies in this folder."""
    survey = Survey(devices=(), device_count=0, how="", known_flags=None)
    return LaunchedCell(flags=(), env={}, probe=PROBE, survey=survey, folder=folder)


ENDED = Outcome(
    argv=("llama-server",),
    env_delta={},
    cwd=None,
    pid=1,
    pid_started=None,
    started="2026-01-01T00:00:00Z",
    elapsed_s=1.0,
    exit_code=None,
    signal="SIGTERM",
    stopped=StopReason.DIALOGUE_DONE,
    start_error=None,
    major_faults=None,
    blocks_read=None,
    max_rss_bytes=None,
)


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
    assert found.trouble is None
    assert found.prompt_trouble is None
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
        ({"temperature": "0.8", "top_k": 40}, False),
        ({"temperature": None, "top_k": 40}, False),
        ({"temperature": 0.0, "dynatemp_range": 0.5, "top_k": 40}, False),
        ({"temperature": 0.0, "dynatemp_range": 0.5, "top_k": 1}, True),
        ({"temperature": 0.8, "top_k": 1, "samplers": ["top_k", "temperature"]}, True),
        ({"temperature": 0.8, "top_k": 1, "samplers": ["temperature"]}, False),
        ({"temperature": 0.8, "top_k": 1, "mirostat": 2}, False),
        ({"temperature": 0.0, "top_k": 1, "mirostat": 2}, True),
        ({}, True),
    ],
)
def test_greedy(settings: dict[str, Any], greedy: bool, tmp_path: Path) -> None:
    """An engine that says it sampled did not decode greedily.

    One candidate leaves no choice at any temperature, but only where top-k is applied.
    """
    found = made(tmp_path, tokens=[1], generation_settings=settings)
    assert (Symptom.NOT_GREEDY not in {sign.symptom for sign in found.signs}) is greedy


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.glob("*.reply.json")))
def test_real_answers_contradict_nothing(name: str, tmp_path: Path) -> None:
    """Neither themselves nor the prompt, whatever their placement and their drafts."""
    found = real(name.removesuffix(".reply.json"), tmp_path)
    assert (found.trouble, found.prompt_trouble) == (None, None)
    assert not [sign for sign in found.signs if sign.symptom is Symptom.NOT_GREEDY]


def chances(*ids: int) -> list[dict[str, Any]]:
    return [{"id": token, "logprob": -0.5, "top_logprobs": []} for token in ids]


@pytest.mark.parametrize(
    ("more", "trouble"),
    [
        ({"completion_probabilities": chances(5, 6, 7)}, None),
        ({"completion_probabilities": chances(5)}, None),
        ({"completion_probabilities": chances(5, 6, 7, 8)}, None),
        ({"completion_probabilities": chances(5, 9, 7)}, "two streams: at index 1"),
        ({"completion_probabilities": chances(9)}, "two streams: at index 0"),
        ({"error": None}, None),
        ({"error": {"code": 500, "message": "Compute error."}}, "an error: Compute error."),
        ({"error": "Compute error."}, "an error: Compute error."),
        ({"error": {"code": 500}}, "with an error"),
    ],
)
def test_an_answer_that_contradicts_itself_has_no_stream(
    more: dict[str, Any], trouble: str | None, tmp_path: Path
) -> None:
    """Other ids beside the log-probabilities, or an error beside the ids: neither is trusted."""
    found = made(tmp_path, tokens=[5, 6, 7], tokens_evaluated=4, **more)
    assert (found.tokens is None) is (trouble is not None)
    assert (trouble or "") in (found.trouble or "")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "does not say how many ids"),
        ({"tokens_evaluated": "4"}, "does not say how many ids"),
        ({"tokens_evaluated": True}, "does not say how many ids"),
        ({"tokens_evaluated": 4, "truncated": True}, "truncated"),
        ({"truncated": True}, "truncated"),
        ({"tokens_evaluated": 4, "timings": {"prompt_n": 1, "cache_n": 3}}, "computed 1 of"),
        ({"tokens_evaluated": 4, "timings": {"prompt_n": 1}}, "computed 1 of"),
        ({"tokens_evaluated": 4, "timings": {"cache_n": 3}}, "found others in a cache"),
        ({"tokens_evaluated": 10**400, "timings": {"prompt_n": 1}}, "computed 1 of"),
        ({"tokens_evaluated": 4, "timings": {"prompt_n": 4, "cache_n": 0}}, None),
        ({"tokens_evaluated": 4}, None),
    ],
)
def test_a_prompt_must_be_read_as_given_and_in_this_run(
    more: dict[str, Any], words: str | None, tmp_path: Path
) -> None:
    """The server says the prompt's length, cut nothing of it and took nothing from a cache."""
    made(tmp_path, tokens=[5, 6, 7, 8], **more)
    reading = llama_reading.read(tmp_path / "stdout", tmp_path / "stderr", asked(tmp_path))
    finding = state_of(ENDED, reading, PROBE)
    assert finding.state is (RunState.OK if words is None else RunState.WRONG_PROMPT)
    assert (words or "") in (finding.reason or "")


@pytest.mark.parametrize("failing", ["stdout", "stderr"])
@pytest.mark.parametrize("telling", ["stdout", "stderr"])
def test_a_failure_counts_on_either_channel(failing: str, telling: str, tmp_path: Path) -> None:
    """Wherever the log of the model is: a build, or a library in it, may use both."""
    made(tmp_path, tokens=[5, 6, 7, 8], tokens_evaluated=4)
    logs = {"stdout": b"", "stderr": b""}
    logs[telling] += (LOGS / "cpu.log").read_bytes()
    logs[failing] += b"CUDA error: an illegal memory access was encountered\n"
    for name, content in logs.items():
        (tmp_path / name).write_bytes(content)
    reading = llama_reading.read(tmp_path / "stdout", tmp_path / "stderr", asked(tmp_path))
    assert reading.residency.unknown is None
    finding = state_of(ENDED, reading, PROBE)
    assert finding.state is RunState.CRASHED
    assert "illegal memory access" in (finding.quote or "")


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
        ("[" * 100_000, "line 1, column 101: lists and objects are nested"),
        ('{"tokens": [' + "9" * 5000 + "]}", "line 1, column 13: a whole number of more"),
        ('{"content": "\xe9", "tokens": [1]}', "line 1: these bytes are no text"),
        ("[]", "no JSON object"),
        ("{}", "no token ids"),
        ('{"tokens": "1 2"}', "no token ids"),
        ('{"tokens": [1, 2.5]}', "no token ids"),
        ('{"tokens": [true]}', "no token ids"),
        ('{"tokens": []}', "an empty stream"),
    ],
)
def test_no_stream(text: str | None, trouble: str, tmp_path: Path) -> None:
    """An answer without ids has no stream, and says why; an empty one is none either."""
    if text is not None:
        (tmp_path / FILE).write_bytes(text.encode("latin-1"))
    found = load(tmp_path)
    assert found.tokens is None
    assert found.trouble is not None
    assert trouble in found.trouble


@pytest.mark.parametrize("word", ["NaN", "-Infinity", "1e999", "[" * 90 + "]" * 90, '"\\ud800"'])
def test_no_number_beside_a_stream(word: str, tmp_path: Path) -> None:
    """The ids are read, and what stands in a number's place is the symptom, at readable length."""
    text = f'{{"tokens": [7], "completion_probabilities": [{{"id": 7, "logprob": {word}}}]}}'
    (tmp_path / FILE).write_text(text)
    found = load(tmp_path)
    assert found.tokens == (7,)
    (sign,) = found.signs
    assert sign.symptom is Symptom.NOT_A_NUMBER
    assert len(sign.line) < 100


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, 2**40, -1, 5e-324])
    | st.floats()
    | st.text(max_size=5)
    | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    *("tokens", "id", "logprob", "top_logprobs", "completion_probabilities"),
                    *("generation_settings", "temperature", "top_k", "tokens_evaluated"),
                    *("timings", "predicted_n", "predicted_ms", "draft_n", "draft_n_accepted"),
                )
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(content=_JSON)
@example(content={"tokens": [1], "timings": {"predicted_n": 9, "predicted_ms": 5e-324}})
@example(content={"tokens": [1], "timings": {"prompt_n": -9, "prompt_ms": 5.0}})
@example(content={"tokens": [10**4000]})
def test_no_answer_raises(content: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever JSON a server answers with: the run has a state, and can be stored and published.

    Its document is JSON for every reader: no number in it is none.
    """
    folder = tmp_path_factory.mktemp("reply", numbered=True)
    (folder / FILE).write_text(json.dumps(content))
    reading = llama_reading.read(folder / "stdout", folder / "stderr", asked(folder))
    finding = state_of(ENDED, reading, PROBE)
    assert reading.stream is None or all(isinstance(token, int) for token in reading.stream)
    assert (finding.state is RunState.OK) is (finding.reason is None)
    run = replace(PLAIN, reading=reading, finding=finding)
    path = folder / "run.json"
    path.write_text(to_text(run, schema="x/1"), encoding="utf-8")
    assert from_file(path, Run, schema="x/1") == run
    for speed in (run.timings.decode_tok_s, run.timings.prefill_tok_s, run.timings.ttft_ms):
        assert speed is None or 0 < speed < inf


@pytest.mark.parametrize("count", [-(10**300), -1, 0, 3, 5, 2**31, 10**300])
def test_a_prompt_of_another_length_is_another_prompt(count: int, tmp_path: Path) -> None:
    """However long the engine says it was: nothing of that size is made of it."""
    (tmp_path / FILE).write_text(json.dumps({"tokens": [5, 6, 7, 8], "tokens_evaluated": count}))
    reading = llama_reading.read(tmp_path / "stdout", tmp_path / "stderr", asked(tmp_path))
    assert state_of(ENDED, reading, PROBE).state is RunState.WRONG_PROMPT


@pytest.mark.parametrize(
    ("content", "both"),
    [
        ({"timings": {"predicted_n": 3}}, ("3", "4")),
        ({"timings": {"predicted_n": 3}, "stop_type": "eos"}, None),
        ({"timings": {"predicted_n": 4}}, None),
        ({"timings": {"draft_n": 5, "draft_n_accepted": 7}}, ("7", "5")),
    ],
)
def test_a_count_that_contradicts_the_answer_is_a_doubt(
    tmp_path: Path, content: dict[str, Any], both: tuple[str, str] | None
) -> None:
    """What the server counts must agree with the tokens that it gives."""
    (tmp_path / FILE).write_text(json.dumps({"tokens": [5, 6, 7, 8]} | content))
    reading = llama_reading.read(tmp_path / "stdout", tmp_path / "stderr", asked(tmp_path))

    lines = [remark.line for remark in reading.remarks if remark.weight is Weight.DOUBTFUL]
    assert len(lines) == (both is not None)
    assert all(count in line.replace(",", "").split() for line in lines for count in both or ())
