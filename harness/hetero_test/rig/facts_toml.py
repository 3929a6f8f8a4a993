"""Frozen values from TOML, with file and line in every complaint, and back to TOML text.

The frozen dataclasses are the schema: unknown keys, wrong types and values that contradict each
other are all reported at once. Only this file uses pydantic for them.

Written, a value is a dataclass; its fields become keys. A fact becomes an inline table on one
line, so that its source stands beside it; other dataclasses become tables. A field that equals
its default is left out, so an unknown fact leaves no key. Format: TOML 1.0,
https://toml.io/en/v1.0.0.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError, with_config

from hetero_test.errors import MatrixError, UsageError
from hetero_test.formats.toml_lines import Located, load
from hetero_test.publish.printable import toml_string
from hetero_test.rig.sourced import Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pydantic_core import ErrorDetails

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")

V = TypeVar("V")
KeyPath = tuple[str | int, ...]

MAX_FILE_BYTES = 2**20
"""No facts file is larger; a larger file was named by mistake."""


class FactsFile(Generic[V]):
    """The schema of one kind of file, and how it is read.

    Args:
        kind: the class of the value that the whole file is.
        noun: what the file is called in complaints (``rig file``).
        hint: how to get such a file, for the end of every complaint; None: no hint.
    """

    def __init__(self, kind: type[V], noun: str, *, hint: str | None = None) -> None:
        self._kind = kind
        self._noun = noun
        self._hint = hint
        # The configuration of the outermost class holds for all it contains.
        with_config({"extra": "forbid", "strict": True})(kind)
        self._adapter: TypeAdapter[V] = TypeAdapter(kind)

    def open(self, path: Path) -> Located:
        """The tables of the file, with their lines.

        Raises:
            UsageError: the file cannot be read.
            MatrixError: it is not TOML.
        """
        try:
            if not path.is_file():  # a pipe would be waited for, a folder says EISDIR
                reason = "it is no regular file" if path.exists() else "there is no such file"
                raise UsageError(f"cannot read the {self._noun} {path}: {reason}", hint=self._hint)
            if path.stat().st_size > MAX_FILE_BYTES:
                raise UsageError(f"{path} is larger than any {self._noun}", hint=self._hint)
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(f"cannot read the {self._noun} {path}: {why}") from error
        try:
            return load(path, what=self._noun)
        except MatrixError as error:
            raise self.complain(error.complaints) from error

    def complain(self, complaints: tuple[str, ...]) -> MatrixError:
        """The error for what is wrong in a file, with the hint."""
        return MatrixError(complaints, hint=self._hint)

    def validate(
        self,
        located: Located,
        tables: Mapping[str, Any],
        written_as: Mapping[KeyPath, KeyPath] | None = None,
    ) -> V:
        """The value that the tables describe.

        Args:
            located: the file, to find lines in.
            tables: those of the file, as they are or rewritten.
            written_as: for rewritten tables, where an item of `tables` stands in the file.

        Raises:
            MatrixError: the tables contradict the schema or each other.
        """
        moved = written_as or {}

        def in_file(where: KeyPath) -> KeyPath:
            return (*moved.get(where[:2], where[:2]), *where[2:])

        lifted = _lift(
            self._kind, tables, (), lambda where: f"{located.name}:{located.line(in_file(where))}"
        )
        try:
            return self._adapter.validate_json(json.dumps(lifted, default=str), strict=True)
        except ValidationError as error:
            found = [
                (in_file(_tidy(item["loc"])), _told(self._kind, item))
                for item in error.errors(include_url=False)
            ]
            found.sort(key=lambda pair: located.line(pair[0]))
            texts = (located.complaint(where, what) for where, what in found)
            raise self.complain(tuple(dict.fromkeys(texts))) from error

    def read(self, path: Path) -> V:
        """Open and validate.

        Raises:
            UsageError: the file cannot be read.
            MatrixError: it is not TOML, or the tables contradict the schema or each other.
        """
        located = self.open(path)
        return self.validate(located, located.data)


def _lift(kind: Any, raw: Any, where: KeyPath, place: Any) -> Any:
    """Give every bare fact its origin and its source; the type says where facts stand."""
    kind = _known(kind)
    if kind is Sourced or get_origin(kind) is Sourced:
        if isinstance(raw, dict):
            return raw
        measured = "measured" in str(where[-1])
        return {
            "value": raw,
            "origin": (Origin.MEASURED if measured else Origin.SPECIFIED).value,
            "source": place(where),
        }
    if get_origin(kind) is tuple and isinstance(raw, list):
        inner = get_args(kind)[0]
        return [_lift(inner, item, (*where, i), place) for i, item in enumerate(raw)]
    if is_dataclass(kind) and isinstance(raw, dict):
        hints = get_type_hints(kind)
        return {
            key: _lift(hints[key], item, (*where, key), place) if key in hints else item
            for key, item in raw.items()
        }
    return raw


def _known(kind: Any) -> Any:
    """The type without its ``| None``."""
    if get_origin(kind) in (UnionType, Union):
        return next(option for option in get_args(kind) if option is not type(None))
    return kind


def _tidy(where: KeyPath) -> KeyPath:
    """The path of a complaint, without what pydantic adds for its own sake."""
    return tuple(part for part in where if isinstance(part, int) or part.isidentifier())


def _told(kind: Any, item: ErrorDetails) -> str:
    """What is wrong, with the nearest key where one is unknown."""
    match item["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            known = _keys_at(kind, _tidy(item["loc"])[:-1])
            near = difflib.get_close_matches(str(item["loc"][-1]), known, n=1)
            return f'unknown key, did you mean "{near[0]}"?' if near else "unknown key"
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return "missing"
        case _:
            message = item["msg"].removeprefix("Value error, ")
            message = message[:1].lower() + message[1:]
            given = item["input"]
            return f"{message} (got {given!r})" if isinstance(given, str | int | float) else message


def _keys_at(kind: Any, where: KeyPath) -> list[str]:
    """Field names of the class that stands at this path of the schema."""
    for part in where:
        kind = _known(kind)
        if isinstance(part, int):
            kind = next(iter(get_args(kind)), None)
        elif is_dataclass(kind):
            kind = get_type_hints(kind).get(part)
    kind = _known(kind)
    plain = get_origin(kind) or kind
    return [field.name for field in fields(plain)] if is_dataclass(plain) else []


def document(value: object, *, inline: tuple[type, ...] = ()) -> str:
    """The TOML text of a dataclass value (or a mapping), without a comment.

    Args:
        value: what to write.
        inline: classes that are written as inline tables, beside `Sourced`.

    Raises:
        ValueError: a number is not finite.
    """
    return "\n".join(_Writer((Sourced, *inline)).table(_items(value), ())) + "\n"


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
            return toml_string(value)
        case int():
            return str(value)
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{value} is not a fact")
            return repr(value)
        case tuple() | list():
            return "[" + ", ".join(_inline(item) for item in value) + "]"
        case _:
            pairs = (f"{_key(key)} = {_inline(item)}" for key, item in _items(value).items())
            return "{ " + ", ".join(pairs) + " }"


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else toml_string(name)


class _Writer:
    """Writes lines of tables; values of the classes in `inline` stand on one line."""

    def __init__(self, inline: tuple[type, ...]) -> None:
        self._inline = inline

    def table(self, items: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
        """A table: its own keys first, since TOML gives what follows to the sub-tables."""
        later = {}
        for key, item in items.items():
            if self._is_table(item) or (
                isinstance(item, tuple | list) and item and self._is_table(item[0])
            ):
                later[key] = item
            elif isinstance(item, tuple | list) and len(item) > 1:
                yield f"{_key(key)} = ["
                yield from (f"    {_inline(entry)}," for entry in item)
                yield "]"
            else:
                yield f"{_key(key)} = {_inline(item)}"
        for key, item in later.items():
            here = (*path, _key(key))
            if self._is_table(item):
                yield from ("", f"[{'.'.join(here)}]")
                yield from self.table(_items(item), here)
                continue
            for entry in item:
                yield from ("", f"[[{'.'.join(here)}]]")
                yield from self.table(_items(entry), here)

    def _is_table(self, item: object) -> bool:
        if isinstance(item, self._inline):
            return False
        return isinstance(item, dict) or is_dataclass(item)
