"""Reads a report back: its sections, tables and rows."""

from __future__ import annotations

import re

from hetero_test.judge.judge import judge
from hetero_test.publish.redact import Redactor
from hetero_test.report.markdown import build
from hetero_test.values.record import Record


def report(record: Record, *, redactor: Redactor | None = None) -> str:
    """The report of a record as the judge sees it."""
    text: str = build(record, judge(record), redactor=redactor or Redactor.off())
    return text


def section(text: str, title: str) -> str:
    """What stands under a heading."""
    return text.split(f"### {title}\n", 1)[1].split("\n### ", 1)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of the first table in a text, heading first; escaped pipes stay in their cell."""
    found = [line for line in text.splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in found]
    return [[cell.strip() for cell in row] for row in cells if not set("".join(row)) <= set("-: ")]


def row(text: str, name: str) -> list[str]:
    """The row of one variant."""
    return next(row for row in rows(text) if row[0].split(" ")[0] == name)
