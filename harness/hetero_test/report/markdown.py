"""``report.md``: what is pasted into an issue. Deterministic: no clock, no locale, no globals."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from hetero_test.report.budget import LIMIT, Cuts, Detail, fit
from hetero_test.report.escape import cell, code, fence, inline, summary
from hetero_test.report.page import parts
from hetero_test.report.tables import pipe
from hetero_test.report.templates import environment
from hetero_test.report.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment

    from hetero_test.publish.redact import Redactor
    from hetero_test.report.tables import Table
    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Judgment


def build(record: Record, judgment: Judgment, *, redactor: Redactor) -> str:
    """The Markdown report of a judged record, at most 60,000 characters and bytes."""
    view = View.of(record, judgment, redactor)
    return fit(lambda detail: render(view, detail))


def render(view: View, detail: Detail) -> str:
    """The report with so much of each part."""
    cuts = Cuts()
    page = parts(view, detail, cuts)
    text = _environment().get_template("report.md.j2").render(page, limit=LIMIT)
    # A blank line is a blank line, however many conditions left one behind.
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def table(rows: Table) -> str:
    """A table of plain text in Markdown."""
    return pipe(rows, cell)


def sentence(text: str, end: str = ".") -> str:
    """:func:`inline`, capitalized and ended like a sentence."""
    shown = inline(text[:1].upper() + text[1:])
    return shown if shown.endswith((".", "!", "?", ":", ".`")) else f"{shown}{end}"


def fenced(lines: Sequence[str], info: str) -> str:
    """:func:`fence` as a filter."""
    return fence(lines, info)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return environment(
        html=False,
        inline=inline,
        code=code,
        fence=fenced,
        summary=summary,
        sentence=sentence,
        table=table,
    )
