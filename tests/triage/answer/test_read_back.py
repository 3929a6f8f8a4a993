"""Documents that are read back: what is used of them is checked, with the place of a mistake."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.formats.json import JsonError
from hetero_test.triage.answer import read_back
from hetero_test.triage.answer.compare_with_run import predicted_vs_measured

PREDICTION: dict[str, Any] = {
    "schema": "hetero-test/triage/1",
    "incumbent": {"label": "what runs", "decode_tok_s": 20.0, "prefill_tok_s": None},
    "options": [
        {
            "key": "layers:A+B",
            "title": "layers over A and B",
            "incumbent": False,
            "flags": [{"engine": "llama.cpp", "flags": "-dev A,B -ts 1,1"}],
            "decode_tok_s": {"low": 10.0, "value": 12, "high": 14.0},
            "prefill_tok_s": None,
        }
    ],
}
RUN: dict[str, Any] = {
    "schema": "hetero-test/run/1",
    "model_flags": ["-m", "x.gguf"],
    "variants": [{"id": "0", "name": "mine", "flags": []}, {"id": "1", "flags": ["-ts", "1,1"]}],
    "runs": [{"variant": "1", "state": "OK", "decode_tok_s": 11.0, "speculation": {"rounds": 3}}],
}


def test_a_document_is_read_as_it_stands() -> None:
    """What is not used may be anything."""
    for read, document in ((read_back.prediction, PREDICTION), (read_back.run, RUN)):
        more = {**document, "more": [{"deep": None}]}
        assert read(json.dumps(more)) == more


@pytest.mark.parametrize(
    ("read", "text", "told"),
    [
        (read_back.prediction, "{", "line 1, column 2: not JSON"),
        (read_back.prediction, "[]", "no JSON object"),
        (read_back.prediction, "{}", 'schema: it is not "hetero-test/triage/1"'),
        (read_back.run, json.dumps(PREDICTION), 'schema: it is not "hetero-test/run/1"'),
        (read_back.run, "[" * 100_000, "line 1, column 101: lists and objects are nested"),
        (read_back.run, '{"a": ' + "9" * 5000 + "}", "line 1, column 7: a whole number"),
        (read_back.run, '{"a": NaN}', "line 1, column 7: NaN is no number"),
    ],
)
def test_what_is_no_such_document_is_told(
    read: Callable[[str], object], text: str, told: str
) -> None:
    """The place, and what is wrong there."""
    with pytest.raises(JsonError) as caught:
        read(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("options",), 5),
        (("options", 0), "a"),
        (("options", 0, "title"), None),
        (("options", 0, "flags"), "-ngl 99"),
        (("options", 0, "flags", 0, "flags"), 3),
        (("options", 0, "decode_tok_s"), 12.0),
        (("options", 0, "decode_tok_s", "value"), "fast"),
        (("options", 0, "decode_tok_s", "low"), True),
        (("options", 0, "decode_tok_s", "high"), -1.0),
        (("options", 0, "decode_tok_s", "high"), 10**400),
        (("incumbent", "label"), []),
        (("incumbent", "decode_tok_s"), {}),
    ],
)
def test_a_prediction_of_another_shape_is_told(keys: tuple[str | int, ...], value: object) -> None:
    """Before hours of runs are compared with it: which key holds a wrong value."""
    document = copy.deepcopy(PREDICTION)
    holder: Any = document
    for key in keys[:-1]:
        holder = holder[key]
    holder[keys[-1]] = value
    with pytest.raises(JsonError) as caught:
        read_back.prediction(json.dumps(document))
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    assert caught.value.place == path.removeprefix(".")


JUNK = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**30), 1e308, 5e-324])
    | st.text(max_size=4)
    | st.sampled_from(["\ud800", "a\0b", "-ts", "OK"])
    | st.lists(st.text(max_size=3), max_size=2)
    | st.just({"value": 1.0})
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place inside a document."""
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    return [each for key, held in pairs for each in ((*path, key), *places(held, (*path, key)))]


def damaged(document: dict[str, Any], data: st.DataObject) -> str:
    """The text of a document in which some places hold something else."""
    copied = copy.deepcopy(document)
    for keys in data.draw(st.lists(st.sampled_from(places(document)), min_size=1, max_size=3)):
        holder: Any = copied
        try:
            for key in keys[:-1]:
                holder = holder[key]
            holder[keys[-1]] = copy.deepcopy(data.draw(JUNK))
        except (TypeError, KeyError, IndexError):
            continue  # an outer place was damaged before
    return json.dumps(copied)


@given(st.data())
def test_a_damaged_document_is_refused_or_can_be_used(data: st.DataObject) -> None:
    """Whatever stands where: what is not refused never ends in a traceback later."""
    texts = damaged(PREDICTION, data), damaged(RUN, data)
    try:
        rows = predicted_vs_measured(read_back.prediction(texts[0]), read_back.run(texts[1]))
    except JsonError:
        rows = []
    for row in rows:
        assert row.gap is None or isinstance(row.gap, float)
        assert row.inside in (None, True, False)
