"""Runs made by hand: facts by their names, each put into the part of the run that holds it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hetero_test.values.outcome import Outcome
from hetero_test.values.reading import Reading
from hetero_test.values.run import Cell, Purpose, Run, RunState, StateFinding

PARTS: dict[str, type[Cell | Outcome | Reading | StateFinding]] = {
    "cell": Cell,
    "outcome": Outcome,
    "reading": Reading,
    "finding": StateFinding,
}
PART_OF = {each.name: name for name, kind in PARTS.items() for each in fields(kind)}
"""Fact to the part that holds it; no two parts have a fact of one name."""
assert len(PART_OF) == sum(len(fields(kind)) for kind in PARTS.values())

PLAIN = Run(
    cell=Cell(
        variant="0", of="0", probe="default", repeat=1, order=0, purpose=Purpose.ROUND, flags=()
    ),
    outcome=Outcome(
        argv=(),
        env_delta={},
        cwd=None,
        pid=None,
        pid_started=None,
        started="2026-11-29T12:00:00Z",
        elapsed_s=1.0,
        exit_code=0,
        signal=None,
        stopped=None,
        start_error=None,
        major_faults=None,
        blocks_read=None,
        max_rss_bytes=None,
    ),
    reading=Reading(),
    finding=StateFinding(state=RunState.OK),
)
"""An OK run of which nothing is known."""


def altered(run: Run, **facts: Any) -> Run:
    """The run with other facts, whichever part holds them."""
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for name, value in facts.items():
        if (part := PART_OF.get(name)) is None:
            own[name] = value
        else:
            inner.setdefault(part, {})[name] = value
    parts = {part: replace(getattr(run, part), **values) for part, values in inner.items()}
    return replace(run, **parts, **own)


def made(**facts: Any) -> Run:
    """A run with these facts, and nothing known beside them."""
    return altered(PLAIN, **facts)
