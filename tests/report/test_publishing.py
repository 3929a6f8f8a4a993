"""A report is safe to publish: nothing foreign acts, nothing secret shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from hetero_test.publish.redact import Redactor, secrets_of

from .factories import (
    hostile,
)
from .hostile import ALL_AT_ONCE, worded
from .reading import report
from .rendered import RENDERERS, Page, cmark

HARMLESS = "as long a label as those of residencies"


def shape(page: Page) -> list[str]:
    """The elements of a page without the code spans that hold foreign text."""
    return [tag for tag in page.tags if tag not in {"code", "pre"}]


@pytest.mark.parametrize("render", RENDERERS)
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(text=worded)
def test_foreign_text_changes_no_element(render: Callable[[str], Page], text: str) -> None:
    """A report full of hostile text has exactly the elements of one full of harmless text."""
    harmless = render(report(hostile(HARMLESS)))

    page = render(report(hostile(f"{HARMLESS} {text} b")))

    assert shape(page) == shape(harmless)
    assert {name for name, _ in page.attributes} <= {"align", "class", "lang", "style"}
    assert page.acting() == []


def test_all_tricks_at_once_change_no_element() -> None:
    """Likewise with every known trick in every field."""
    for render in RENDERERS:
        harmless = render(report(hostile(HARMLESS)))
        assert shape(render(report(hostile(ALL_AT_ONCE)))) == shape(harmless)


def test_nothing_secret_is_published() -> None:
    """Names, folders and addresses are replaced in every part of the report."""
    secret = "alice@rumpelkammer:/home/alice/models/x.gguf 10.0.0.7:50052 --api-key s3cr3t-value"
    record = hostile(secret)
    pairs = secrets_of(
        argv=record.manifest.argv,
        model_flags=("--pack", "/home/alice/models/pack", "--api-key", "s3cr3t-value"),
        env=(),
        build_dir="/home/alice/strata/build",
        out_dir="/home/alice/out",
        home="/home/alice",
        user="alice",
        host="rumpelkammer",
    )

    text = report(record, redactor=Redactor(pairs=pairs))

    for word in ("alice", "rumpelkammer", "/home", "10.0.0.7", "s3cr3t"):
        assert word not in text
    assert "<user>@<host>:<model>/x.gguf <ip-1>:50052 --api-key <secret>" in cmark(text).text


def test_an_invisible_character_does_not_hide_a_name() -> None:
    """A name is found behind colors, too."""
    record = hostile("/home/\x1b[1malice\x1b[0m/x")

    text = report(record, redactor=Redactor(pairs=(("/home/alice", "~"), ("alice", "<user>"))))

    assert "alice" not in text


def test_template_syntax_is_text() -> None:
    """What an engine prints is never rendered as a template."""
    text = report(hostile("{{ 'a' * 3 }} {% raw %}"))

    assert "aaa" not in text
    assert "{{ 'a' * 3 }} {% raw %}" in text
