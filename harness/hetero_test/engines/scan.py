"""One search over a long log for the lines that matter.

A log comes in, the lines that matter go out. The search is what is fast on a gigabyte: one pattern
that begins with a line break. Only lines that it finds are decoded and looked at in Python.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from hetero_test.engines.lines import KEEP_BYTES, Block, End, blocks, decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SHAPED_BYTES = 200
"""What is kept of a very long line that has a shape, but none of the starts."""


class Hit(NamedTuple):  # there may be millions: a tuple is made in a third of the time
    """A line that a :class:`Scan` looked for.

    Attributes:
        text: the line without its end; of a very long one without a start, its beginning.
        start: the start that was looked for and that this line has, else None.
        end: what ended it.
        place: position in the normalized log, only good for comparing.
    """

    text: str
    start: str | None
    end: End
    place: int


class Scan:
    """One compiled search for the lines that matter.

    Args:
        last: starts of lines of which the last one in a stretch of log is enough.
        distinct: starts of lines of which each one counts, but no repetition near it.
        every: starts of lines of which each one counts.
        shapes: patterns of further lines, each of which counts. That of a whole line ends with
            a look-ahead for the line break, since the search goes on from there.
    """

    def __init__(
        self,
        *,
        last: Iterable[str],
        distinct: Iterable[str] = (),
        every: Iterable[str] = (),
        shapes: Iterable[bytes] = (),
    ) -> None:
        self._last = {start.encode() for start in last}
        self._distinct = {start.encode() for start in distinct}
        starts = sorted({*self._last, *self._distinct, *(start.encode() for start in every)})
        patterns = [b"(" + (_any_of(starts) if starts else b"(?!)") + b")", *shapes]
        self._pattern = re.compile(b"\n(?:" + b"|".join(patterns) + b")")

    def lines(self, path: Path, *, keep_bytes: int = KEEP_BYTES) -> Iterator[Hit]:
        """The lines that matter, in the order of the log.

        Args:
            path: the log.
            keep_bytes: a line up to this length is given whole.

        Raises:
            OSError: the file cannot be read.
        """
        for block in blocks(path, keep_bytes):
            for begin, start in sorted(self._started(block.text), key=itemgetter(0)):
                yield _hit(block, begin, start, keep_bytes)

    def _started(self, text: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Where lines begin that have one of the starts or shapes, with the start."""
        latest: dict[bytes, tuple[int, bytes]] = {}
        for match in self._pattern.finditer(text):
            start, begin = match.group(1), match.start() + 1
            if start in self._last:
                latest[start] = begin, start
            elif start in self._distinct:
                stop = text.find(b"\n", begin)
                latest[text[begin:stop] if stop >= 0 else text[begin:]] = begin, start
            else:
                yield begin, start
        yield from latest.values()


def _hit(block: Block, begin: int, start: bytes | None, keep_bytes: int) -> Hit:
    text = block.text
    stop = text.find(b"\n", begin)
    end = End.NEWLINE
    if stop < 0:
        stop, end = len(text), block.end
    line = text[begin:stop]
    if line.endswith(b"\r"):
        line, end = line[:-1], End.RETURN
    if start is None and len(line) > keep_bytes:
        line = line[:_SHAPED_BYTES]
    return Hit(
        text=decoded(line),
        start=None if start is None else start.decode(),
        end=end,
        place=block.place + begin,
    )


def _any_of(texts: list[bytes]) -> bytes:
    """A pattern for the longest of some texts that looks at each byte once."""
    first, final = min(texts), max(texts)
    pairs = enumerate(zip(first, final, strict=False))
    same = next((place for place, (one, other) in pairs if one != other), len(first))
    shared = first[:same]
    rests = [text[len(shared) :] for text in texts]
    branches: dict[bytes, list[bytes]] = {}
    for rest in rests:
        if rest:
            branches.setdefault(rest[:1], []).append(rest)
    if not branches:
        return re.escape(shared)
    inner = b"|".join(_any_of(group) for group in branches.values())
    return re.escape(shared) + b"(?:" + inner + b")" + (b"?" if b"" in rests else b"")
