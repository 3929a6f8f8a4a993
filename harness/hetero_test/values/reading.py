"""What one run's output says, as values: the stream, the residency, and what is known beside them.

Each engine's adapter makes a :class:`Reading` of its own log; nothing behind the adapter asks which
engine it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hetero_test.values.remark import Remark

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Residency:
    """Which experts, or tensors, are computed on which kind of device.

    Attributes:
        facts: the equality key: (name, value) pairs, in a fixed order.
        main_kind: the kind of the main device, also part of the key.
        unknown: why the residency is not known; then it equals nothing.
        label: a few words for a table, such as ``4400 slots on GTX 1080 Ti``.
    """

    facts: tuple[tuple[str, str | int], ...] = ()
    main_kind: str | None = None
    unknown: str | None = None
    label: str = "unknown"

    @property
    def known(self) -> bool:
        """Whether the log told all that decides the rounding."""
        return self.unknown is None

    @property
    def key(self) -> tuple[str | None, tuple[tuple[str, str | int], ...]]:
        """The equality key; only meaningful when the residency is known."""
        return (self.main_kind, self.facts)

    def equals(self, other: Residency) -> bool:
        """Whether two runs are comparable; an unknown residency equals nothing."""
        return self.known and other.known and self.key == other.key

    def fact(self, name: str) -> str | int | None:
        """The value of one fact of the key, or None where the log did not tell it."""
        return dict(self.facts).get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Draft statistics as the engine reports them, counted before clipping to the length."""

    rounds: int | None = None
    window: int | None = None
    accepted: int | None = None
    offered: int | None = None
    tokens_per_round: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Times as the engine reports them; unknown is None, never 0."""

    decode_tok_s: float | None = None
    prefill_tok_s: float | None = None
    ttft_ms: float | None = None
    draft_ms_per_round: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChance:
    """The probabilities behind one emitted token.

    Attributes:
        id: the emitted id.
        logprob: its natural log-probability, None where the engine gave none.
        top: the best candidates as (id, log-probability), best first.
    """

    id: int
    logprob: float | None
    top: tuple[tuple[int, float], ...] = ()


class Symptom(StrEnum):
    """What a log line can show of a run that went wrong."""

    REFUSED = "refused"
    NO_MEMORY = "no memory"
    ERROR = "error"
    NOT_A_NUMBER = "not a number"
    NOT_GREEDY = "not greedy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A symptom and the log line that shows it."""

    symptom: Symptom
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Where the log shows one part of the placement.

    Attributes:
        part: ``main``, ``draft``, …, the names that matrix files use under ``effect``.
        value: where it is; None when the engine never tells this in this mode.
        line: the log line that shows it.
    """

    part: str
    value: str | None
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one thing is.

    Attributes:
        device: the engine's own name of the device, None where no line tells.
        kind: of that device.
        line: the line that shows it; None where it follows from what was not asked for.
    """

    device: str | None = None
    kind: str | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Something beside the residency that can make two streams differ.

    Attributes:
        name: under which ``run.json`` shows it, unique among all that an engine records.
        value: None where the log does not tell it.
        words: what it is, for a sentence.
    """

    name: str
    value: Scalar
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSize:
    """A cache whose size decides what is computed where.

    Attributes:
        forced: the size that the flags ask for; None where the engine chooses it.
        opened: the final size in the same unit, or in units of what fits into it; None: untold.
    """

    forced: int | None = None
    opened: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One more thing that an engine measures, as the report shows it.

    Attributes:
        label: heads the column.
        value: a number, or text where it takes several; None is unknown.
        unit: stands behind the value.
    """

    label: str
    value: str | float | None
    unit: str = ""


def differing(
    one: Iterable[Factor], other: Iterable[Factor]
) -> Iterator[tuple[str, Scalar, Scalar]]:
    """Words and both values of each factor that is not the same on two sides.

    What only one side tells differs as well: it was not the same in both.
    """
    mine, theirs = ({factor.name: factor for factor in side} for side in (one, other))
    for name, factor in (mine | theirs).items():
        values = [side[name].value if name in side else None for side in (mine, theirs)]
        if values[0] != values[1]:
            yield factor.words, values[0], values[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one run's output says; facts only, no judgment.

    What somebody behind the adapter asks for has a field of its own. `context` is for people
    and other programs alone: no code but the adapter's knows a name in it.

    Attributes:
        stream: the ids of the only well-formed dump; None if there is none.
        stream_trouble: why there is none (or several), with the line.
        echo: the prompt as the engine repeats it; None if it did not.
        echo_expected: False for an engine that never echoes.
        echo_trouble: why the prompt was not read as given, where the engine says more than an echo.
        end_of_sequence: the engine reports that it stopped at an end-of-sequence.
        vocabulary: the engine's vocabulary size where it prints one.
        remarks: the different lines that the engine's reader does not know.
        places: where every part is, by part, as finely as the log tells, and by the engine's
            default where a part has no line of its own. Two runs with equal places have one
            placement; a part that is left out is not known.
        picked: placements that the engine announces to have chosen itself, by part.
        main: where the main model is, for an engine that has it on one device.
        draft: where the drafter is; nowhere without one.
        movers: what is known to change rounding beside the residency. A difference with one
            of them is looked at again under the pinned recipe.
        causes: what explains a difference by itself, better than a near tie does.
        cache: the cache whose size can be forced; None for an engine without one.
        rows: what else the report shows of a run, one column each.
        context: what else is recorded beside the residency, by name.
        chances_trouble: why log-probabilities are not real in this mode, where they are not.
        lines: role, memory and peer lines, verbatim, for the report.
    """

    stream: tuple[int, ...] | None = None
    stream_trouble: str | None = None
    echo: tuple[int, ...] | None = None
    echo_expected: bool = True
    echo_trouble: str | None = None
    end_of_sequence: bool = False
    vocabulary: int | None = None
    signs: tuple[Sign, ...] = ()
    remarks: tuple[Remark, ...] = ()
    residency: Residency = Residency(unknown="no line tells")
    main: Place = Place()
    draft: Place = Place()
    movers: tuple[Factor, ...] = ()
    causes: tuple[Factor, ...] = ()
    cache: CacheSize | None = None
    rows: tuple[Row, ...] = ()
    context: Mapping[str, Scalar] = field(default_factory=dict)
    sightings: tuple[Sighting, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    picked: Mapping[str, str] = field(default_factory=dict)
    speculation: Speculation | None = None
    timings: Timings = Timings()
    chances: tuple[TokenChance, ...] | None = None
    chances_trouble: str | None = None
    version: str | None = None
    devices: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def recorded(self) -> dict[str, Scalar]:
        """All that is known beside the residency, by name, as ``run.json`` shows it."""
        return {
            **self.context,
            **({} if self.cache is None else {"forced_cache": self.cache.forced}),
            "main_device": self.main.device,
            "draft_device": self.draft.device,
            "draft_kind": self.draft.kind,
            **{factor.name: factor.value for factor in (*self.movers, *self.causes)},
        }
