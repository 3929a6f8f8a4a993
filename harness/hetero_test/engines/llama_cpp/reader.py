"""Reading a log of llama.cpp, or of a fork of it: a stream of bytes in, a :class:`LlamaLog` out.

The log is read once, in constant memory, whatever the length of a line. Nothing here raises:
what no row of `patterns` knows is passed over. What a row finds goes, with the line, to the one
object that names the row among its events: :class:`Startup` (what a log tells once, before
anything is answered: build, machine, drafting, readiness), `models.Models`, or
:class:`FinalTimings` (timings and drafting; of several requests the last one counts).
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from hetero_test.engines.lines import decoded, number
from hetero_test.engines.llama_cpp import patterns
from hetero_test.engines.llama_cpp.log import Drafts, ListedDevice, LlamaLog, Rate
from hetero_test.engines.llama_cpp.models import Models
from hetero_test.engines.llama_cpp.patterns import lines_of, text_of
from hetero_test.engines.llama_cpp.signs import Unread
from hetero_test.engines.llama_cpp.tables import KEPT, Tables

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping


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


_LISTENING: Final = frozenset({"listening", "old_listening", "server_listening"})
_TURNING_POINTS: Final = frozenset({"fit_begin", "fit_end", *_LISTENING})
"""Events behind which the same words mean something else."""


class _Reader:
    """Takes one line after the other."""

    def __init__(self) -> None:
        self.tables = Tables()
        self.startup = Startup(self.tables)
        self.models = Models(self.tables)
        self.timings = FinalTimings()
        self.unread = Unread()
        self._left: list[bytes] = []
        self.tail: list[bytes] = []
        self._events = {
            **self.startup.events(),
            **self.models.events(),
            **self.timings.events(),
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
            elif head.group(2) != b"D":
                self._left.append(line)
        self._flush()

    def _flush(self) -> None:
        """Look at the lines that no row read, while what they mean is still the same."""
        fitting, listening = self.models.fitting, self.startup.listening
        self.unread.take(self._left, fitting=fitting, listening=listening)
        self._left = []

    def _event(self, line: bytes, rows: re.Pattern[bytes], found: re.Match[bytes]) -> None:
        name = found.lastgroup
        assert name is not None
        if name in _TURNING_POINTS:
            self._flush()
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
            remarks=self.unread.found(),
            lines=tuple(line for model in models for line in model.lines) + tuple(startup.lines),
            tail=tuple(text_of(line) for line in self.tail if line),
        )


_CPU: Final = b"CPU"


class Startup:
    """Takes the lines on the start of the process.

    Attributes:
        build: number and commit, such as ``4321 (abcdef0)``; None: not told.
        system: the instruction sets that the CPU backend uses.
        devices: by the engine's own name of each, such as ``CUDA0``.
        drafting: the ways of speculation that were set up, as often as they were.
        listening: a server says that it takes requests.
        lines: those on drafting, for the report.
    """

    def __init__(self, tables: Tables) -> None:
        self.build: str | None = None
        self.system: tuple[str, ...] = ()
        self.devices: dict[str, ListedDevice] = {}
        self.drafting: list[str] = []
        self.listening = False
        self.lines: list[str] = []
        self._tables = tables

    def events(self) -> Mapping[str, Callable[..., None]]:
        """What takes each row, by its name."""
        return {
            "build": self._build,
            "system": self._system,
            "device": self._device,
            "drafting": self._drafting,
            "no_drafting": self._no_drafting,
            **dict.fromkeys(_LISTENING, self._listening),
        }

    def _build(self, _line: bytes, build: bytes) -> None:
        self.build = decoded(build)

    def _system(self, _line: bytes, features: bytes) -> None:
        # Newer builds name each backend in front of its own features; what older ones list
        # are the processor's.
        backend, found = _CPU, []
        for part in features.split(b"|"):
            name, _, value = part.rpartition(b" : ")[2].partition(b"=")
            if b" : " in part:
                backend = part.partition(b" : ")[0].strip()
            if backend == _CPU and value.strip() == b"1":
                found.append(decoded(name.strip()))
        self.system = tuple(found)

    def _device(self, _line: bytes, name: bytes, what: bytes, total: bytes, free: bytes) -> None:
        device = ListedDevice(
            id=decoded(name),
            name=decoded(what),
            memory_mib=int(total),
            free_mib=int(free),
        )
        self._tables.put(self.devices, device.id, device)

    def _drafting(self, line: bytes, name: bytes) -> None:
        if len(self.drafting) < KEPT:
            self.drafting.append(decoded(name))
            self.lines.append(text_of(line))

    def _no_drafting(self, line: bytes) -> None:
        if len(self.lines) < KEPT:
            self.lines.append(text_of(line))

    def _listening(self, _line: bytes) -> None:
        self.listening = True


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
        self._rounds: dict[bytes, tuple[int, float | None]] = {}

    def drafts(self) -> Drafts:
        """The draft statistics as far as they were told; ways of speculation are added up."""
        told = list(self._rounds.values())
        took = [ms for _, ms in told if ms is not None]
        return Drafts(
            accepted=self._accepted,
            offered=self._offered,
            mean_length=self._mean_length,
            rounds=sum(rounds for rounds, _ in told) if told else None,
            draft_ms=sum(took) if took else None,
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

    def _rounds_drafted(self, _line: bytes, name: bytes, rounds: bytes, draft_ms: bytes) -> None:
        if name in self._rounds or len(self._rounds) < KEPT:
            self._rounds[name] = int(rounds), _number(draft_ms)

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
    return None if text is None else number(decoded(text))
