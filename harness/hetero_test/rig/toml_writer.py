"""Frozen values to TOML text that reads back to equal values.

A value is a dataclass; its fields become keys. A fact and other small values become inline
tables on one line, so that a fact stands beside its source; the rest become tables. What
equals its default is left out, so an unknown fact leaves no key. Format: TOML 1.0,
https://toml.io/en/v1.0.0.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from hetero_test.rig.sourced import Sourced
from hetero_test.triage.model.facts import RoleBytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INLINE = (Sourced, RoleBytes)
"""Values that are written as inline tables."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


def document(value: object) -> str:
    """The TOML text of a dataclass value (or a mapping), without a comment."""
    return "\n".join(_table(_items(value), ())) + "\n"


def text(value: str) -> str:
    """A TOML basic string. Lone surrogates, which TOML cannot hold, become question marks."""
    sound = value.encode("utf-8", errors="replace").decode("utf-8")
    # JSON's escapes are TOML's, except that TOML wants DEL escaped as well.
    return json.dumps(sound, ensure_ascii=False).replace("\x7f", "\\u007f")


def _items(value: object) -> dict[str, Any]:
    """Keys and values that are worth writing."""
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item is not None}
    assert is_dataclass(value)
    found = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if item is None or (field.default is not MISSING and item == field.default):
            continue
        found[field.name] = item
    return found


def _inline(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return text(value)
        case int():
            return str(value)
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{value} is no fact")
            return repr(value)
        case tuple() | list():
            return "[" + ", ".join(_inline(item) for item in value) + "]"
        case _:
            pairs = (f"{_key(key)} = {_inline(item)}" for key, item in _items(value).items())
            return "{ " + ", ".join(pairs) + " }"


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else text(name)


def _table(items: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Lines of a table: its own keys first, since TOML gives the rest to the sub-tables."""
    later = {}
    for key, item in items.items():
        if _is_table(item) or (isinstance(item, tuple | list) and item and _is_table(item[0])):
            later[key] = item
        elif isinstance(item, tuple | list) and len(item) > 1:
            yield f"{_key(key)} = ["
            yield from (f"    {_inline(entry)}," for entry in item)
            yield "]"
        else:
            yield f"{_key(key)} = {_inline(item)}"
    for key, item in later.items():
        here = (*path, _key(key))
        if _is_table(item):
            yield from ("", f"[{'.'.join(here)}]")
            yield from _table(_items(item), here)
            continue
        for entry in item:
            yield from ("", f"[[{'.'.join(here)}]]")
            yield from _table(_items(entry), here)


def _is_table(item: object) -> bool:
    return isinstance(item, dict) or (is_dataclass(item) and not isinstance(item, INLINE))
