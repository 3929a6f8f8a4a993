"""When a fault strikes: what a launch's command line must look like, and its turn.

::

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
from typing import TYPE_CHECKING

from harness.reference.failures import failed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
    """See that each is one.

    Raises:
        ValueError: one is not.
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
        conditions: checked ones.
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
