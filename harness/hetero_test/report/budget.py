"""Fits a report into what an issue takes, whatever went in, and says what was left out.

60,000 characters and 60,000 bytes fit every published reading of GitHub's limit. The ladder is
fixed: ids of continuations go first, then rows of single runs, log tails, engine lines,
commands, and last the variants that passed. Each step only ever shows less than the one before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIMIT = 60_000
"""Characters, and bytes in UTF-8."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """How much of each part is shown.

    Attributes:
        ids: token ids of each side of a split.
        splits: splits shown with their continuations.
        run_rows: rows of the table of single runs.
        tail_lines: lines of each log tail.
        tails: log tails.
        line_sets: distinct sets of role, memory and peer lines.
        lines: lines of each such set.
        commands: command lines, each of ten times ``quote`` characters.
        rows: rows of each table that is always visible.
        notes: entries of each list.
        quote: characters of one quoted text.
    """

    ids: int = 32
    splits: int = 40
    run_rows: int = 400
    tail_lines: int = 24
    tails: int = 24
    line_sets: int = 60
    lines: int = 24
    commands: int = 80
    rows: int = 120
    notes: int = 80
    quote: int = 400


def _ladder() -> tuple[Detail, ...]:
    steps = [Detail()]
    for change in (
        {"ids": 8, "splits": 12},
        {"run_rows": 120},
        {"run_rows": 40, "ids": 4, "splits": 6},
        {"tail_lines": 8, "tails": 8},
        {"lines": 10, "line_sets": 20, "commands": 24},
        {"run_rows": 0, "tails": 2, "quote": 200},
        {"rows": 48, "notes": 30},
        {"lines": 4, "line_sets": 8, "commands": 8, "splits": 3},
        {"rows": 24, "notes": 12, "tails": 0, "quote": 120},
        {"rows": 12, "notes": 6, "line_sets": 0, "commands": 2, "splits": 1, "quote": 80},
    ):
        steps.append(replace(steps[-1], **change))
    return tuple(steps)


LADDER = _ladder()


@dataclass(frozen=True, slots=True)
class Cuts:
    """Takes parts of lists and remembers what was left behind."""

    notes: list[str] = field(default_factory=list)

    def take(
        self, items: Sequence[Item], limit: int, what: str, where: str = "run.json"
    ) -> tuple[Item, ...]:
        """The first ``limit`` items; the rest is noted as to be found in ``where``."""
        if len(items) > limit:
            self.notes.append(f"{len(items) - limit} of {len(items)} {what} ({where})")
        return tuple(items[:limit])


def fit(render: Callable[[Detail], str], limit: int = LIMIT) -> str:
    """The richest rendering that fits, cut off as a last resort."""
    text = ""
    for detail in LADDER:
        text = render(detail)
        if fits(text, limit):
            return text
    return cut_off(text, limit)


def fits(text: str, limit: int = LIMIT) -> bool:
    """Whether a text keeps to both limits."""
    return len(text) <= limit and (len(text) * 4 <= limit or len(text.encode()) <= limit)


_FENCE = re.compile(r"^(`{3,})")
ENDED = "**Cut off here to fit; the rest is in `run.json`.**"
UNFOLD = "\n</details>"


def cut_off(text: str, limit: int = LIMIT) -> str:
    """Whole lines as far as they fit, with the open fence and folds closed."""
    room = limit - len(ENDED) - 3
    kept: list[str] = []
    fence, folds = "", 0
    for line in text.splitlines():
        room -= len(line.encode()) + 1
        mark = _FENCE.match(line)
        open_fence, open_folds = fence, folds
        if mark is not None and not fence:
            fence = mark.group(1)
        elif fence and line == fence:
            fence = ""
        elif not fence:
            folds = max(0, folds + line.startswith("<details>") - line.startswith("</details>"))
        if room < len(fence) + 1 + folds * (len(UNFOLD) + 1):
            fence, folds = open_fence, open_folds
            break
        kept.append(line)
    closing = [fence] if fence else []
    return "\n".join([*kept, *closing, *[UNFOLD] * folds, "", ENDED, ""])
