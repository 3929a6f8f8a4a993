"""The rig file: read and checked, and written so that it reads back equal."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from hetero_test.formats.examples import HINTS, Example
from hetero_test.rig.facts import RigFacts
from hetero_test.rig.facts_toml import FactsFile, document
from hetero_test.rig.sourced import Sourced

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hetero_test.formats.toml_lines import Located

HEADER = """\
# A rig for `hetero-test triage --rig FILE`. A fact is { value, origin, source }, and low and
# high where an 80 % interval is known; a bare value is good as well. A fact that was not found
# is not here: add it if you know it, for nothing is guessed.
"""

_FILE = FactsFile(RigFacts, "rig file", hint=HINTS[Example.RIG])


def load_rig(path: Path) -> RigFacts:
    """Read a rig file.

    A fact is an inline table ``{ value, origin, source, low, high }`` or a bare value. A bare
    value counts as measured where its key says so, else as specified; its source is
    ``FILE:LINE``.

    Raises:
        MatrixError: the file is not TOML of this form; each complaint names file and line.
        UsageError: the file cannot be read.
    """
    located = _FILE.open(path)
    rig = _FILE.validate(located, located.data)
    if complaints := tuple(_cross_checks(rig, located)):
        raise _FILE.complain(complaints)
    return rig


def dump_rig(rig: RigFacts) -> str:
    """The rig as TOML text that `load_rig` reads back to an equal value."""
    return HEADER + "\n" + document(rig)


def _cross_checks(rig: RigFacts, located: Located) -> Iterator[str]:
    seen: set[str] = set()
    for index, device in enumerate(rig.devices):
        if device.id in seen:
            yield located.complaint(("devices", index, "id"), f"a second device {device.id!r}")
        seen.add(device.id)
    for index, pair in enumerate(rig.links):
        for end, name in (("a", pair.a), ("b", pair.b)):
            if name not in seen:
                yield located.complaint(("links", index, end), f"no device {name!r} in this file")
    for where, fact in _facts(rig, ()):
        lowest = fact.value if fact.low is None else fact.low
        if isinstance(lowest, str | bool):
            continue
        if lowest < 0:
            yield located.complaint(where, f"no quantity of a rig is negative (got {lowest!r})")
        elif lowest == 0 and str(where[-1]).endswith("gb_s"):
            yield located.complaint(where, "a speed of 0 is none; leave it out where unknown")


def _facts(value: Any, where: tuple[str | int, ...]) -> Iterator[tuple[Any, Sourced[Any]]]:
    """Every fact of the rig, with its path in the file."""
    if isinstance(value, Sourced):
        yield where, value
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _facts(item, (*where, index))
    elif is_dataclass(value):
        for field in fields(value):
            yield from _facts(getattr(value, field.name), (*where, field.name))
