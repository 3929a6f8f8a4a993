"""The triage reports: made for pasting, safe, and the same each time."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from hetero_test.report import triage, triage_html
from hetero_test.triage.answer.answer import answer
from hetero_test.triage.answer.json import answer_document
from hetero_test.triage.cost.priors import first_estimate
from hetero_test.triage.learn.estimates import Estimates
from hetero_test.triage.options.question import Speeds
from tests.triage.rigs import card, cpu, dense, mixture, question, rig, strix


def document(*, prefill: float | None = 192.0) -> dict[str, Any]:
    """An answer as data."""
    today = Speeds(decode_tok_s=22.0, prefill_tok_s=prefill)
    asked = question(mixture(), strix(), incumbent=today, baselines={"ROCm0": today})
    return answer_document(answer(asked, Estimates(first_estimate), 1.0), points=53, sources=14)


def test_markdown_has_the_verdict_in_its_first_line() -> None:
    """In words; the mark stands beside them."""
    first = triage.build(document()).splitlines()[0]
    assert re.fullmatch(r"## \S+ (GO|NO-GO|MEASURE FIRST) — .+", first)


def test_markdown_tables_have_at_most_six_columns_and_equal_rows() -> None:
    """What fits the page of an issue."""
    lines = triage.build(document()).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert rows
    for row in rows:
        assert 2 <= len(re.split(r"(?<!\\)\|", row)) - 2 <= 6


def test_every_option_stands_in_both_reports_with_its_reason_and_flags() -> None:
    """Nothing is hidden: what does not fit is listed as well."""
    told = document()
    texts = (triage.build(told), triage_html.build(told))
    for option in told["options"]:
        flags = [words["flags"] for words in option["flags"]]
        assert all(flag in texts[0] for flag in flags) or option["incumbent"]
        for text in texts:
            assert option["title"].split(",")[0] in text


def test_folds_are_closed_and_have_blank_lines_around_them() -> None:
    """Or GitHub shows their tables as text."""
    text = triage.build(document())
    assert text.count("<details>") == text.count("</details>") > 0
    assert not re.search(r"</summary>\n[^\n]", text)
    assert not re.search(r"</details>\n[^\n]", text)


def test_an_unknown_number_is_a_dash_and_never_a_zero() -> None:
    """An unknown prefill speed of today, a device without bandwidth."""
    told = document(prefill=None)
    told["options"][1]["prefill_tok_s"] = None
    told["rig"][0]["bandwidth_gb_s"] = None
    text = triage.build(told)
    assert "| – |" in text
    assert "bandwidth unknown" in text


@pytest.mark.parametrize("builder", [triage, triage_html])
def test_the_same_document_gives_the_same_bytes(builder: Any) -> None:
    """No clock, no random id."""
    told = document()
    assert builder.build(told) == builder.build(copy.deepcopy(told))


def test_foreign_names_cannot_act() -> None:
    """A model or device may be called anything."""
    told = document()
    told["model"]["name"] = "<script>alert(1)</script> @someone #1 | x"
    told["rig"][0]["name"] = "</td><b>"
    markdown, page = triage.build(told), triage_html.build(told)
    assert "`<script>alert(1)</script> @someone #1 \\|`" in markdown
    assert "<script>" not in page
    assert "</td><b>" not in page


def test_the_picture_has_a_bar_an_option_and_a_color_a_kind() -> None:
    """Inline SVG that an XML parser reads, without a date."""
    told = document()
    svg = triage_html.token_bars(told)
    assert svg.startswith("<svg")
    root = ET.fromstring(svg)  # the program's own output
    texts = {element.text for element in root.iter() if element.tag.endswith("text")}
    kinds = {term["kind"] for option in told["options"] for term in option["terms"]}
    assert kinds <= texts
    assert "date" not in svg.lower().split("<defs")[0]
    for color in {triage_html.COLORS[kind] for kind in kinds}:
        assert color in svg


def test_a_page_of_nothing_is_a_page() -> None:
    """A rig without devices."""
    asked = question(dense(), rig())
    told = answer_document(answer(asked, Estimates(first_estimate), 1.0), points=53, sources=14)
    assert "nothing fits" in triage_html.build(told)
    assert "nothing fits" in triage.build(told)


def test_drafting_has_its_own_bars() -> None:
    """Draft and verify instead of weights."""
    asked = question(dense(nextn=True), rig(card(), cpu()))
    told = answer_document(answer(asked, Estimates(first_estimate), 1.0), points=53, sources=14)
    svg = triage_html.token_bars(told)
    assert "draft" in svg
    assert "verify" in svg
