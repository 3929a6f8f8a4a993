"""JSON that somebody else wrote is a value or one kind of error, with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hetero_test.formats.json import MOST_LEVELS, JsonError, parse, parse_object

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1, column 1: not JSON: Expecting value"),
        ('{\n  "a": 1,\n  b\n}', "line 3, column 3: not JSON: Expecting property name"),
        ("[1] 2", "line 1, column 5: not JSON: Extra data"),
        ('["a"\n, NaN]', "line 2, column 3: NaN is no number that JSON has"),
        ('["NaN", -Infinity]', "line 1, column 9: -Infinity is no number"),
        ('["-1e999",\n 1e5, -1e999]', "line 2, column 7: -1e999 is no number"),
        ("[" + "1" * 400 + ", 2.5e999]", "line 1, column 404: 2.5e999 is no number"),
        ('["' + "1" * 9000 + '",\n' + "1" * 9000 + "]", "line 2, column 1: a whole number of more"),
        ("-" + "9" * 5000, "line 1, column 2: a whole number of more than 4300 digits"),
        ('["[[",\n' + "[" * 99 + "\n[", "line 3, column 2: not JSON: Expecting value"),
        ('["[[",\n' + "[" * 99 + "\n[" + "]" * 101, "line 3, column 1: lists and objects are nes"),
        ("[\n" * 100_000, "line 101, column 1: lists and objects are nested more than 100 levels"),
        ('{"a":' * 100_000, "line 1, column 501: lists and objects are nested more than 100"),
    ],
)
def test_every_complaint_has_its_place(text: str, told: str) -> None:
    """Line and column of what is wrong; what stands in a string is not taken for it."""
    with pytest.raises(JsonError) as caught:
        parse(text)
    assert told[:60] in str(caught.value)
    with pytest.raises(JsonError):
        parse(text.encode())


def test_bytes_that_are_no_text_are_told_with_their_line() -> None:
    """Latin-1, as an old tool prints it."""
    with pytest.raises(JsonError, match="line 2: these bytes are no text"):
        parse(b'{\n"name": "caf\xe9"}')


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-le"])
def test_every_encoding_of_json_is_read(encoding: str) -> None:
    """With a mark of the byte order and without."""
    assert parse('{"a": "é"}'.encode(encoding)) == {"a": "é"}


def test_numbers_that_are_none_are_read_where_they_are_a_symptom() -> None:
    """An engine whose logits are broken prints so, and its ids stand beside it."""
    text = "[NaN, -Infinity, 1e999]"
    with pytest.raises(JsonError):
        parse(text)
    assert repr(parse(text, lax_numbers=True)) == "[nan, -inf, inf]"


def test_half_of_a_surrogate_pair_is_read() -> None:
    """An argument that was no UTF-8 is stored so."""
    assert parse(r'"\ud800 \udcff"') == "\ud800 \udcff"


def test_what_follows_may_be_passed_over() -> None:
    """A tool that warns behind its answer has still answered."""
    assert parse('\n{"a": 1}\nWARNING: {', more_follows=True) == {"a": 1}
    with pytest.raises(JsonError):
        parse('{"a": 1}\nWARNING: {')


@pytest.mark.parametrize("text", ["[]", "null", "1", '"a"'])
def test_a_value_that_is_no_object_is_told(text: str) -> None:
    """Where an object is wanted."""
    with pytest.raises(JsonError, match="it is no JSON object"):
        parse_object(text)
    assert parse_object('{"a": []}') == {"a": []}


@pytest.mark.parametrize("begin", ["[", '{"a":'])
def test_depth_has_one_limit(begin: str) -> None:
    """Whatever stack is left, the same texts are read: what is read can be printed and copied."""
    end = "]" if begin == "[" else "}"
    deepest = begin * MOST_LEVELS + "1" + end * MOST_LEVELS

    def from_deep(frames: int) -> Any:
        return parse(deepest) if not frames else from_deep(frames - 1)

    assert from_deep(300) == parse(deepest)
    with pytest.raises(JsonError, match="nested"):
        parse(begin + deepest + end)


@given(VALUES)
def test_what_any_program_writes_is_read(value: object) -> None:
    """With and without escapes, as text and as bytes, wherever numbers are lax or not."""
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        assert parse(text) == parse(text, lax_numbers=True) == value
        assert parse(text.encode("utf-8", "surrogatepass")) == value


PIECES = st.sampled_from(
    [*'[]{},:"\\ \n', "1", "-", "9" * 4301, "1e999", "NaN", "null", '"a"', "\ud800", "[" * 1200]
)


def printed(content: str | bytes, *, lax_numbers: bool) -> str:
    """The value as Python prints it, which goes through all of it, or the place of the error."""
    try:
        return repr(parse(content, lax_numbers=lax_numbers))
    except JsonError as error:
        return error.place


@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=12), st.booleans())
@example("[" * 990 + "]" * 990, True)
def test_any_text_is_a_value_or_an_error(text: str, lax: bool) -> None:
    """Nothing else is raised, and every error has a place in the text."""
    told = printed(text, lax_numbers=lax)
    assert told
    if told.startswith("line "):
        assert int(told.removeprefix("line ").partition(",")[0]) <= text.count("\n") + 1


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_error(content: bytes) -> None:
    """Whatever a server sends."""
    assert printed(content, lax_numbers=True)
