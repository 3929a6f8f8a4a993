"""Faults that can be switched on in the bundled engine, to see whether they are found.

One environment variable holds all of them, so that nobody sets one by accident::

    HETERO_TEST_REFERENCE_FAULT="flip-token:5@has:--draft-chain-batch,every:2; hang@baseline"

    value     = fault *( ";" fault )
    fault     = name [ ":" argument ] [ "@" condition *( "," condition ) ]
    condition = "baseline"           no placement flag is given
              | "placed"             one is
              | "forced" | "auto"    an expert cache size is given, or not
              | "has:--flag"         the flag is given
              | "has:--flag=value"   and this is its last value
              | "not:--flag"         it is not
              | "every:N"            every Nth launch that meets the other conditions
              | "nth:N"              only the Nth of them, from 1
              | "after:N"            only those after the first N

All conditions of a fault must hold. One with conditions of its own in :data:`FAULTS` keeps
them unless others are given. Launches are counted in files beside the engine, under a lock.
"""

from __future__ import annotations

import fcntl
import itertools
import zlib
from dataclasses import dataclass
from enum import Enum
from signal import Signals
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.reference.failures import EngineStopError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

VARIABLE = "HETERO_TEST_REFERENCE_FAULT"

PLACEMENT_FLAGS = frozenset(
    {
        "--main-device",
        "--draft-device",
        "--auto-roles",
        "--draft-prefill-parallel",
        "--draft-chain-batch",
    }
)
_COUNTING = ("every", "nth", "after")
_WITH_FLAG = ("has", "not")
_PLAIN = ("baseline", "placed", "forced", "auto")


class Effect(Enum):
    """What a fault does; the value is told to whoever asks for the list."""

    FLIP = "one token is another one, and decoding goes on from it"
    RANDOM_FLIP = "a random token at a random place, drawn anew in each process"
    CRASH_BEFORE = "dies before the result block"
    CRASH_AFTER = "dies after the result block"
    HANG = "hangs before the result block"
    TRUNCATE = "the dump ends early"
    GARBAGE = "the last half of the dump repeats a short cycle of ids"
    NAN_LINE = "the log says that logits are not finite"
    WRONG_PROMPT = "another prompt is echoed"
    NO_PROMPT = "no prompt is echoed"
    FOREIGN_TEXT = "a line of another thread lands inside the dump"
    NO_DUMP = "no dump is printed"
    TWO_DUMPS = "the dump is printed twice"
    SAMPLING = "tokens are sampled, and the log says so"
    IGNORE_ROLES = "role flags are reported but everything stays on the first device"
    DRAFT_FALLBACK = "the drafter stays on the main device, with a line that says so"
    ESTIMATE_OFF = "the cache is opened smaller than the automatic size says"
    CLIP_CACHE = "a forced cache is opened smaller than asked, silently"
    SHRINK_AUTO = "the automatic size comes out smaller"
    ERROR_LINE = "an error line on stderr, exit code 0"
    LATE_REFUSAL = "the flags are refused once all is loaded"
    OUT_OF_MEMORY = "the drafter does not fit"
    WEAK_DRAFTER = "the drafter proposes other tokens; the stream stays right"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A named fault.

    Args:
        name: as it is written in the variable.
        effect: what it does.
        summary: one line for people.
        argument: used when none is given; empty where there is nothing to choose.
        when: conditions that hold unless others are given.
    """

    name: str
    effect: Effect
    summary: str
    argument: str = ""
    when: tuple[str, ...] = ()


def _faults() -> tuple[Fault, ...]:
    def fault(
        name: str, effect: Effect, summary: str, argument: str = "", when: tuple[str, ...] = ()
    ) -> Fault:
        return Fault(name=name, effect=effect, summary=summary, argument=argument, when=when)

    return (
        fault("flip-token", Effect.FLIP, "token N (from 0, or from the end) is another one", "5"),
        fault("flip-early", Effect.FLIP, "a token near the start is another one", "1"),
        fault("flip-late", Effect.FLIP, "a token near the end is another one", "-5"),
        fault("flip-last", Effect.FLIP, "the last token is another one", "-1"),
        fault("random-flip", Effect.RANDOM_FLIP, "a random token changes in every process"),
        fault("crash-before", Effect.CRASH_BEFORE, "signal or 'exit' before the dump", "SIGSEGV"),
        fault("crash-after", Effect.CRASH_AFTER, "signal or 'exit' after the dump", "SIGSEGV"),
        fault("hang", Effect.HANG, "hangs; 'deaf' ignores INT and TERM, else 'polite'", "polite"),
        fault("truncate", Effect.TRUNCATE, "only N ids are dumped (from the end if < 0)", "-7"),
        fault("garbage", Effect.GARBAGE, "the last half is a cycle of N ids", "1"),
        fault("nan-line", Effect.NAN_LINE, "logits are not finite, says the log"),
        fault("wrong-prompt", Effect.WRONG_PROMPT, "one id of the echoed prompt is another"),
        fault("no-prompt", Effect.NO_PROMPT, "the prompt is not echoed"),
        fault("foreign-text", Effect.FOREIGN_TEXT, "a foreign line cuts the dump in two"),
        fault("no-dump", Effect.NO_DUMP, "exit code 0 and no dump"),
        fault("two-dumps", Effect.TWO_DUMPS, "two dumps in one run"),
        fault("sampling-on", Effect.SAMPLING, "sampling was left on"),
        fault(
            "ignore-roles", Effect.IGNORE_ROLES, "'main', 'draft' or 'both' have no effect", "both"
        ),
        fault("draft-fallback", Effect.DRAFT_FALLBACK, "the drafter stays on the main path"),
        fault("estimate-off", Effect.ESTIMATE_OFF, "N slots fewer than the estimate", "3"),
        fault("clip-cache", Effect.CLIP_CACHE, "N slots fewer than forced", "5", ("forced",)),
        fault("shrink-auto", Effect.SHRINK_AUTO, "auto is N slots smaller", "1", ("auto",)),
        fault(
            "drifting-auto",
            Effect.SHRINK_AUTO,
            "auto is N smaller every second time",
            "1",
            ("auto", "every:2"),
        ),
        fault("error-line", Effect.ERROR_LINE, "a device error is printed, exit code 0"),
        fault("late-refusal", Effect.LATE_REFUSAL, "exit code 2 after loading"),
        fault("out-of-memory", Effect.OUT_OF_MEMORY, "the drafter does not fit, exit code 1"),
        fault("weak-drafter", Effect.WEAK_DRAFTER, "every Nth draft round is wrong", "2"),
        fault(
            "dead-baseline", Effect.CRASH_BEFORE, "only the baseline dies", "SIGSEGV", ("baseline",)
        ),
        fault(
            "noisy-baseline", Effect.RANDOM_FLIP, "only the baseline is noisy", "", ("baseline",)
        ),
        fault("all-placed-wrong", Effect.FLIP, "every placement is wrong alike", "5", ("placed",)),
    )


FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in _faults()})


def fault_env(
    name: str, *, argument: str | int | None = None, when: str | Sequence[str] = ()
) -> dict[str, str]:
    """The environment that switches one fault on.

    Args:
        name: a key of :data:`FAULTS`.
        argument: in place of the fault's own.
        when: conditions, in place of the fault's own.

    Raises:
        ValueError: no such fault or condition.
    """
    conditions = (when,) if isinstance(when, str) else tuple(when)
    value = name if argument is None else f"{name}:{argument}"
    value += "@" + ",".join(conditions) if conditions else ""
    _read_one(value)
    return {VARIABLE: value}


class ActiveFaults:
    """The faults of this process, with their arguments."""

    def __init__(self, arguments: Mapping[Effect, str] | None = None) -> None:
        self._arguments = dict(arguments or {})

    def __contains__(self, effect: Effect) -> bool:
        return effect in self._arguments

    def argument(self, effect: Effect) -> str:
        """The argument of an active fault; empty if it is not active."""
        return self._arguments.get(effect, "")

    def number(self, effect: Effect) -> int:
        """The same as a number; 0 if it is not active or has none."""
        return int(self._arguments.get(effect, "") or 0)


def active_faults(
    environ: Mapping[str, str], argv: Sequence[str], *, counters: Path
) -> ActiveFaults:
    """The faults that this launch is to have.

    Args:
        environ: holds the variable, or not.
        argv: the command line, without the program's name.
        counters: folder in which launches are counted.

    Raises:
        EngineStopError: the variable cannot be read (exit code 2).
    """
    chosen: dict[Effect, str] = {}
    for part in filter(None, (part.strip() for part in environ.get(VARIABLE, "").split(";"))):
        try:
            fault, argument, conditions = _read_one(part)
        except ValueError as error:
            raise EngineStopError(f"{VARIABLE}: {error}", code=2, prefixed=False) from error
        plain = [text for text in conditions if text.partition(":")[0] not in _COUNTING]
        counting = [text for text in conditions if text not in plain]
        if not all(_holds(text, argv) for text in plain):
            continue
        if counting:
            launch = _count(counters / f"launches-{zlib.crc32(part.encode()):08x}")
            if not all(_turn(text, launch) for text in counting):
                continue
        chosen[fault.effect] = argument
    return ActiveFaults(chosen)


def _read_one(text: str) -> tuple[Fault, str, tuple[str, ...]]:
    head, _, tail = text.partition("@")
    name, _, argument = head.strip().partition(":")
    if name not in FAULTS:
        raise ValueError(f"no fault is named {name!r}; there are {', '.join(FAULTS)}")
    fault = FAULTS[name]
    conditions = tuple(part.strip() for part in tail.split(",") if part.strip()) or fault.when
    for condition in conditions:
        kind, _, value = condition.partition(":")
        known = (
            condition in _PLAIN
            or (kind in _WITH_FLAG and value.startswith("--"))
            or (kind in _COUNTING and value.isdigit() and int(value) > 0)
        )
        if not known:
            raise ValueError(f"{condition!r} is no condition of a fault")
    chosen = argument or fault.argument
    if fault.argument.lstrip("-").isdigit() and not chosen.lstrip("-").isdigit():
        raise ValueError(f"{name} takes a number, not {chosen!r}")
    if fault.argument in Signals.__members__ and chosen not in {"exit", *Signals.__members__}:
        raise ValueError(f"{name} takes a signal's name or 'exit', not {chosen!r}")
    return fault, chosen, conditions


def _holds(condition: str, argv: Sequence[str]) -> bool:
    kind, _, value = condition.partition(":")
    match kind:
        case "baseline":
            return not PLACEMENT_FLAGS.intersection(argv)
        case "placed":
            return bool(PLACEMENT_FLAGS.intersection(argv))
        case "forced":
            return _last_value(argv, "--expert-cache").isdigit()
        case "auto":
            return not _last_value(argv, "--expert-cache").isdigit()
        case "not":
            return value not in argv
        case _:
            flag, given, wanted = value.partition("=")
            return flag in argv and (not given or _last_value(argv, flag) == wanted)


def _last_value(argv: Sequence[str], flag: str) -> str:
    value = ""
    for word, following in itertools.pairwise(argv):
        if word == flag:
            value = following
    return value


def _turn(condition: str, launch: int) -> bool:
    kind, _, value = condition.partition(":")
    number = int(value)
    match kind:
        case "every":
            return launch % number == 0
        case "nth":
            return launch == number
        case _:
            return launch > number


def _count(path: Path) -> int:
    """The number of this launch, from 1."""
    with path.open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        launch = int(file.read() or 0) + 1
        file.truncate(0)
        file.write(str(launch))
    return launch
