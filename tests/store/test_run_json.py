"""What is stored comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetero_test.errors import StoreError
from hetero_test.store.run_json import from_file, to_text
from hetero_test.values.reading import Speculation, Timings, TokenChance
from hetero_test.values.run import Purpose, Run, RunState
from tests.runs import made

numbers = (
    st.none() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(), max_size=8)
runs = st.builds(
    made,
    variant=texts,
    of=texts,
    probe=texts,
    repeat=st.integers(0, 99),
    order=st.integers(0, 99),
    purpose=st.sampled_from(Purpose),
    state=st.sampled_from(RunState),
    stream=st.none() | st.lists(st.integers(-5, 2**31)).map(tuple),
    context=st.dictionaries(texts, st.booleans() | numbers | texts),
    speculation=st.none() | st.builds(Speculation, rounds=st.none() | st.integers(0, 9)),
    timings=st.builds(Timings, decode_tok_s=st.none() | st.floats(0, 1e6)),
    chances=st.none()
    | st.lists(
        st.builds(
            TokenChance,
            id=st.integers(0, 99),
            logprob=st.none() | st.floats(-50, 0),
            top=st.lists(st.tuples(st.integers(0, 9), st.floats(-50, 0)), max_size=3).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs)
def test_a_run_comes_back_as_it_was_stored(tmp_path: Path, run: Run) -> None:
    """Every value keeps its type: true is not 1, 1.0 is not 1, and a lone surrogate survives."""
    path = tmp_path / "run.json"
    path.write_text(to_text(run, schema="x/1"), encoding="utf-8")
    back = from_file(path, Run, schema="x/1")
    assert back == run
    assert repr(back) == repr(run)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "line 1, column 1: not JSON"),
        (b'{"schema": "x/1",\n', "line 2, column 1: not JSON"),
        (b"[]", "it is no JSON object"),
        (b'{"a": NaN}', "NaN is no number"),
        (b"[" * 100_000, "nested more than"),
        (b"9" * 5000, "a whole number of more than"),
        (b'{"a": "\xe9"}', "line 1: these bytes are no text"),
        (b'{"schema": "x/2"}', "it holds x/2, and this version of hetero-test reads x/1"),
        (b'{"schema": "y/1"}', "it does not hold x/1"),
        (b'{"schema": "x/1", "ttft_ms": []}', "ttft_ms: "),
    ],
)
def test_what_cannot_be_read_back_is_told(tmp_path: Path, content: bytes, told: str) -> None:
    """A file that was cut or edited: its name, and the place in it."""
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        from_file(path, Timings, schema="x/1")
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


def test_a_number_that_is_none_is_unknown() -> None:
    """NaN and infinities are null: no JSON reader but Python's takes them."""
    text = to_text(Timings(decode_tok_s=float("nan"), ttft_ms=float("inf")), schema="x/1")
    told = json.loads(text, parse_constant=lambda name: name)
    assert told["decode_tok_s"] is None
    assert told["ttft_ms"] is None
