"""Where in a TOML text each value stands, so that complaints can say ``file:line``.

``tomllib`` gives positions for syntax errors only. This scanner walks a text that
``tomllib`` has already accepted, so it needs no error handling of its own: it follows
strings, comments and brackets, and notes the line of every table header, key and array item.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

from hetero_test.errors import MatrixError
from hetero_test.formats import files

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel, ValidationError
    from pydantic.fields import FieldInfo

Path_ = tuple[str | int, ...]

_MOST_LEVELS = 100
_TOO_LARGE = "a whole number has 64 bits in TOML"
_TOKEN = re.compile(
    r'(?P<string>"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
    r"|(?P<comment>#[^\n]*)|(?P<newline>\n)|(?P<open>\[\[|[\[{])|(?P<close>\]\]|[\]}])"
    r"|(?P<punct>[=,.])|(?P<blank>[ \t\r]+)|(?P<bare>[^\s\"'#\[\]{}=,.]+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Located:
    """A parsed TOML file with the line of each of its values.

    Attributes:
        data: what ``tomllib`` made of it.
        lines: line (from 1) of each path, such as ``("variant", 1, "flags", 0)``.
        name: the file's name as complaints show it.
    """

    data: Mapping[str, Any]
    lines: Mapping[Path_, int]
    name: str

    def line(self, path: Path_) -> int:
        """The line of a path, or of the nearest thing that encloses it."""
        for end in range(len(path), 0, -1):
            if (line := self.lines.get(path[:end])) is not None:
                return line
        return 1

    def complaint(self, path: Path_, text: str) -> str:
        """``file:line: key: text`` for one value."""
        return f"{self.name}:{self.line(path)}: {dotted(path)}: {text}"


def load(path: Path, *, what: str) -> Located:
    """Read and parse a TOML file.

    Args:
        path: the file.
        what: what kind of file it is, for messages: ``matrix file``.

    Raises:
        MatrixError: it cannot be read or is not TOML; with the line where one is known.
    """
    try:
        text = files.read_bytes(path, most=files.WRITTEN_BY_HAND).decode("utf-8")
    except OSError as error:
        raise MatrixError((f"{path}: cannot read this {what}: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise MatrixError((f"{path}:{line}: this {what} is not UTF-8 text",)) from error
    return parse(text, name=str(path))


def parse(text: str, *, name: str) -> Located:
    """Parse a TOML text; ``name`` is the file name for complaints.

    Raises:
        MatrixError: the text is not TOML.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(found.group(1)) if found else text.count("\n") + 1
        message = re.sub(r" \(at (line|end).*\)$", "", str(error))
        raise MatrixError((f"{name}:{line}: not TOML: {message}",)) from error
    except RecursionError as error:
        raise MatrixError((f"{name}:{_deep_line(text)}: not TOML: nested too deeply",)) from error
    except ValueError as error:  # the limit on the digits that are converted
        found = re.search(rf"[0-9_]{{{sys.get_int_max_str_digits()},}}", text)
        line = text.count("\n", 0, found.start() if found else None) + 1
        raise MatrixError((f"{name}:{line}: not TOML: {_TOO_LARGE}",)) from error
    located = Located(data, _Scanner(text.replace("\r\n", "\n")).scan(), name)
    if too_large := tuple(_beyond_64_bits(data, ())):
        raise MatrixError(tuple(located.complaint(path, _TOO_LARGE) for path in too_large))
    return located


def _deep_line(text: str) -> int:
    """The line on which a text is nested more deeply than anything that is read here."""
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += len(token["open"] or "") - len(token["close"] or "")
        if depth > _MOST_LEVELS:
            return text.count("\n", 0, token.start()) + 1
    return 1


def _beyond_64_bits(value: object, path: Path_) -> Iterator[Path_]:
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, held in pairs:
            yield from _beyond_64_bits(held, (*path, key))
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield path


def dotted(path: Path_) -> str:
    """A path as people write it: ``variant[1].flags``."""
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else (f".{part}" if out else part)
    return out or "file"


def complaints(located: Located, error: ValidationError, model: type[BaseModel]) -> tuple[str, ...]:
    """Every error of validating ``model`` as ``file:line: key: what is wrong``."""
    found = []
    for item in error.errors():
        path = tuple(item["loc"])
        if item["type"] == "extra_forbidden":
            text = "unknown key" + suggestion(str(path[-1]), _keys(model, path[:-1]))
        elif item["type"] == "missing":
            text = "missing"
        else:
            text = item["msg"].removeprefix("Value error, ")
            text = text[:1].lower() + text[1:]
            if isinstance(item.get("input"), str | int | float | bool):
                text += f" (got {item['input']!r})"
        found.append((located.line(path), located.complaint(path, text)))
    return tuple(dict.fromkeys(text for _, text in sorted(found, key=lambda pair: pair[0])))


def suggestion(word: str, known: Iterable[str]) -> str:
    """``, did you mean "…"?`` for a misspelt word, or nothing."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f', did you mean "{close[0]}"?' if close else ""


def _keys(model: type[BaseModel], path: Path_) -> tuple[str, ...]:
    """The keys that the part of ``model`` at ``path`` knows."""
    found: Any = model
    for part in path:
        if isinstance(part, str):
            field = found.model_fields.get(part) if hasattr(found, "model_fields") else None
            if field is None:
                return ()
            found = field.annotation
        while not hasattr(found, "model_fields"):
            inner = [kind for kind in get_args(found) if kind not in {type(None), Ellipsis}]
            if not inner:
                break
            found = inner[-1]
    fields: dict[str, FieldInfo] = getattr(found, "model_fields", {})
    return tuple(field.alias or name for name, field in fields.items())


class _Scanner:
    """One walk over an accepted TOML text."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str | None, str, int]] = []
        line, seen = 1, 0
        for found in _TOKEN.finditer(text):
            # Counted from the last token on: from the start it would be quadratic.
            line += text.count("\n", seen, found.start())
            seen = found.start()
            if found.lastgroup not in {"blank", "comment"}:
                self.tokens.append((found.lastgroup, found.group(), line))
        self.at = 0
        self.lines: dict[Path_, int] = {}
        self.counts: dict[Path_, int] = {}

    def scan(self) -> dict[Path_, int]:
        table: Path_ = ()
        while self.at < len(self.tokens):
            group, word, line = self.tokens[self.at]
            if group == "newline":
                self.at += 1
            elif group == "open":
                self.at += 1
                table = self._header(self._key(), line, array=word == "[[")
            else:
                self._pair(table)
        return self.lines

    def _peek(self) -> tuple[str | None, str, int]:
        return self.tokens[self.at] if self.at < len(self.tokens) else (None, "", 0)

    def _key(self) -> tuple[str, ...]:
        """A dotted key; leaves the scanner behind it and its closing bracket or equals sign."""
        parts = []
        while self.at < len(self.tokens):
            group, word, _ = self.tokens[self.at]
            self.at += 1
            if group == "string":
                parts.append(str(tomllib.loads(f"k = {word}")["k"]))
            elif group == "bare":
                parts.append(word)
            elif word != ".":
                break
        return tuple(parts)

    def _header(self, key: tuple[str, ...], line: int, *, array: bool) -> Path_:
        path: Path_ = ()
        for position, part in enumerate(key):
            path = (*path, part)
            if array and position == len(key) - 1:
                self.lines.setdefault(path, line)
                self.counts[path] = self.counts.get(path, -1) + 1
            if path in self.counts:
                path = (*path, self.counts[path])
        self.lines.setdefault(path, line)
        return path

    def _pair(self, table: Path_) -> None:
        line = self._peek()[2]
        path = table
        for part in self._key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self._value(path)

    def _value(self, path: Path_) -> None:
        """A value: notes the items of arrays and the keys of inline tables."""
        group, word, _ = self._peek()
        if group != "open":
            # A scalar may be several tokens: 1.5, 2026-01-01T00:00:00.5, true.
            while self._peek()[0] in {"bare", "string"} or self._peek()[1] == ".":
                self.at += 1
            return
        if word == "[[":  # two arrays, not a table header: take one bracket of it
            self.tokens[self.at] = ("open", "[", self.tokens[self.at][2])
            self.tokens.insert(self.at + 1, ("open", "[", self.tokens[self.at][2]))
            word = "["
        self.at += 1
        item = 0
        while True:
            group, found, line = self._peek()
            if group is None:
                return
            if group == "close":
                if len(found) == 2:  # "]]" closes two arrays here
                    self.tokens[self.at] = ("close", "]", line)
                    self.tokens.insert(self.at + 1, ("close", "]", line))
                self.at += 1
                return
            if group == "newline" or found == ",":
                self.at += 1
            elif word == "[":
                self.lines.setdefault((*path, item), line)
                self._value((*path, item))
                item += 1
            else:
                self._pair(path)
