"""No format lets a character through that acts, hides or turns what is read."""

from __future__ import annotations

import json
import tomllib
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetero_test.cli.ci import annotation
from hetero_test.judge.judge import judge
from hetero_test.judge.wording import verdict_lines
from hetero_test.publish.printable import json_text, toml_string, visible, visible_lines
from hetero_test.publish.redact import Redactor
from hetero_test.report import csv, html, junit, markdown
from hetero_test.report import json as report_json
from hetero_test.store.run_dir import RUN_SCHEMA
from hetero_test.store.run_json import document, dumps, to_text
from hetero_test.values.record import Record

from .factories import hostile

UNSEEN = st.one_of(
    st.characters(categories=["Cc", "Cf", "Zl", "Zp"]),
    st.sampled_from("\x1b\x7f\x80\x85\x9b\u061c\u200b\u200d\u200e\u202a\u202e\u2060\u2066\u2069"),
    st.sampled_from("\ufeff\u00ad\u180e\u3164\ud800\udc9b\U000e0041\ufffe"),
)
TEXTS = st.lists(st.one_of(UNSEEN, st.sampled_from(["a", " ", "é", "日", "\n", "\t", '"', "\\"])))


def told(text: str) -> list[str]:
    """The characters that may stand in no output."""
    return sorted(
        {
            f"U+{ord(char):04X}"
            for char in text
            if char not in "\n\t" and unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp", "Cs"}
        }
    )


def on_disk(record: Record) -> str:
    """``run.json`` of the directory, and each run's own file."""
    runs = "".join(to_text(run, schema=RUN_SCHEMA) for run in record.runs)
    return dumps(document(record, judge(record), {})) + runs


def on_stdout(record: Record) -> str:
    """What is told at the end, with the annotation of a CI job."""
    judgment = judge(record)
    mark = annotation(judgment, {"GITHUB_ACTIONS": "true"})
    return "\n".join((*verdict_lines(record, judgment), mark or ""))


FORMATS: dict[str, Callable[[Record], str]] = {
    **{
        module.__name__.rpartition(".")[2]: lambda record, module=module: module.build(  # type: ignore[misc]
            record, judge(record), redactor=Redactor()
        )
        for module in (markdown, report_json, html, junit, csv)
    },
    "on disk": on_disk,
    "on stdout": on_stdout,
}


@pytest.mark.parametrize("name", FORMATS)
@settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(letters=TEXTS)
def test_nothing_unseen_leaves_any_format(name: str, letters: list[str]) -> None:
    """Whatever an engine, a driver or a file brings: neither controls nor reversed nor hidden text.

    Line feeds and tabs are of the formats themselves.
    """
    assert not told(FORMATS[name](hostile("x" + "".join(letters) + "y")))


@given(letters=TEXTS)
def test_json_loses_nothing(letters: list[str]) -> None:
    """Its escapes stand for the same characters, and every text can be written as UTF-8."""
    text = "".join(letters)
    made = json_text({"key " + text: [text]})
    assert not told(made)
    assert json.loads(made.encode()) == json.loads(json.dumps({"key " + text: [text]}))


@given(letters=TEXTS)
def test_toml_loses_nothing_that_it_can_hold(letters: list[str]) -> None:
    """Rig files and facts of models: their escapes stand for the same characters."""
    text = "".join(letters)
    made = toml_string(text)
    assert not told(made)
    assert "\n" not in made
    assert tomllib.loads(f"key = {made}")["key"] == text.encode("utf-8", "replace").decode()


@given(letters=TEXTS)
def test_what_is_told_on_stderr_is_visible(letters: list[str]) -> None:
    """One line, or the lines of an error: nothing but line feeds of our own."""
    text = "".join(letters)
    assert not told(visible(text) + visible_lines(text))
    assert visible_lines(text).count("\n") == text.count("\n")
