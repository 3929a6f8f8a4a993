"""Faults that can be switched on in the bundled engine, to see whether the harness finds them.

One environment variable holds all faults, so that nobody sets one by accident::

    HETERO_TEST_REFERENCE_FAULT="flip-token:5@has:--draft-chain-batch,every:2; hang@baseline"

    value     = fault *( ";" fault )
    fault     = name [ ":" argument ] [ "@" condition *( "," condition ) ]

A fault strikes a launch that meets all of its conditions, by its command line and its turn. A
fault with conditions of its own in :data:`FAULTS` keeps them unless others are given::

    condition = "baseline"           no placement flag is given
              | "placed"             one is
              | "forced" | "auto"    an expert cache size is given, or not
              | "has:--flag"         the flag is given
              | "has:--flag=value"   and this is its last value
              | "not:--flag"         it is not
              | "every:N"            every Nth launch that meets the other conditions
              | "nth:N"              only the Nth of them, from 1
              | "after:N"            only those after the first N
"""

from __future__ import annotations

import fcntl
import itertools
import re
import zlib
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from hetero_test.bundled.failures import EngineStopError, failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

VARIABLE = "HETERO_TEST_REFERENCE_FAULT"


class FaultEffect(Enum):
    """What a fault does; the value says so in words."""

    FLIP = "one token is another one, and decoding goes on from it"
    RANDOM_FLIP = "a random token at a random place, drawn anew in each process"
    CRASH_BEFORE = "dies before the result block"
    CRASH_AFTER = "dies after the result block"
    HANG = "hangs before the result block"
    TRUNCATE = "the dump ends early"
    GARBAGE = "the last half of the dump, 16 ids at least, repeats a short cycle"
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
class NamedFault:
    """A named fault.

    Args:
        name: as it is written in the variable.
        effect: what it does.
        summary: one line for people.
        argument: used when none is given; empty where there is nothing to choose.
        choices: the arguments there are; empty where it is a number.
        when: conditions that hold unless others are given.
    """

    name: str
    effect: FaultEffect
    summary: str
    argument: str
    choices: tuple[str, ...]
    when: tuple[str, ...]


_DEATHS = ("exit", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGKILL")
_HANGS = ("polite", "deaf")
_ROLES = ("both", "main", "draft")
_E = FaultEffect

# name, effect, argument, choices, conditions, summary
_ROWS: tuple[tuple[str, FaultEffect, str, tuple[str, ...], tuple[str, ...], str], ...] = (
    ("flip-token", _E.FLIP, "5", (), (), "token N (from 0, or from the end) is another one"),
    ("flip-early", _E.FLIP, "1", (), (), "a token near the start is another one"),
    ("flip-late", _E.FLIP, "-5", (), (), "a token near the end is another one"),
    ("flip-last", _E.FLIP, "-1", (), (), "the last token is another one"),
    ("random-flip", _E.RANDOM_FLIP, "", (), (), "a random token changes in every process"),
    ("crash-before", _E.CRASH_BEFORE, "SIGSEGV", _DEATHS, (), "dies before the dump"),
    ("crash-after", _E.CRASH_AFTER, "SIGSEGV", _DEATHS, (), "dies after the dump"),
    ("hang", _E.HANG, "polite", _HANGS, (), "hangs before the dump; deaf: to INT and TERM too"),
    ("truncate", _E.TRUNCATE, "-7", (), (), "only N ids are dumped (from the end if < 0)"),
    ("garbage", _E.GARBAGE, "1", (), (), "the last half, at least 16, is a cycle of N ids"),
    ("nan-line", _E.NAN_LINE, "", (), (), "logits are not finite, says the log"),
    ("wrong-prompt", _E.WRONG_PROMPT, "", (), (), "one id of the echoed prompt is another"),
    ("no-prompt", _E.NO_PROMPT, "", (), (), "the prompt is not echoed"),
    ("foreign-text", _E.FOREIGN_TEXT, "", (), (), "a foreign line cuts the dump in two"),
    ("no-dump", _E.NO_DUMP, "", (), (), "exit code 0 and no dump"),
    ("two-dumps", _E.TWO_DUMPS, "", (), (), "two dumps in one run"),
    ("sampling-on", _E.SAMPLING, "", (), (), "sampling was left on"),
    ("ignore-roles", _E.IGNORE_ROLES, "both", _ROLES, (), "a role flag has no effect"),
    ("draft-fallback", _E.DRAFT_FALLBACK, "", (), (), "the drafter stays on the main path"),
    ("estimate-off", _E.ESTIMATE_OFF, "3", (), (), "N slots fewer than the estimate"),
    ("clip-cache", _E.CLIP_CACHE, "40", (), ("forced",), "at most N slots (< 0: fewer by N)"),
    ("shrink-auto", _E.SHRINK_AUTO, "1", (), ("auto",), "auto is N slots smaller"),
    ("drifting-auto", _E.SHRINK_AUTO, "1", (), ("auto", "every:2"), "the same, every other run"),
    ("error-line", _E.ERROR_LINE, "", (), (), "a device error is printed, exit code 0"),
    ("late-refusal", _E.LATE_REFUSAL, "", (), (), "exit code 2 after loading"),
    ("out-of-memory", _E.OUT_OF_MEMORY, "", (), (), "the drafter does not fit, exit code 1"),
    ("weak-drafter", _E.WEAK_DRAFTER, "2", (), (), "every Nth draft round is wrong"),
    ("dead-baseline", _E.CRASH_BEFORE, "SIGSEGV", _DEATHS, ("baseline",), "the baseline dies"),
    ("noisy-baseline", _E.RANDOM_FLIP, "", (), ("baseline",), "only the baseline is noisy"),
    ("all-placed-wrong", _E.FLIP, "5", (), ("placed",), "every placement is wrong alike"),
)

FAULTS: Mapping[str, NamedFault] = MappingProxyType(
    {
        name: NamedFault(
            name=name,
            effect=effect,
            argument=argument,
            choices=choices,
            when=when,
            summary=summary,
        )
        for name, effect, argument, choices, when, summary in _ROWS
    }
)


class ActiveFaults:
    """The faults of this process, with their arguments."""

    def __init__(self, arguments: Mapping[FaultEffect, str] | None = None) -> None:
        self._arguments = dict(arguments or {})

    def __contains__(self, effect: FaultEffect) -> bool:
        return effect in self._arguments

    def argument(self, effect: FaultEffect) -> str:
        """The argument of an active fault; empty if it is not active."""
        return self._arguments.get(effect, "")

    def number(self, effect: FaultEffect) -> int:
        """The same as a number; 0 if it is not active or has none."""
        return int(self._arguments.get(effect, "") or 0)


def active_faults(
    environ: Mapping[str, str], argv: Sequence[str], *, counters: Path
) -> ActiveFaults:
    """The faults that strike this launch.

    Args:
        environ: where :data:`VARIABLE` is looked for.
        argv: the command line, without the program's name.
        counters: folder in which launches are counted.

    Raises:
        EngineStopError: the variable is not well-formed (exit code 2).
    """
    chosen: dict[FaultEffect, str] = {}
    for part in filter(None, (part.strip() for part in environ.get(VARIABLE, "").split(";"))):
        try:
            fault, argument, conditions = _read_one(part)
        except ValueError as error:
            raise EngineStopError(f"{VARIABLE}: {error}", code=2, prefixed=False) from error
        if meets(conditions, argv, counter=counters / f"launches-{zlib.crc32(part.encode()):08x}"):
            chosen[fault.effect] = argument
    return ActiveFaults(chosen)


def _read_one(text: str) -> tuple[NamedFault, str, tuple[str, ...]]:
    head, _, tail = text.partition("@")
    name, _, argument = head.strip().partition(":")
    if name not in FAULTS:
        raise ValueError(f"no fault is named {name!r}; there are {', '.join(FAULTS)}")
    fault = FAULTS[name]
    conditions = tuple(part.strip() for part in tail.split(",") if part.strip()) or fault.when
    check_conditions(conditions)
    chosen = argument or fault.argument
    if argument and not fault.argument:
        raise ValueError(f"{name} takes no argument")
    if fault.choices and chosen not in fault.choices:
        raise ValueError(f"{name} takes one of {', '.join(fault.choices)}, not {chosen!r}")
    if chosen and not fault.choices and not re.fullmatch(r"-?\d{1,9}", chosen):
        raise ValueError(f"{name} takes a number, not {chosen!r}")
    return fault, chosen, conditions


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


def check_conditions(conditions: Sequence[str]) -> None:
    """Refuse a text that is not a condition.

    Raises:
        ValueError: one of the texts is not a condition.
    """
    for condition in conditions:
        kind, _, value = condition.partition(":")
        known = (
            condition in _PLAIN
            or (kind in _WITH_FLAG and value.startswith("--"))
            or (kind in _COUNTING and value.isdigit() and int(value) > 0)
        )
        if not known:
            raise ValueError(f"{condition!r} is no condition of a fault")


def meets(conditions: Sequence[str], argv: Sequence[str], *, counter: Path) -> bool:
    """Whether a launch meets all conditions.

    Args:
        conditions: as :func:`check_conditions` accepts them.
        argv: the command line, without the program's name.
        counter: the file in which the launches that meet the other conditions are counted;
            touched only if one of the conditions counts.

    Raises:
        EngineStopError: the launch cannot be counted.
    """
    counting = [text for text in conditions if text.partition(":")[0] in _COUNTING]
    if not all(_holds(text, argv) for text in conditions if text not in counting):
        return False
    if not counting:
        return True
    try:
        launch = _count(counter)
    except (OSError, ValueError) as error:
        raise failed(f"a launch cannot be counted: {error}") from error
    return all(_turn(text, launch) for text in counting)


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
