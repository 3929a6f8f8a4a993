"""Reading a log of llama.cpp, or of a fork of it, into a :class:`LlamaLog`.

A log is read once, as a stream of bytes in constant memory, whatever the length of a line.
Nothing in it raises: what no row of :mod:`harness.engines.llama_patterns` knows is passed over.
What a row finds is taken by the one noun that names it among its events.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from harness.engines import llama_patterns as patterns
from harness.engines.llama_faults import Faults, is_error
from harness.engines.llama_lines import lines_of, text_of
from harness.engines.llama_log import LlamaLog
from harness.engines.llama_models import Models
from harness.engines.llama_startup import Startup
from harness.engines.llama_tables import KEPT, Tables
from harness.engines.llama_timings import FinalTimings

if TYPE_CHECKING:
    import re


def read(stream: IO[bytes]) -> LlamaLog:
    """Everything that a log says.

    Args:
        stream: opened in binary mode; read to its end.

    Raises:
        OSError: the stream cannot be read; nothing that it holds raises.
    """
    reader = _Reader()
    for lines in lines_of(stream):
        reader.take(lines)
    return reader.result()


def nothing() -> LlamaLog:
    """What a log says that is not there."""
    return _Reader().result()


class _Reader:
    """Takes one line after the other."""

    def __init__(self) -> None:
        self.tables = Tables()
        self.startup = Startup(self.tables)
        self.models = Models(self.tables)
        self.timings = FinalTimings()
        self.faults = Faults()
        self.tail: list[bytes] = []
        self._events = {
            **self.startup.events(),
            **self.models.events(),
            **self.timings.events(),
            **self.faults.events(),
        }

    def take(self, lines: list[bytes]) -> None:
        """Read some lines."""
        self.tail = [*self.tail, *lines[-KEPT:]][-KEPT:]
        # Bound to local names, for this loop is what reading a long log costs.
        head_of, rows_of, key = patterns.HEAD.match, patterns.ROWS.get, patterns.KEY
        for line in lines:
            head = head_of(line)
            if head is None or head.lastindex == 1:
                continue
            begin = head.end()
            rows = rows_of(line[begin : begin + key])
            if rows is not None and (found := rows.match(line, begin)) is not None:
                self._event(line, rows, found)
            elif patterns.BUFFER_WORDS in line:
                if (found := patterns.BUFFER.match(line, begin)) is not None:
                    self.models.on_buffer(line, *found.groups())
            elif (level := head.group(2)) == b"E" or (level is None and is_error(line)):
                self.faults.on_error(
                    line, fitting=self.models.fitting, listening=self.startup.listening
                )

    def _event(self, line: bytes, rows: re.Pattern[bytes], found: re.Match[bytes]) -> None:
        name = found.lastgroup
        assert name is not None
        end = rows.groupindex[name] - 1
        self._events[name](line, *found.groups()[end - patterns.ARGUMENTS[name] : end])

    def result(self) -> LlamaLog:
        """Everything read so far."""
        startup, timings = self.startup, self.timings
        models = self.models.in_earnest()
        return LlamaLog(
            build=startup.build,
            system=startup.system,
            devices=tuple(startup.devices.values()),
            drafting=tuple(dict.fromkeys(startup.drafting)),
            models=tuple(model.loaded() for model in models),
            listening=startup.listening,
            prompt=timings.prompt,
            decode=timings.decode,
            drafts=timings.drafts(),
            overflow=self.tables.overflow,
            unread_timings=tuple(timings.unread),
            faults=self.faults.found(),
            lines=tuple(line for model in models for line in model.lines) + tuple(startup.lines),
            tail=tuple(text_of(line) for line in self.tail if line),
        )
