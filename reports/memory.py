"""What an engine tells beyond ids and times: memory by device, graph splits, log-probabilities."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .escape import UNKNOWN
from .tables import frame

if TYPE_CHECKING:
    import pandas as pd

    from harness.model import Run

    from .budget import Cuts, Detail
    from .view import View

COLUMNS = (
    "variant",
    "weights / KV / compute by device",
    "graph splits",
    "accepted / offered",
    "against its reference",
)
USES = ("model", "KV", "compute")
_SIZE = re.compile(r"(draft )?(model|KV|compute) (.+) MiB")
_GIB = 1024


def memory(view: View, detail: Detail, cuts: Cuts) -> pd.DataFrame | None:
    """A row for each variant of which a log told such things; None where none did."""
    told = [
        (name, run)
        for name, runs in view.ran.items()
        if (run := next((r for r in runs if _tells(r)), None)) is not None
    ]
    if not told:
        return None
    shown = cuts.take(told, detail.rows, "rows on memory and graphs")
    return frame([_row(view, name, run) for name, run in shown], COLUMNS)


def _tells(run: Run) -> bool:
    return run.usable and ("graph_splits" in run.context or any(map(_SIZE.fullmatch, run.context)))


def _row(view: View, name: str, run: Run) -> tuple[str, ...]:
    splits = run.context.get("graph_splits")
    drafts = run.speculation
    counted = drafts is not None and None not in (drafts.accepted, drafts.offered)
    return (
        view.say(name, 40),
        view.say(_sizes(run) or UNKNOWN, 240),
        UNKNOWN if splits is None else view.say(str(splits), 20),
        f"{drafts.accepted} / {drafts.offered}" if drafts is not None and counted else UNKNOWN,
        _explained(view, name),
    )


def _sizes(run: Run) -> str:
    """``RPC0 2.63 / 1.00 / 3.26 MiB``, the draft model's apart."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for key, value in run.context.items():
        match = _SIZE.fullmatch(key)
        if match is not None and isinstance(value, int | float):
            draft, use, device = match.groups()
            found.setdefault((draft or "", device), {})[use] = value
    return "; ".join(f"{draft}{device} {_sum(sizes)}" for (draft, device), sizes in found.items())


def _sum(sizes: dict[str, float]) -> str:
    unit, name = (_GIB, "GiB") if max(sizes.values()) >= _GIB else (1, "MiB")
    return " / ".join(f"{sizes.get(use, 0) / unit:.2f}" for use in USES) + f" {name}"


def _explained(view: View, name: str) -> str:
    """What log-probabilities tell of this variant; each sentence once."""
    texts = dict.fromkeys(
        verdict.explanation.text
        for verdict in view.judgment.verdicts
        if verdict.variant == name
        and verdict.against is not None
        and verdict.explanation is not None
    )
    return "; ".join(view.say(text, 160) for text in texts) or UNKNOWN
