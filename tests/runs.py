"""Runs made by hand: facts by their names, each put into the part of the run that holds it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hetero_test.values.outcome import Outcome
from hetero_test.values.reading import Factor, Reading, Scalar
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


MOVERS = {
    "pcie_share": "the share of experts read over the link",
    "swaps": "the adaptive expert swaps",
}
CAUSES = {"repacked": "the CPU repacks these weights"}


def beside(run: Run, **values: Scalar) -> Run:
    """The run with something else known beside its residency, by the name that a document shows.

    Places, movers and causes go where an adapter would put them; the rest is context.
    """
    reading = run.reading
    for name, value in values.items():
        part, _, fact = name.partition("_")
        if part in {"main", "draft"} and fact in {"device", "kind"}:
            place: dict[str, Any] = {part: replace(getattr(reading, part), **{fact: value})}
            reading = replace(reading, **place)
        elif name in MOVERS:
            reading = replace(reading, movers=_with(reading.movers, name, value, MOVERS))
        elif name in CAUSES:
            reading = replace(reading, causes=_with(reading.causes, name, value, CAUSES))
        else:
            reading = replace(reading, context={**reading.context, name: value})
    return replace(run, reading=reading)


def _with(
    factors: tuple[Factor, ...], name: str, value: Scalar, words: dict[str, str]
) -> tuple[Factor, ...]:
    new = Factor(name=name, value=value, words=words[name])
    found = {**{factor.name: factor for factor in factors}, name: new}
    return tuple(found[each] for each in words if each in found)
