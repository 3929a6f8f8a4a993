"""Bytes of a log into lines and text; whatever the bytes are, nothing here raises."""

from __future__ import annotations

import re
from io import BytesIO
from typing import IO, TYPE_CHECKING

from harness.engines import llama_patterns as patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

_INSIDE_NUMBER = re.compile(rb"(?<=\d)(?:\0|\x1b\[[0-?]*[ -/]*[@-~])+(?=\d)")
_CHUNK_BYTES = 1 << 20
_LINE_BYTES = 1 << 14
"""What exceeds this in one line is not looked at."""


def lines_of(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """The lines of a log, by the list: without ends, carriage returns, NULs, control sequences.

    Args:
        stream: opened in binary mode; read to its end in constant memory.
    """
    carry = b""
    while chunk := stream.read(_CHUNK_BYTES):
        text = carry + chunk
        if b"\r" in text:
            text = text.replace(b"\r", b"\n")
        *whole, carry = text.split(b"\n")
        carry = carry[:_LINE_BYTES]
        if b"\x1b" in text or b"\0" in text:
            whole = [_clean(line) if b"\x1b" in line or b"\0" in line else line for line in whole]
        yield whole
    if carry:
        yield [_clean(carry)]


def _clean(line: bytes) -> bytes:
    """A line without NULs and control sequences."""
    # Between two digits a mark stays, so that no number comes out that the log does not hold.
    line = _INSIDE_NUMBER.sub(b"\x1a", line[:_LINE_BYTES])
    return patterns.ANSI.sub(b"", line.replace(b"\0", b""))


def text_of(line: bytes) -> str:
    """A line for people, without its clock."""
    return patterns.CLOCK.sub(b"", line[:500], count=1).decode("utf-8", "replace").strip()


def decoded(output: bytes) -> tuple[str, ...]:
    """The lines of a short output as text."""
    return tuple(
        line.decode("utf-8", "replace").rstrip()
        for lines in lines_of(BytesIO(output))
        for line in lines
    )
