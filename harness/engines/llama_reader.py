"""Reading a log of llama.cpp, or of a fork of it, into a :class:`LlamaLog`.

A log is read once, as a stream of bytes in constant memory, whatever the length of a line.
Nothing in it raises: what no row of :mod:`harness.engines.llama_patterns` knows is passed over.

Newer builds load every model twice: first without memory, to see whether it fits, then in
earnest. Only what is loaded in earnest counts, and of several lines on one thing the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, TypeVar

from harness.engines import llama_patterns as patterns
from harness.engines.llama_lines import lines_of, number, text_of
from harness.engines.llama_log import (
    Context,
    Drafts,
    Fault,
    ListedDevice,
    LlamaLog,
    LoadedModel,
    LogFault,
    Moved,
    Rate,
)

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

_K = TypeVar("_K")
_V = TypeVar("_V")

_MOST = 100_000
"""Entries of one table beyond which a log is not that of a model."""
_TAIL = 20


def read(stream: IO[bytes]) -> LlamaLog:
    """Everything that a log says.

    Args:
        stream: opened in binary mode; read to its end.
    """
    reader = _Reader()
    for lines in lines_of(stream):
        reader.take(lines)
    return reader.result()


def nothing() -> LlamaLog:
    """What a log says that is not there."""
    return _Reader().result()


@dataclass(slots=True)
class _OpenContext:
    kv_mib: dict[str, float] = field(default_factory=dict)
    compute_mib: dict[str, float] = field(default_factory=dict)
    kv_layers: dict[int, str] = field(default_factory=dict)
    splits: int | None = None

    def closed(self) -> Context:
        return Context(
            kv_mib=self.kv_mib,
            compute_mib=self.compute_mib,
            kv_layers=self.kv_layers,
            splits=self.splits,
        )


@dataclass(slots=True)
class _OpenModel:
    path: str = ""
    draft: bool = False
    dry: bool = False
    vocabulary: int | None = None
    experts: int | None = None
    weights_mib: dict[str, float] = field(default_factory=dict)
    layers: dict[int, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    moved: list[Moved] = field(default_factory=list)
    using: dict[str, str] = field(default_factory=dict)
    contexts: list[_OpenContext] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def context(self) -> _OpenContext:
        if not self.contexts:
            self.contexts.append(_OpenContext())
        return self.contexts[-1]

    def closed(self) -> LoadedModel:
        return LoadedModel(
            path=self.path,
            draft=self.draft,
            vocabulary=self.vocabulary,
            experts=self.experts,
            weights_mib=self.weights_mib,
            layers=self.layers,
            overrides=self.overrides,
            moved=tuple(self.moved),
            using=self.using,
            contexts=tuple(context.closed() for context in self.contexts),
            lines=tuple(self.lines),
        )


class _Reader:
    """Takes one line after the other."""

    def __init__(self) -> None:
        self.build: str | None = None
        self.system: tuple[str, ...] = ()
        self.devices: dict[str, ListedDevice] = {}
        self.drafting: list[str] = []
        self.models: list[_OpenModel] = []
        self.model = _OpenModel()
        self.draft_follows = False
        self.fitting = False
        self.listening = False
        self.prompt = Rate()
        self.decode = Rate()
        self.accepted: int | None = None
        self.offered: int | None = None
        self.mean_length: float | None = None
        self.rounds: int | None = None
        self.draft_ms: float | None = None
        self.overflow = False
        self.unread_timings: list[str] = []
        self.faults: list[LogFault] = []
        self.lines: list[str] = []
        self.tail: list[bytes] = []
        self._events: dict[str, Callable[..., None]] = {
            name: getattr(self, f"_on_{name}") for name in patterns.PATTERNS
        }

    def take(self, lines: list[bytes]) -> None:
        """Read some lines."""
        self.tail = [*self.tail, *lines[-_TAIL:]][-_TAIL:]
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
                    self._on_buffer(line, *found.groups())
            elif (level := head.group(2)) == b"E" or (level is None and _is_error(line)):
                self._on_error(line)

    def _event(self, line: bytes, rows: re.Pattern[bytes], found: re.Match[bytes]) -> None:
        name = found.lastgroup
        assert name is not None
        end = rows.groupindex[name] - 1
        self._events[name](line, *found.groups()[end - patterns.ARGUMENTS[name] : end])

    def result(self) -> LlamaLog:
        """Everything read so far."""
        real = [model for model in self.models if not model.dry]
        if not real and not self.models and (self.model.weights_mib or self.model.layers):
            real = [self.model]  # the beginning of the log is missing
        return LlamaLog(
            build=self.build,
            system=self.system,
            devices=tuple(self.devices.values()),
            drafting=tuple(dict.fromkeys(self.drafting)),
            models=tuple(model.closed() for model in real),
            listening=self.listening,
            prompt=self.prompt,
            decode=self.decode,
            drafts=Drafts(
                accepted=self.accepted,
                offered=self.offered,
                mean_length=self.mean_length,
                rounds=self.rounds,
                draft_ms=self.draft_ms,
            ),
            overflow=self.overflow,
            unread_timings=tuple(self.unread_timings),
            faults=tuple(self.faults),
            lines=tuple(line for model in real for line in model.lines) + tuple(self.lines),
            tail=tuple(text_of(line) for line in self.tail if line),
        )

    # ---- the machine ----------------------------------------------------------------------

    def _on_build(self, _line: bytes, build: bytes) -> None:
        self.build = build.decode("utf-8", "replace")

    def _on_system(self, _line: bytes, features: bytes) -> None:
        pairs = (part.partition(b"=") for part in features.split(b"|"))
        self.system = tuple(
            name.strip().decode("utf-8", "replace")
            for name, _, value in pairs
            if value.strip() == b"1"
        )

    def _on_device(self, _line: bytes, name: bytes, what: bytes, total: bytes, free: bytes) -> None:
        device = ListedDevice(
            id=name.decode(),
            name=what.decode("utf-8", "replace"),
            memory_mib=int(total),
            free_mib=int(free),
        )
        self._put(self.devices, device.id, device)

    # ---- models ---------------------------------------------------------------------------

    def _on_fit_begin(self, _line: bytes) -> None:
        self.fitting = True

    def _on_fit_end(self, _line: bytes) -> None:
        self.fitting = False

    def _on_draft_model(self, _line: bytes) -> None:
        self.draft_follows = True

    def _on_model(self, _line: bytes, _pairs: bytes, _tensors: bytes, path: bytes) -> None:
        self.model = _OpenModel(
            path=path.decode("utf-8", "replace"), draft=self.draft_follows, dry=self.fitting
        )
        self.draft_follows = False
        if len(self.models) >= _MOST:
            self.overflow = True
        else:
            self.models.append(self.model)

    def _on_dry(self, _line: bytes, value: bytes) -> None:
        self.model.dry = value == b"1"

    def _on_vocabulary(self, _line: bytes, value: bytes) -> None:
        self.model.vocabulary = int(value)

    def _on_experts(self, _line: bytes, value: bytes) -> None:
        self.model.experts = int(value)

    def _on_using(self, line: bytes, name: bytes, what: bytes, _free: bytes) -> None:
        address = what.decode("utf-8", "replace").removesuffix(") (unknown id")
        self._put(self.model.using, name.decode("utf-8", "replace"), address)
        self._keep(line)

    def _on_split_device(self, _line: bytes, name: bytes) -> None:
        self._put(self.model.using, name.decode("utf-8", "replace"), "")

    def _on_layer(self, _line: bytes, layer: bytes, device: bytes) -> None:
        self._put(self.model.layers, int(layer), device.decode("utf-8", "replace"))

    def _on_override(self, _line: bytes, tensor: bytes, buffer: bytes) -> None:
        names = (tensor.decode("utf-8", "replace"), buffer.decode("utf-8", "replace"))
        self._put(self.model.overrides, *names)

    _on_old_override = _on_override

    def _on_moved(
        self, line: bytes, tensor: bytes, others: bytes, preferred: bytes, used: bytes
    ) -> None:
        if len(self.model.moved) >= _MOST:
            self.overflow = True
            return
        moved = Moved(
            tensor=tensor.decode("utf-8", "replace"),
            others=int(others),
            preferred=preferred.decode("utf-8", "replace"),
            used=used.decode("utf-8", "replace").rstrip("."),
        )
        self.model.moved.append(moved)
        self._keep(line)

    def _on_offloaded(self, line: bytes, _some: bytes, _all: bytes) -> None:
        self._keep(line)

    def _on_context(self, _line: bytes) -> None:
        if len(self.model.contexts) >= _MOST:
            self.overflow = True
        else:
            self.model.contexts.append(_OpenContext())

    def _on_buffer(self, line: bytes, buffer: bytes, what: bytes | None, size: bytes) -> None:
        name, mib = buffer.decode("utf-8", "replace"), float(size)
        match what:
            case b"KV" | b"RS":
                # Models with several caches print one line each.
                kv = self.model.context().kv_mib
                self._put(kv, name, kv.get(name, 0.0) + mib)
            case b"compute":
                self._put(self.model.context().compute_mib, name, mib)
            case b"output":
                return
            case _:
                weights = self.model.weights_mib
                self._put(weights, name, weights.get(name, 0.0) + mib)
        self._keep(line)

    def _on_kv_self(self, line: bytes, _size: bytes) -> None:
        self._keep(line)

    def _on_kv_layer(self, _line: bytes, layer: bytes, device: bytes) -> None:
        self._put(self.model.context().kv_layers, int(layer), device.decode("utf-8", "replace"))

    def _on_splits(self, line: bytes, prompt: bytes, decode: bytes | None) -> None:
        # Decoding is what is timed: where both are told, the one for a batch of one.
        self.model.context().splits = int(decode or prompt)
        self._keep(line)

    # ---- the answer -----------------------------------------------------------------------

    def _on_listening(self, _line: bytes) -> None:
        self.listening = True

    _on_old_listening = _on_listening

    def _on_drafting(self, line: bytes, name: bytes) -> None:
        if len(self.drafting) < _TAIL:
            self.drafting.append(name.decode("utf-8", "replace"))
            self.lines.append(text_of(line))

    def _on_no_drafting(self, line: bytes) -> None:
        if len(self.lines) < _TAIL:
            self.lines.append(text_of(line))

    def _on_acceptance(
        self, _line: bytes, accepted: bytes, offered: bytes, mean: bytes | None
    ) -> None:
        self.accepted, self.offered, self.mean_length = int(accepted), int(offered), number(mean)

    def _on_rounds(self, _line: bytes, rounds: bytes, draft_ms: bytes) -> None:
        self.rounds, self.draft_ms = int(rounds), number(draft_ms)

    def _on_n_drafted(self, _line: bytes, count: bytes) -> None:
        self.offered = int(count)

    def _on_n_accept(self, _line: bytes, count: bytes) -> None:
        self.accepted = int(count)

    def _on_prompt_time(self, line: bytes, *values: bytes | None) -> None:
        self.prompt = self._rate(line, *values)

    def _on_time(self, line: bytes, *values: bytes | None) -> None:
        self.decode = self._rate(line, *values)

    _on_generation_time = _on_time

    def _rate(
        self, line: bytes, ms: bytes | None, tokens: bytes | None, tok_s: bytes | None
    ) -> Rate:
        if tokens is None:
            if len(self.unread_timings) < _TAIL:
                self.unread_timings.append(text_of(line))
            return Rate()
        count, spent, rate = int(tokens), number(ms), number(tok_s)
        if not spent:
            return Rate(tokens=count)
        # Old builds print no rate; others print "inf" where there was nothing to divide by.
        return Rate(tokens=count, ms=spent, tok_s=rate or count / spent * 1000 or None)

    # ---- errors ---------------------------------------------------------------------------

    def _on_usage(self, line: bytes, _what: bytes) -> None:
        self._fault(Fault.REFUSED, line)

    def _on_error(self, line: bytes) -> None:
        is_abort = patterns.ABORT.match(line) is not None
        # What goes wrong while it is tried what fits is no failure, unless it is the end.
        if (self.fitting and not is_abort) or patterns.HARMLESS.search(line):
            return
        if patterns.NO_MEMORY.search(line):
            self._fault(Fault.NO_MEMORY, line)
        elif is_abort:
            self._fault(Fault.ABORT, line)
        elif not self.listening and patterns.REFUSED.search(line):
            self._fault(Fault.REFUSED, line)
        else:
            self._fault(Fault.ERROR, line)

    def _fault(self, fault: Fault, line: bytes) -> None:
        # A generic line that follows a telling one must not push it out, nor the other way.
        if sum(known.fault is fault for known in self.faults) < _TAIL:
            self.faults.append(LogFault(fault=fault, line=text_of(line)))

    # ---- tables ---------------------------------------------------------------------------

    def _keep(self, line: bytes) -> None:
        if len(self.model.lines) < 10 * _TAIL:
            self.model.lines.append(text_of(line))

    def _put(self, table: dict[_K, _V], key: _K, value: _V) -> None:
        if key in table or len(table) < _MOST:
            table[key] = value
        else:
            self.overflow = True


def _is_error(line: bytes) -> bool:
    """Whether a line without a level is one of an abort, or of an old build's errors."""
    return bool(patterns.ABORT.match(line) or patterns.OLD_ERROR.search(line))
