"""Every known defect and public report is answered by a test, or by a reason why not."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
DEFECTS = {f"D{number:02d}" for number in range(1, 41)}
REPORTS = {
    *("B001", "B003", "B005", "B007", "B009", "B011", "B013", "B015", "B017", "B019", "B021"),
    *("B023", "B025", "B027", "B029", "B031", "B033", "B035", "B037", "B039", "B040", "B042"),
    *("B044", "B046", "B048", "B049", "B051", "B053", "B055", "B057", "B059", "B061", "B063"),
    *("B065", "B067", "B069", "B071", "B073"),
}


def test_every_number_is_answered() -> None:
    """D01 to D40 and each B stand in a docstring of a test, or in the table of reasons."""
    texts = [p.read_text() for p in TESTS.rglob("*.py") if p != Path(__file__)]
    readme = (TESTS / "README.md").read_text()
    named = set(re.findall(r"\b(?:D\d{2}|B\d{3})\b", "\n".join(texts)))
    reasons = set(re.findall(r"^\| ([DB]\d+) \|", readme, re.MULTILINE))
    assert named | reasons >= DEFECTS | REPORTS
