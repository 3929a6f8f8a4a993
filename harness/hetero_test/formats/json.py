r"""JSON that an engine or a user wrote: read so that whatever is in it is one kind of error.

Beside bad syntax, ``json.loads`` meets with four things that surprise whoever calls it:

- nesting so deep that the stack ends there, or later where the value is printed or copied;
- whole numbers of thousands of digits, which Python refuses to convert;
- ``NaN``, ``Infinity`` and ``1e999``: JSON (RFC 8259) has no such numbers, yet they are read;
- bytes that are not text.

Each is a :class:`JsonError` here. Halves of surrogate pairs (``"\ud800"``) are not an error: files
of ours hold them for arguments that were not UTF-8. What shows or writes a text must bear them.
"""

from __future__ import annotations

import json
import re
import sys
from math import isfinite
from typing import Any, Final

MOST_LEVELS: Final = 100
"""Lists and objects inside each other; what is read here has a dozen."""

_STRING: Final = r'"(?:[^"\\]|\\.)*+"'
_BRACKET: Final = re.compile(rf"{_STRING}|([\[{{])|([\]}}])", re.DOTALL)
_CONSTANT: Final = re.compile(rf"{_STRING}|(-?(?:NaN|Infinity))", re.DOTALL)
_WHOLE: Final = re.compile(rf"{_STRING}|-?([0-9]+)", re.DOTALL)
_FRACTION: Final = re.compile(
    rf"{_STRING}|(-?[0-9]++(?:\.[0-9]++(?:[eE][-+]?[0-9]++)?|[eE][-+]?[0-9]++))", re.DOTALL
)


class JsonError(ValueError):
    """A text that is not the JSON that was wanted.

    Args:
        what: what is wrong.
        place: where, such as ``line 3, column 5`` or ``options[2].title``.
    """

    def __init__(self, what: str, *, place: str) -> None:
        super().__init__(f"{place}: {what}")
        self.what = what
        self.place = place


def parse(content: str | bytes, *, lax_numbers: bool = False, more_follows: bool = False) -> Any:
    """The value that a JSON text stands for.

    Args:
        content: the text, or its bytes in UTF-8, UTF-16 or UTF-32.
        lax_numbers: ``NaN`` and the like are floats, as some engines print them; without it they
            are errors, since whatever is computed from them is not a number either.
        more_follows: whatever stands behind the value is passed over, as where a tool warns there.

    Raises:
        JsonError: it is not JSON, or beyond what can be read, with the place in it.
    """
    text = content if isinstance(content, str) else _decoded(content)
    decoder = _LAX if lax_numbers else _STRICT
    try:
        value = decoder.raw_decode(text.lstrip())[0] if more_follows else decoder.decode(text)
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON: {error.msg}", place=_place(text, error.pos)) from error
    except _NoNumberError as error:
        what = f"{str(error)[:20]} is no number that JSON has"
        raise JsonError(what, place=_place(text, _place_of_no_number(text))) from error
    except RecursionError as error:
        raise _too_deep(text) from error
    except ValueError as error:
        # All that is left: the limit on the digits of a whole number.
        what = f"a whole number of more than {sys.get_int_max_str_digits()} digits"
        raise JsonError(what, place=_place(text, _place_of_digits(text))) from error
    if _is_deep(value):
        raise _too_deep(text)
    return value


def parse_object(content: str | bytes, *, lax_numbers: bool = False) -> dict[str, Any]:
    """The same of a text that has to be a JSON object.

    Raises:
        JsonError: as :func:`parse`, or it is another value.
    """
    value = parse(content, lax_numbers=lax_numbers)
    if not isinstance(value, dict):
        raise JsonError("it is no JSON object", place="line 1, column 1")
    return value


class _NoNumberError(Exception):
    """Thrown through the parser, which tells no place."""


def _refused(word: str) -> float:
    raise _NoNumberError(word)


def _finite(word: str) -> float:
    value = float(word)
    if not isfinite(value):
        raise _NoNumberError(word)
    return value


def _decoded(content: bytes) -> str:
    try:
        return content.decode(json.detect_encoding(content), "surrogatepass")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise JsonError("these bytes are no text", place=f"line {line}") from error


_HOLDERS: Final = frozenset((dict, list))
_LAX: Final = json.JSONDecoder()
_STRICT: Final = json.JSONDecoder(parse_constant=_refused, parse_float=_finite)


def _is_deep(value: Any) -> bool:
    """Level by level, so that no depth of it can end the stack."""
    level = [value] if type(value) in _HOLDERS else []
    for _ in range(MOST_LEVELS):
        if not level:
            return False
        level = [
            child
            for held in level
            for child in (held.values() if type(held) is dict else held)
            if type(child) in _HOLDERS
        ]
    return bool(level)


def _too_deep(text: str) -> JsonError:
    depth, position = 0, 0
    for found in _BRACKET.finditer(text):
        depth += (found[1] is not None) - (found[2] is not None)
        if depth > MOST_LEVELS:
            position = found.start()
            break
    what = f"lists and objects are nested more than {MOST_LEVELS} levels deep"
    return JsonError(what, place=_place(text, position))


def _place_of_no_number(text: str) -> int:
    constant = next((m.start(1) for m in _CONSTANT.finditer(text) if m[1]), len(text))
    fractions = (m for m in _FRACTION.finditer(text) if m[1])
    too_large = next((m.start(1) for m in fractions if not isfinite(float(m[1]))), len(text))
    return min(constant, too_large)


def _place_of_digits(text: str) -> int:
    most = sys.get_int_max_str_digits()
    numbers = (m for m in _WHOLE.finditer(text) if m[1])
    return next((m.start(1) for m in numbers if len(m[1]) > most), 0)


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return f"line {line}, column {column}"
