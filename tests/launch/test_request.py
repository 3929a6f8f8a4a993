"""An outcome and its JSON form."""

from __future__ import annotations

import json
from dataclasses import Field, FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.errors import StoreError
from hetero_test.launch.request import Outcome, StopReason

counts = st.none() | st.integers(0, 2**60)
texts = st.text(st.characters())  # lone surrogates too: bytes of the command line that are no text

outcomes = st.builds(
    Outcome,
    argv=st.lists(texts).map(tuple),
    env_delta=st.dictionaries(texts, texts),
    unset=st.lists(texts).map(tuple),
    cwd=st.none() | st.sampled_from([Path("/a b"), Path("é")]),
    pid=counts,
    pid_started=st.none() | texts,
    started=texts,
    elapsed_s=st.floats(0, allow_infinity=False),
    exit_code=counts,
    signal=st.none() | texts,
    stopped=st.none() | st.sampled_from(StopReason),
    start_error=st.none() | texts,
    major_faults=counts,
    blocks_read=counts,
    max_rss_bytes=counts,
    leftovers=st.lists(texts).map(tuple),
    output_truncated=st.booleans(),
    dialogue_error=st.none() | texts,
)


def plain() -> Outcome:
    """An outcome in which nothing is remarkable."""
    return Outcome(
        argv=("strata",),
        env_delta={"LC_ALL": "C"},
        cwd=None,
        pid=1,
        pid_started="boot:1",
        started="2026-01-01T00:00:00.000+00:00",
        elapsed_s=1.5,
        exit_code=0,
        signal=None,
        stopped=None,
        start_error=None,
        major_faults=0,
        blocks_read=0,
        max_rss_bytes=1,
    )


@given(outcomes)
def test_an_outcome_survives_being_stored(outcome: Outcome) -> None:
    """What is read back through JSON equals what was written."""
    text = json.dumps(outcome.to_json())

    assert Outcome.from_json(json.loads(text)) == outcome


def test_the_form_names_its_schema() -> None:
    """The first key says which version of the form this is."""
    assert next(iter(plain().to_json().items())) == ("schema", "hetero-test/outcome/1")


@pytest.mark.parametrize("schema", [None, "hetero-test/outcome/2", 1])
def test_another_schema_is_refused(schema: Any) -> None:
    """A form of another version is not guessed at."""
    with pytest.raises(StoreError, match="expected an outcome of schema"):
        Outcome.from_json({**plain().to_json(), "schema": schema})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("exit_code", "0"),
        ("exit_code", True),
        ("stopped", "bored"),
        ("stopped", []),
        ("argv", "strata"),
        ("argv", [1]),
        ("env_delta", {"A": None}),
        ("env_delta", []),
        ("started", None),
        ("elapsed_s", None),
        ("output_truncated", 0),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(key: str, value: Any) -> None:
    """The complaint names the key."""
    with pytest.raises(StoreError, match=f"outcome: {key}"):
        Outcome.from_json({**plain().to_json(), key: value})


@pytest.mark.parametrize("field", fields(Outcome), ids=lambda field: field.name)
def test_a_missing_value_is_refused_by_name(field: Field[Any]) -> None:
    """Unknown is null; absent is an error."""
    values = plain().to_json()
    del values[field.name]

    with pytest.raises(StoreError, match=f"outcome: {field.name} is missing"):
        Outcome.from_json(values)


def test_an_outcome_cannot_be_changed() -> None:
    """What happened, happened."""
    with pytest.raises(FrozenInstanceError):
        plain().exit_code = 1  # type: ignore[misc]
