r"""Log bytes as lines of text: streamed, in constant memory, whatever the bytes are.

Normalization, in this order: terminal color codes and NUL bytes vanish, ``\r\n`` is a line
break, and so is a carriage return alone. Nothing that stood between two digits ever vanishes
silently: a marker stays, so that no number can come out that the log does not hold.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEEP_BYTES = 1 << 16
"""A line up to this length is always kept whole."""
BLOCK_BYTES = 1 << 18
"""How much is read at once; small enough to stay in a processor's cache."""
_OVERLAP_BYTES = 64

# Each begins with a literal byte: the search for it is a plain scan of memory.
_SGR = rb"\[[0-9;:]*m"
_SGR_IN_NUMBER = re.compile(rb"\x1b(?<=[0-9]\x1b)" + _SGR + rb"(?:\x1b" + _SGR + rb")*(?=[0-9])")
_COLOR = re.compile(rb"\x1b" + _SGR)
# Other controls move the cursor or erase; only at the edges of a line is that harmless.
_CONTROL = rb"(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]{0,512}(?:\x07|\x1b\\))"
_CONTROL_FIRST = re.compile(rb"\n(?:\x1b" + _CONTROL + rb")+")
_CONTROL_LAST = re.compile(rb"(?:\x1b" + _CONTROL + rb")+(?=[\r\n])")
_CONTROL_INSIDE = re.compile(rb"\x1b" + _CONTROL)
_NUL_IN_NUMBER = re.compile(rb"\0(?<=[0-9]\0)\0*(?=[0-9])")
_MARKER = b"\x1a"


class End(Enum):
    """What ended a line."""

    NEWLINE = "a line break"
    RETURN = "a carriage return alone"
    FILE = "the end of the file"
    LENGTH = "its length: the rest of it is not kept"


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, but for the first (if not `fresh`) and the last (if `end` is no newline).

    Attributes:
        text: normalized; begins with a line break if `fresh`.
        place: position in the normalized log, only good for comparing.
        fresh: the first line begins here.
        end: what ended the last line.
    """

    text: bytes
    place: int
    fresh: bool
    end: End


def lines(path: Path, *, keep_bytes: int = KEEP_BYTES) -> Iterator[str]:
    """All lines of a log as text; of a longer line than `keep_bytes` only its beginning.

    Raises:
        OSError: the file cannot be read.
    """
    for block in blocks(path, keep_bytes):
        text = block.text[1:] if block.fresh else block.text
        pieces = text.split(b"\n")
        if not block.fresh:
            del pieces[0]
        if block.end is End.NEWLINE:
            pieces = pieces[:-1]
        for piece in pieces:
            yield decoded(piece.removesuffix(b"\r"))


def tail(path: Path, *, count: int = 20, width: int = 300) -> tuple[str, ...]:
    """The last lines of a log that are not blank, each cut to `width` characters.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(0, size - KEEP_BYTES)
        file.seek(begin)
        data = _normalized(b"\n" + file.read(KEEP_BYTES))
    texts = [decoded(piece).rstrip() for piece in data.split(b"\n")]
    return tuple(text[:width] for text in texts if text.strip())[-count:]


def decoded(data: bytes) -> str:
    """Bytes of a log as text; what is no UTF-8 shows as a replacement character."""
    return data.decode("utf-8", "replace")


def number(text: str | None) -> float | None:
    """A number as an engine prints it; None where it is missing or no finite number.

    The one rule for every engine: all of them print with C's ``printf``, in the user's locale.
    A decimal comma is read where it can mean nothing else: ``1,234`` may be a thousand.
    """
    if text is None:
        return None
    if re.fullmatch(r"-?[0-9]+,[0-9]+", text) and not re.fullmatch(
        r"-?[1-9][0-9]{0,2},[0-9]{3}", text
    ):
        text = text.replace(",", ".")
    if not re.fullmatch(r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][-+]?[0-9]{1,3})?", text):
        return None
    value = float(text)
    return value if abs(value) != float("inf") else None


def blocks(path: Path, keep_bytes: int) -> Iterator[Block]:
    """The log in blocks that break at line ends, or inside of lines that are too long."""
    place, inside, pending = 0, False, b"\n"
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(BLOCK_BYTES):
            data = pending + chunk
            cut = data.rfind(b"\n", 1) + 1
            endless = inside or len(data) > keep_bytes
            if not cut and endless:
                # A log that breaks its lines with carriage returns alone.
                cut = data.rfind(b"\r", 0, len(data) - 1) + 1
            if cut:
                text, end = data[:cut], End.NEWLINE
                pending = data[cut - 1 :] if data[cut - 1 : cut] == b"\n" else b"\n" + data[cut:]
            elif endless:
                text, end = data, End.LENGTH
                pending = data[-_OVERLAP_BYTES:]  # so that no word is cut in two
            else:
                pending = data
                continue
            block = Block(_normalized(text), place, not inside, end)
            inside = end is End.LENGTH
            place += len(block.text)
            yield block
    if len(pending) > (_OVERLAP_BYTES if inside else 1):
        yield Block(_normalized(pending), place, not inside, End.FILE)


def _normalized(data: bytes) -> bytes:
    r"""Without color codes and NULs; a carriage return alone becomes ``\r\n``."""
    if b"\x1b" in data:
        data = _SGR_IN_NUMBER.sub(_MARKER, data)
        data = _COLOR.sub(b"", data)
    if b"\0" in data:
        data = _NUL_IN_NUMBER.sub(_MARKER, data)
        data = data.replace(b"\0", b"")
    if b"\r" in data:
        while b"\r\n" in data:
            data = data.replace(b"\r\n", b"\n")
        data = data.replace(b"\r", b"\r\n")
    if b"\x1b" in data:
        data = _CONTROL_FIRST.sub(b"\n", data)
        data = _CONTROL_LAST.sub(b"", data)
        data = _CONTROL_INSIDE.sub(_MARKER, data)
    return data
