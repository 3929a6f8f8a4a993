"""Frozen values to JSON texts and back; pydantic rebuilds them from their annotations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from harness.errors import StoreError
from harness.json_text import JsonError, parse_object

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    """Building one takes longer than using it a hundred times."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def to_data(value: object) -> dict[str, Any]:
    """A frozen value as plain data, keys in the order of its fields."""
    data: dict[str, Any] = _plain(value)
    return data


def _plain(value: Any) -> Any:
    """What JSON can hold; a number that is none is unknown, and unknown is null."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(held) for key, held in value.items()}
    return [_plain(held) for held in value]


def to_text(value: object, *, schema: str) -> str:
    """A frozen value as a JSON text that names its schema."""
    return dumps({"schema": schema, **to_data(value)})


def dumps(data: dict[str, Any]) -> str:
    """A JSON text that any program can read.

    An argument that was no UTF-8 holds surrogates, which only an escape can carry.
    """
    text = json.dumps(data, ensure_ascii=False) + "\n"
    return text if text.isascii() or _is_utf8(text) else json.dumps(data) + "\n"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def from_file(path: Path, kind: type[T], *, schema: str) -> T:
    """The value that a file holds.

    Raises:
        StoreError: the file cannot be read, is cut short, or is of another schema.
    """
    data = load(path)
    if data.pop("schema", None) != schema:
        raise StoreError(
            f"{path}: it does not hold {schema}",
            hint="it was written by another version of hetero-test, or by something else",
        )
    try:
        value: T = _adapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise StoreError(f"{path}: {where}: {first['msg']}") from error
    return value


def load(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        StoreError: it cannot be read, or is no JSON object.
    """
    try:
        return parse_object(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    except JsonError as error:
        raise StoreError(f"{path}: not what was written: {error}") from error
