"""The triage answer as Markdown, made for pasting. Deterministic: no clock, no locale."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import triage_view as view
from .environment import environment
from .escape import cell, code, inline, summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment

OPEN_OPTIONS = 3
"""Options whose reasons stand open; the others are folded."""


def build(document: Mapping[str, Any]) -> str:
    """The report of a document of schema ``hetero-test/triage/1``."""
    template = _environment().get_template("triage.md.j2")
    options = document["options"]
    others = [option for option in options if not option["incumbent"]]
    text = template.render(
        document=document,
        headline=f"{view.MARKS[document['verdict']['call']]} {view.headline(document)}",
        facts=_table(("field", "value"), view.facts(document)),
        options=_table(
            ("option", "verdict", "decode tok/s", "gain", "prefill tok/s", "memory"),
            [_row(option) for option in options],
        ),
        shown=others[:OPEN_OPTIONS],
        folded=others[OPEN_OPTIONS:],
        hazards=_table(
            ("hazard", "state", "evidence, and what to do"),
            [_hazard(hazard) for hazard in _loud_first(document["hazards"])],
        ),
        inputs=_table(
            ("input", "value", "origin", "source"),
            [(i["name"], i["value"], i["origin"], i["source"]) for i in document["inputs"]],
        ),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _row(option: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        option["title"],
        view.call(option),
        view.speed(option["decode_tok_s"]),
        view.speed(option["gain"], 2),
        view.speed(option["prefill_tok_s"], 0),
        option["fit"],
    )


def _hazard(hazard: Mapping[str, Any]) -> tuple[str, str, str]:
    advice = f"; {hazard['advice']}" if hazard["advice"] else ""
    return hazard["name"], hazard["state"], f"{hazard['evidence']}{advice}"


def _loud_first(hazards: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    order = ("present", "not checked", "absent")
    return sorted(hazards, key=lambda hazard: order.index(hazard["state"]))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of GitHub Flavored Markdown; every text goes through `cell`."""
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(':--' for _ in head)}|"]
    lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    return "\n".join(lines)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return environment(
        html=False,
        inline=inline,
        code=code,
        summary=summary,
        fill=view.fill,
        term=view.term,
        call=view.call,
    )
