"""The values that travel the road: device, probe, cell, and the run that comes of it.

All are frozen; a change is a new object. Nothing here touches the outside world.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import md5
from typing import TYPE_CHECKING

from hetero_test.values.outcome import Outcome
from hetero_test.values.reading import Reading, Residency, Speculation, Timings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hetero_test.values.remark import Remark


class RunState(StrEnum):
    """What became of one run; only OK is usable in a comparison that may PASS."""

    OK = "OK"
    REFUSED = "REFUSED"
    NO_MEMORY = "NO_MEMORY"
    CRASHED = "CRASHED"
    TIMED_OUT = "TIMED_OUT"
    NO_STREAM = "NO_STREAM"
    TRUNCATED = "TRUNCATED"
    DEGENERATE = "DEGENERATE"
    WRONG_PROMPT = "WRONG_PROMPT"
    NOT_GREEDY = "NOT_GREEDY"

    @property
    def wrong_output(self) -> bool:
        """Whether a stream is there that cannot be right; compared, it can only fail."""
        return MEANINGS[self].wrong_output

    @property
    def never_started(self) -> bool:
        """Whether the placement does not exist on this rig: nothing to judge."""
        return MEANINGS[self].never_started

    @property
    def not_repeated(self) -> bool:
        """Whether the same command is not launched again."""
        return MEANINGS[self].not_repeated

    @property
    def hung(self) -> bool:
        """Whether it did not end by itself: afterwards the rig itself is in question."""
        return MEANINGS[self].hung

    @property
    def harmless(self) -> bool:
        """Whether a dashboard sees no trouble in it: it ran, or it was not wanted."""
        return MEANINGS[self].harmless


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a state means for those who judge, schedule and tell; see :class:`RunState`."""

    wrong_output: bool = False
    never_started: bool = False
    not_repeated: bool = False
    hung: bool = False
    harmless: bool = False


MEANINGS = {
    RunState.OK: Meaning(harmless=True),
    RunState.REFUSED: Meaning(never_started=True, not_repeated=True, harmless=True),
    RunState.NO_MEMORY: Meaning(never_started=True, not_repeated=True, harmless=True),
    RunState.CRASHED: Meaning(),
    RunState.TIMED_OUT: Meaning(not_repeated=True, hung=True),
    RunState.NO_STREAM: Meaning(),
    RunState.TRUNCATED: Meaning(wrong_output=True),
    RunState.DEGENERATE: Meaning(wrong_output=True),
    RunState.WRONG_PROMPT: Meaning(),
    RunState.NOT_GREEDY: Meaning(),
}
"""Every state, with all that it means."""


AS_PICKED = "as picked"
"""Expected where the engine itself announced to put it."""
NO_TRACE = "no trace"
"""Expected nowhere: no line of this engine ever tells."""


class Effect(StrEnum):
    """Whether the log proves that a placement happened; worst first.

    DOUBTED is never told by one run: lines that no reader knows speak against the placement,
    and the baseline prints none of them.
    """

    CONTRADICTED = "CONTRADICTED"
    NOT_SEEN = "NOT_SEEN"
    DOUBTED = "DOUBTED"
    UNOBSERVABLE = "UNOBSERVABLE"
    PROVEN = "PROVEN"

    @property
    def words(self) -> str:
        """The effect for people."""
        return self.value.lower().replace("_", " ")

    @property
    def unmoved(self) -> str | None:
        """What a placement did instead of moving, after its name; None where it may have."""
        return UNMOVED.get(self)

    @staticmethod
    def worst(found: Iterable[Effect | None]) -> Effect | None:
        """The worst of these that is known, None without any."""
        known = set(found)
        return next((effect for effect in Effect if effect in known), None)


UNMOVED = {
    Effect.CONTRADICTED: "did not go where its flags say",
    Effect.NOT_SEEN: "was not seen to move",
}
"""Effects with which equal streams are no evidence of a placement."""


class Purpose(StrEnum):
    """Why a cell is run; decides under which key of ``run.json`` its run is kept."""

    ROUND = "round"
    WARMUP = "warmup"
    ANCHOR = "anchor"
    SHARED = "shared"
    HOME = "home"
    RECHECK = "recheck"
    AFTER_HANG = "after-hang"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One accelerator as the engine numbers it.

    Attributes:
        id: the engine's own name: ``0`` for Strata, ``CUDA0`` or ``RPC0`` for llama.cpp.
        name: the model as the engine prints it.
        kind: what decides its rounding; equal for two cards of one model.
        memory_bytes: total memory, if printed.
        note: anything the engine said of it, such as why it cannot run.
    """

    id: str
    name: str
    kind: str
    memory_bytes: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectPart:
    """One thing that a placement claims, and what the log says of it.

    Attributes:
        part: what is placed: ``main``, ``draft``, ``experts``, …
        expected: where the matrix expects it.
        seen: where the log shows it, if it does.
        effect: the outcome.
        line: the log line that shows it.
    """

    part: str
    expected: str
    seen: str | None
    effect: Effect
    line: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A prompt given as token ids, with how many new tokens are asked for."""

    name: str
    ids: tuple[int, ...]
    max_new: int
    source: str = "generated"

    @property
    def text(self) -> str:
        """The file content: blank-separated decimal ids."""
        return " ".join(map(str, self.ids)) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """(variant, probe, repeat) that is planned, with all that its launch needs.

    Attributes:
        variant: id; anchors and other extra runs have an id of their own (``1f``).
        of: the id of the matrix variant behind it.
        order: position in the planned order, from 0.
        flags: model flags and variant flags as the engine gets them.
        env: environment delta.
    """

    variant: str
    of: str
    probe: str
    repeat: int
    order: int
    purpose: Purpose
    flags: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> tuple[str, str, int]:
        """What identifies a cell within a run directory."""
        return (self.variant, self.probe, self.repeat)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFinding:
    """A run's state with its evidence.

    Attributes:
        state: what became of the run.
        reason: why, as a sentence; None for an OK run.
        quote: the log line that shows it, where one does.
    """

    state: RunState
    reason: str | None = None
    quote: str | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """What came of a cell: what was planned, how its process ended, what its output says.

    Nothing is copied from one part to another, and all of it is stored. The properties are what
    everyone asks for; the rest is asked of the part that holds it.

    Attributes:
        cell: what was planned.
        outcome: how the process ended.
        reading: what its output says.
        finding: what became of the run, by both.
        effect: whether the log proves the placement; None for the baseline.
        effect_parts: the same for each part that the variant claims to place.
    """

    cell: Cell
    outcome: Outcome
    reading: Reading
    finding: StateFinding
    effect: Effect | None = None
    effect_parts: tuple[EffectPart, ...] = ()

    @property
    def variant(self) -> str:
        """The id under which it ran."""
        return self.cell.variant

    @property
    def of(self) -> str:
        """The id of the matrix variant behind it."""
        return self.cell.of

    @property
    def probe(self) -> str:
        """The name of its prompt."""
        return self.cell.probe

    @property
    def repeat(self) -> int:
        """From 1."""
        return self.cell.repeat

    @property
    def order(self) -> int:
        """Its place in the plan."""
        return self.cell.order

    @property
    def purpose(self) -> Purpose:
        """Why it was made."""
        return self.cell.purpose

    @property
    def key(self) -> tuple[str, str, int]:
        """The cell's key."""
        return self.cell.key

    @property
    def state(self) -> RunState:
        """What became of it."""
        return self.finding.state

    @property
    def reason(self) -> str | None:
        """Why it is not OK, as a sentence."""
        return self.finding.reason

    @property
    def quote(self) -> str | None:
        """The log line that shows it, where one does."""
        return self.finding.quote

    @property
    def usable(self) -> bool:
        """Only an OK run may stand in a comparison that passes."""
        return self.state is RunState.OK

    @property
    def stream(self) -> tuple[int, ...] | None:
        """The greedy token ids, None without a well-formed dump."""
        return self.reading.stream

    @property
    def stop_reason(self) -> str | None:
        """Why the stream ends: ``end of sequence`` or ``length``; None for one that is cut or none.

        An OK run that reports no end of sequence has all the ids that were asked for.
        """
        if self.stream is None:
            return None
        if self.reading.end_of_sequence:
            return "end of sequence"
        return "length" if self.usable else None

    @cached_property
    def md5(self) -> str | None:
        """32 hex digits of the stream, None without one; computed once."""
        return None if self.stream is None else stream_md5(self.stream)

    @property
    def residency(self) -> Residency:
        """Which experts, or tensors, were computed where."""
        return self.reading.residency

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """The different lines that the engine's reader does not know."""
        return self.reading.remarks

    @property
    def speculation(self) -> Speculation | None:
        """Draft statistics, None without a drafter."""
        return self.reading.speculation

    @property
    def timings(self) -> Timings:
        """Times as the engine reports them."""
        return self.reading.timings

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know of it although it decides nothing."""
        return (*self.reading.warnings, *self.outcome.warnings)


def stream_md5(ids: tuple[int, ...]) -> str:
    """md5 of the decimal ids joined by commas, 32 hex digits.

    The format is the one that earlier reports in the field used, so hashes stay comparable.
    """
    return md5(",".join(map(str, ids)).encode(), usedforsecurity=False).hexdigest()
