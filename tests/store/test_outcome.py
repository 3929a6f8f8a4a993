"""An outcome and its file."""

from __future__ import annotations

import json
from dataclasses import Field, FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetero_test.errors import StoreError
from hetero_test.store.run_json import from_file, to_text
from hetero_test.values.outcome import OUTCOME_SCHEMA, Outcome, StopReason

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


def values_of(outcome: Outcome) -> dict[str, Any]:
    """What its file holds."""
    values: dict[str, Any] = json.loads(to_text(outcome, schema=OUTCOME_SCHEMA))
    return values


def read_back(folder: Path, values: dict[str, Any]) -> Outcome:
    """The outcome that a file of these values holds."""
    path = folder / "outcome.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    return from_file(path, Outcome, schema=OUTCOME_SCHEMA)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outcomes)
def test_an_outcome_survives_being_stored(tmp_path: Path, outcome: Outcome) -> None:
    """What is read back through JSON equals what was written, text that is no UTF-8 included."""
    assert read_back(tmp_path, values_of(outcome)) == outcome


def test_the_form_names_its_schema() -> None:
    """The first key says which version of the form this is."""
    assert next(iter(values_of(plain()).items())) == ("schema", "hetero-test/outcome/2")


@pytest.mark.parametrize("schema", [None, "hetero-test/outcome/1", 1])
def test_another_schema_is_refused(tmp_path: Path, schema: Any) -> None:
    """A form of another version is not guessed at."""
    with pytest.raises(StoreError, match=r"outcome\.json: it .*hetero-test/outcome/2"):
        read_back(tmp_path, {**values_of(plain()), "schema": schema})


def test_a_folder_of_an_older_version_says_what_to_do(tmp_path: Path) -> None:
    """The message names the file, both versions of the form, and the way on."""
    with pytest.raises(StoreError) as caught:
        read_back(tmp_path, {**values_of(plain()), "schema": "hetero-test/outcome/1"})

    assert str(tmp_path / "outcome.json") in caught.value.what
    assert "it holds hetero-test/outcome/1" in caught.value.what
    assert caught.value.hint is not None
    assert "--out" in caught.value.hint


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("exit_code", "0"),
        ("stopped", "bored"),
        ("stopped", []),
        ("argv", "strata"),
        ("argv", [1]),
        ("env_delta", {"A": None}),
        ("env_delta", []),
        ("started", None),
        ("elapsed_s", None),
        ("output_truncated", "no"),
        ("more", 1),
    ],
)
def test_a_value_that_was_not_written_is_refused_by_name(
    tmp_path: Path, key: str, value: Any
) -> None:
    """Of the wrong type, or a key that this version does not know: the complaint names the key."""
    with pytest.raises(StoreError, match=rf"outcome\.json: {key}\b"):
        read_back(tmp_path, {**values_of(plain()), key: value})


@pytest.mark.parametrize("field", fields(Outcome), ids=lambda field: field.name)
def test_a_missing_value_is_refused_by_name(tmp_path: Path, field: Field[Any]) -> None:
    """Unknown is null; absent is an error."""
    values = values_of(plain())
    del values[field.name]

    with pytest.raises(StoreError, match=rf"outcome\.json: {field.name}\b"):
        read_back(tmp_path, values)


def test_an_outcome_cannot_be_changed() -> None:
    """What happened, happened."""
    with pytest.raises(FrozenInstanceError):
        plain().exit_code = 1  # type: ignore[misc]
