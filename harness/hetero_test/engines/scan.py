"""One search over a long log for the lines that matter.

The search is made of what is fast on a gigabyte: one pattern that begins with a line break, and
plain scans for a few words. Only lines that it finds are decoded and looked at in Python.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hetero_test.engines.lines import KEEP_BYTES, Block, End, blocks, decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_BEFORE_BYTES, _BEHIND_BYTES = 100, 200
_MOST_INDENTED = 8
_BLANKS = (b" ", b"\t")


class Hit(NamedTuple):  # there may be millions: a tuple is made in a third of the time
    """A line that a :class:`Scan` looked for.

    Attributes:
        text: the line without its end; of a very long one the part around the word.
        start: the start that was looked for and that this line has, else None.
        end: what ended it.
        place: position in the normalized log, only good for comparing.
        worded: one of the words stands in it.
        under: the line that an indented one continues, if it is near; else None.
    """

    text: str
    start: str | None
    end: End
    place: int
    worded: bool
    under: str | None = None


class Scan:
    """One compiled search for the lines that matter.

    Args:
        last: starts of lines of which the last one in a stretch of log is enough.
        distinct: starts of lines of which each one counts, but no repetition near it.
        every: starts of lines of which each one counts.
        words: lower-case words that make any line matter, in whatever case and place.
        harmless: lower-case texts within which a word counts for nothing; each word stands
            but once in them.
        shapes: patterns of further whole lines, each one of which counts; a line break
            follows and is to be looked ahead for.
    """

    def __init__(
        self,
        *,
        last: Iterable[str],
        distinct: Iterable[str] = (),
        every: Iterable[str] = (),
        words: Iterable[str] = (),
        harmless: Iterable[str] = (),
        shapes: Iterable[bytes] = (),
    ) -> None:
        self._last = {start.encode() for start in last}
        self._distinct = {start.encode() for start in distinct}
        starts = sorted({*self._last, *self._distinct, *(start.encode() for start in every)})
        patterns = ([b"(" + _any_of(starts) + b")"] if starts else []) + list(shapes)
        self._pattern = re.compile(b"\n(?:" + b"|".join(patterns or [b"(?!)"]) + b")")
        self._words = tuple(
            (word.encode(), tuple((h.encode(), h.index(word)) for h in harmless if word in h))
            for word in words
        )

    def lines(self, path: Path, *, keep_bytes: int = KEEP_BYTES) -> Iterator[Hit]:
        """The lines that matter, in the order of the log.

        Args:
            path: the log.
            keep_bytes: a line up to this length is given whole.

        Raises:
            OSError: the file cannot be read.
        """
        for block in blocks(path, keep_bytes):
            worded = self._worded(block.text)
            found: dict[int, bytes | None] = dict.fromkeys(worded)
            found.update(self._started(block.text))
            for begin in sorted(found):
                yield _hit(block, begin, found[begin], worded.get(begin), keep_bytes)

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

    def _worded(self, text: bytes) -> dict[int, int]:
        """Where lines begin that hold one of the words, each with the place of one."""
        lowered = text.lower()
        places: dict[int, int] = {}
        for word, harmless in self._words:
            at = lowered.find(word)
            while at >= 0:
                if any(lowered.startswith(other, at - shift) for other, shift in harmless):
                    at = lowered.find(word, at + 1)
                    continue
                places[text.rfind(b"\n", 0, at) + 1] = at
                end = text.find(b"\n", at)
                at = lowered.find(word, end) if end >= 0 else -1
        return places


def _hit(
    block: Block, begin: int, start: bytes | None, word_at: int | None, keep_bytes: int
) -> Hit:
    text = block.text
    stop = text.find(b"\n", begin)
    end = End.NEWLINE
    if stop < 0:
        stop, end = len(text), block.end
    line = text[begin:stop]
    if line.endswith(b"\r"):
        line, end = line[:-1], End.RETURN
    if start is None and len(line) > keep_bytes:
        at = begin if word_at is None else word_at
        line = text[max(begin, at - _BEFORE_BYTES) : min(stop, at + _BEHIND_BYTES)]
    return Hit(
        text=decoded(line),
        start=None if start is None else start.decode(),
        end=end,
        place=block.place + begin,
        worded=word_at is not None,
        under=_head(text, begin) if line[:1] in _BLANKS else None,
    )


def _head(text: bytes, begin: int) -> str | None:
    """The line that begins the message of which an indented line is a part."""
    for _ in range(_MOST_INDENTED):
        stop = begin - 1
        begin = text.rfind(b"\n", 0, max(stop, 0)) + 1
        if begin == 0:  # the block begins inside of the message
            return None
        if text[begin : begin + 1] not in _BLANKS:
            return decoded(text[begin : min(stop, begin + KEEP_BYTES)])
    return None


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
