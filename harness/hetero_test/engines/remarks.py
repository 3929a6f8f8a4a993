"""The different lines of a log that its reader does not know, each kept once.

Lines that differ only in their numbers are one: digits are masked by the block, before a line
is looked at, so that a log of a gigabyte that says a few things often costs a few looks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hetero_test.engines.lines import decoded
from hetero_test.engines.meaning import LONGEST, weigh
from hetero_test.values.reading import Sign, Symptom
from hetero_test.values.remark import Remark, Weight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MOST_SHAPES = 1 << 15
"""Different shapes of lines that are told apart; of more only those with a telling word."""
_DIGITS = bytes(b"0"[0] if chr(code).isdigit() and code < 128 else code for code in range(256))
_TELLING = re.compile(
    rb"(?i)fail|error|abort|fault|nan|ignor|disab|unsupp|not |n't|lost|kill|fall|instead|invalid"
    rb"|illegal|denied|timed|panic|assert|corrupt|unable|cannot|memory"
)
WIDTH = 300
"""Lines are kept for people, cut to this many characters."""
_MOST_INDENTED = 8
_BLANKS = (b" ", b"\t")
_HEX = re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*[0-9])[0-9a-f]{8,}\b")
_PATH = re.compile(r"(?:[\w.~-]*/)+[\w.+@%~-]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_BLANK = re.compile(r"\s+")


def template(text: str) -> str:
    """A line with what differs between two runs of one command masked.

    Paths become ``<path>``, addresses and hashes ``<hex>``, numbers ``0``; blanks are folded.
    """
    text = _PATH.sub("<path>", text[:LONGEST])
    return _BLANK.sub(" ", _NUMBER.sub("0", _HEX.sub("<hex>", text))).strip()


class Lines:
    """Collects the different lines of one log.

    Args:
        rule: what the engine's own reader says of a line: the weight that it has for this
            engine, `KNOWN` for a line that never weighs, None for one that it does not know.
        clean: takes off a line what an engine puts in front of each, such as a clock.
        most: how many lines are kept that say nothing; those that say something have as many
            places of their own.
    """

    def __init__(
        self,
        rule: Callable[[str], Weight | None],
        *,
        clean: Callable[[bytes], bytes] = bytes,
        most: int = 200,
    ) -> None:
        self._rule = rule
        self._clean = clean
        self._most = most
        self._shapes: set[bytes] = set()
        self._found: dict[str, Remark] = {}
        self._quiet = 0

    def take(self, lines: Sequence[bytes]) -> None:
        """Look at some whole lines, without their ends."""
        if not lines:
            return
        shapes = b"\n".join(lines).translate(_DIGITS).split(b"\n")
        if self._shapes.issuperset(shapes):
            return
        for place, shape in enumerate(shapes):
            if shape not in self._shapes:
                self._look(shape, lines[place], lines[max(0, place - _MOST_INDENTED) : place])

    def _look(self, shape: bytes, line: bytes, before: Sequence[bytes]) -> None:
        if len(self._shapes) < MOST_SHAPES:
            self._shapes.add(shape)
        elif not _TELLING.search(line):
            return
        line = self._clean(line)
        text = decoded(_telling_part(line)).rstrip()
        if not text.strip():
            return
        weight = self._rule(text)
        if weight is None:
            weight = weigh(text, under=_head(line, before))
        if weight is not Weight.KNOWN:
            self._keep(text, weight)

    def _keep(self, text: str, weight: Weight) -> None:
        masked = template(text)
        quiet = weight is Weight.NOTHING
        count = self._quiet if quiet else len(self._found) - self._quiet
        if masked in self._found or count >= self._most:
            return
        self._quiet += quiet
        self._found[masked] = Remark(template=masked, line=text[:WIDTH], weight=weight)

    def found(self) -> tuple[Remark, ...]:
        """The different lines, in the order of the log."""
        return tuple(self._found.values())


def _telling_part(line: bytes) -> bytes:
    """A line, or of a very long one the part around the first word that may tell something."""
    if len(line) <= LONGEST:
        return line
    # Most long lines are ids: no word stands in them, nor behind the last of their letters.
    words = len(line.rstrip(b" 0123456789")) + 1
    found = _TELLING.search(line, 0, words)
    begin = 0 if found is None else max(0, found.start() - LONGEST // 3)
    return line[begin : begin + LONGEST]


def _head(line: bytes, before: Sequence[bytes]) -> str | None:
    """The line that an indented one continues; None for a line of its own."""
    if line[:1] not in _BLANKS:
        return None
    heads = (earlier for earlier in reversed(before) if earlier[:1] not in _BLANKS)
    found = next(heads, None)
    return None if found is None else decoded(found[:LONGEST])


_SYMPTOMS = {
    Weight.NO_MEMORY: Symptom.NO_MEMORY,
    Weight.FATAL: Symptom.ERROR,
    Weight.NOT_A_NUMBER: Symptom.NOT_A_NUMBER,
    Weight.NOT_GREEDY: Symptom.NOT_GREEDY,
    Weight.REFUSED: Symptom.REFUSED,
}


def signs_of(remarks: Iterable[Remark]) -> tuple[Sign, ...]:
    """The lines that show that a run went wrong, in the order of the log."""
    return tuple(
        Sign(symptom=_SYMPTOMS[remark.weight], line=remark.line)
        for remark in remarks
        if remark.weight in _SYMPTOMS
    )
