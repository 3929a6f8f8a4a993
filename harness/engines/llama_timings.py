"""The final timings of a log, and what it tells of drafting.

What takes a row of :data:`harness.engines.llama_patterns.PATTERNS` is called with the line and
with the row's arguments. Of several requests the last one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import logs
from harness.engines.llama_lines import text_of
from harness.engines.llama_log import Drafts, Rate
from harness.engines.llama_tables import KEPT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class FinalTimings:
    """Takes the lines on what an answer took.

    Attributes:
        prompt: reading the prompt.
        decode: every token behind the first.
        unread: timing lines of a dialect that is not known, verbatim without clocks.
    """

    def __init__(self) -> None:
        self.prompt = Rate()
        self.decode = Rate()
        self.unread: list[str] = []
        self._accepted: int | None = None
        self._offered: int | None = None
        self._mean_length: float | None = None
        self._rounds: int | None = None
        self._draft_ms: float | None = None

    def drafts(self) -> Drafts:
        """The draft statistics as far as they were told."""
        return Drafts(
            accepted=self._accepted,
            offered=self._offered,
            mean_length=self._mean_length,
            rounds=self._rounds,
            draft_ms=self._draft_ms,
        )

    def events(self) -> Mapping[str, Callable[..., None]]:
        """What takes each row, by its name."""
        return {
            "acceptance": self._acceptance,
            "rounds": self._rounds_drafted,
            "n_drafted": self._n_drafted,
            "n_accept": self._n_accept,
            "prompt_time": self._prompt_time,
            "time": self._time,
            "generation_time": self._time,
        }

    def _acceptance(
        self, _line: bytes, accepted: bytes, offered: bytes, mean: bytes | None
    ) -> None:
        self._accepted, self._offered = int(accepted), int(offered)
        self._mean_length = _number(mean)

    def _rounds_drafted(self, _line: bytes, rounds: bytes, draft_ms: bytes) -> None:
        self._rounds, self._draft_ms = int(rounds), _number(draft_ms)

    def _n_drafted(self, _line: bytes, count: bytes) -> None:
        self._offered = int(count)

    def _n_accept(self, _line: bytes, count: bytes) -> None:
        self._accepted = int(count)

    def _prompt_time(self, line: bytes, *values: bytes | None) -> None:
        self.prompt = self._rate(line, *values)

    def _time(self, line: bytes, *values: bytes | None) -> None:
        self.decode = self._rate(line, *values)

    def _rate(
        self, line: bytes, ms: bytes | None, tokens: bytes | None, tok_s: bytes | None
    ) -> Rate:
        if tokens is None:
            if len(self.unread) < KEPT:
                self.unread.append(text_of(line))
            return Rate()
        # Old builds print no rate; others print "inf" where there was nothing to divide by.
        return Rate.of(int(tokens), _number(ms), _number(tok_s))


def _number(text: bytes | None) -> float | None:
    return None if text is None else logs.number(logs.decoded(text))
