r"""Foreign text made harmless for a terminal: no control sequence ever gets through.

What an engine, a driver or a file name brings may move the cursor, color the screen, rename
the window, reverse the reading direction or hide letters. :func:`visible` drops complete ANSI
sequences and writes every other character that cannot be seen as an escape (``\x1b``,
``\u202e``), so that nothing is hidden and nothing acts. JSON has escapes of its own:
:func:`json_text` loses nothing. Whatever leaves this program goes through one of the two.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ELLIPSIS = "…"

_ANSI = re.compile(
    r"""
      (?: \x1b\[ | \x9b ) [0-?]* [ -/]* [@-~]                       # CSI: colors, cursor
    | (?: \x1b[\]PX^_] | [\x9d\x90\x98\x9e\x9f] )                   # OSC, DCS, SOS, PM, APC
      [^\x07\x1b\x9c\n]* (?: \x07 | \x1b\\ | \x9c )
    | \x1b [ -/]+ [0-~]                                             # character sets
    | \x1b [0-OQ-WYZ\\`-~]                                          # single shifts, reset
    """,
    re.VERBOSE,
)
"""ECMA-48 control sequences that are complete; a torn one is shown, not swallowed."""

_UNSEEN = frozenset(
    [
        *map(ord, "\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5"),  # blank letters
        *range(0xFE00, 0xFE0F),  # variation selectors; the one for emoji is looked at below
        *range(0xE0000, 0xE1000),  # tags and more selectors
    ]
)
_EMOJI = "\ufe0f"
_MOST_MARKS = 3
"""Combining marks kept on one letter; a pile of them paints over the lines around it."""


class _Visible(dict[int, str]):
    """A table for :meth:`str.translate` that fills itself.

    Attributes:
        marks: the combining marks and selectors that it has met, all others need no thinning.
    """

    def __init__(self) -> None:
        super().__init__()
        self.marks: set[str] = set()

    def __missing__(self, code: int) -> str:
        self[code] = shown = _shown(code)
        if shown == _EMOJI or unicodedata.category(chr(code)) in {"Mn", "Me"}:
            self.marks.add(chr(code))
        return shown


def _shown(code: int) -> str:
    char = chr(code)
    nonchar = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    unseen = unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} or code in _UNSEEN
    if char == "\t" or not (unseen or nonchar):
        return " " if char == "\t" else char
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that was no UTF-8, kept by surrogateescape.
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_TABLE = _Visible()


def visible(text: str) -> str:
    r"""``text`` with ANSI sequences dropped and all unseen characters shown as escapes.

    The result is one line: a line feed is shown as ``\x0a`` too, a tab becomes a blank. It
    can be encoded as UTF-8 and stands in XML 1.0, whatever came in.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = _ANSI.sub("", text).translate(_TABLE)
    return shown if _TABLE.marks.isdisjoint(shown) else _thinned(shown)


def visible_lines(text: str) -> str:
    """The same for a text of several lines, whose line feeds stay."""
    return "\n".join(map(visible, text.split("\n")))


_BYTES: Final = re.compile("[^\udc80-\udcff]+")


def visible_path(path: Path) -> str:
    """A path as it can be used again: visible, and bytes that are no text as those bytes."""
    return _BYTES.sub(lambda found: visible(found.group()), str(path))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """A JSON text, in which what cannot be seen is escaped, and a line feed at its end.

    A reader of JSON gets every character back; halves of surrogate pairs, which stand for bytes
    of arguments that were no UTF-8, are escaped as well.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _NOT_PLAIN.sub(lambda found: found.group().translate(_JSON), text) + "\n"


def toml_string(text: str) -> str:
    """A TOML basic string, likewise; lone surrogates, which TOML lacks, become question marks."""
    sound = text.encode("utf-8", errors="replace").decode("utf-8")
    # The short escapes of JSON are TOML's too.
    shown = json.dumps(sound, ensure_ascii=False)
    return _NOT_PLAIN.sub(lambda found: found.group().translate(_TOML), shown)


_NOT_PLAIN: Final = re.compile(r"[^\n -~]+")


class _Escaped(dict[int, str]):
    """A table for :meth:`str.translate` that fills itself with escapes of what is unseen."""

    def __init__(self, escape: Callable[[str], str]) -> None:
        super().__init__()
        self._escape = escape

    def __missing__(self, code: int) -> str:
        char = chr(code)
        shown = char if _shown(code) == char else self._escape(char)
        self[code] = shown
        return shown


_JSON: Final = _Escaped(lambda char: json.dumps(char)[1:-1])
_TOML: Final = _Escaped(
    lambda char: f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
)


def _thinned(text: str) -> str:
    """``text`` with piles of combining marks cut down, and emoji selectors only on symbols."""
    kept: list[str] = []
    before, marks = "", 0
    for char in text:
        if char == _EMOJI:
            kept.append(char if before == "So" else f"\\u{ord(char):04x}")
            before = ""
            continue
        before = unicodedata.category(char)
        marks = marks + 1 if before in {"Mn", "Me"} else 0
        if marks <= _MOST_MARKS:
            kept.append(char)
    return "".join(kept)


def clip(text: str, limit: int) -> str:
    """``text``, or its beginning and an ellipsis, in at most ``limit`` characters."""
    if len(text) <= limit:
        return text
    return text[: max(0, limit - 1)].rstrip() + ELLIPSIS if limit > 0 else ""


def printable(text: str, limit: int) -> str:
    """One line for the terminal: white space folded, nothing unseen, at most ``limit`` long."""
    return clip(visible(" ".join(text.split())), limit)
