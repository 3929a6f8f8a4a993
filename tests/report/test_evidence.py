"""What the logs say against each other is shown, quoted and redacted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from hetero_test.judge.judge import judge
from hetero_test.report.formats import build
from hetero_test.store.run_json import document
from hetero_test.values.record import Record
from hetero_test.values.remark import Remark, Weight
from tests.judge.factories import changed, planned, record

DOUBT = "pool: request was ignored"
ONLY = "pool: two lanes open"
MISSING = "pool: one lane open"
KNOWN = "pool: fails softly"


def remark(line: str, weight: Weight = Weight.NOTHING) -> Remark:
    return Remark(line=line, template=line, weight=weight)


def made() -> Record:
    """One variant with a doubtful line and another pool, and a line that is acknowledged."""
    known = remark(KNOWN, Weight.DOUBTFUL)
    found = record("0: A A", "1: A A", "2: A A", harmless=("fails softly",))
    found = changed(found, "0", remarks=(remark(MISSING), known))
    found = changed(found, "1", remarks=(remark(MISSING),))
    return changed(found, "2", remarks=(remark(ONLY), remark(DOUBT, Weight.DOUBTFUL)))


@pytest.mark.parametrize("form", ["md", "html"])
@pytest.mark.parametrize(
    "line",
    [
        f"speaks against the placement of variant 2: {DOUBT}",
        f"only variant 2 printed: {ONLY}",
        f"the baseline printed, variant 2 never: {MISSING}",
        f"acknowledged as harmless by the matrix file: {KNOWN}",
    ],
)
def test_the_report_shows_each_kind_of_line(form: Literal["md", "html"], line: str) -> None:
    """A reader sees what was printed, by whom, and what it counts as."""
    found = made()
    text = build(form, found, judge(found), out=Path("out"), redact=True)

    assert line in text


def test_without_any_such_line_there_is_no_section() -> None:
    """Nothing to say is not said."""
    found = record("0: A A", "1: A A")
    text = build("md", found, judge(found), out=Path("out"), redact=True)

    assert "Lines that no reader knows" not in text


def test_run_json_holds_the_evidence() -> None:
    """Other programs read the same lines, by what they count as."""
    found = made()
    told = document(found, judge(found), {})["evidence"]

    assert told == {
        "doubts": {"2": [{"line": DOUBT, "undone": False}]},
        "everywhere": [],
        "only": {"2": [ONLY]},
        "missing": {"2": [MISSING]},
        "acknowledged": [KNOWN],
    }


def test_the_table_of_variants_says_what_did_not_move() -> None:
    """A placement that is the baseline's own is shown as such beside its effect."""
    entries = (planned("0"), planned("1", ("main", "1")), planned("2", ("main", "0")))
    found = record("0: A A", "1: A A", "2: A A", variants=entries)
    found = changed(found, "2", places={"main": "0"})
    text = build("md", found, judge(found), out=Path("out"), redact=True)
    first = {row[:4]: row for row in reversed(text.splitlines())}

    assert "PROVEN: same as the baseline" in first["| 2 "]
    assert "same as the baseline" not in first["| 1 "]
