"""The injection of faults: each function makes something right wrong in one way."""

from __future__ import annotations

import os
import resource
import signal
import time
from typing import TYPE_CHECKING

from hetero_test.bundled.failures import failed
from hetero_test.bundled.faults import FaultEffect
from hetero_test.bundled.log import dump_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.bundled.arith import Floats
    from hetero_test.bundled.faults import ActiveFaults
    from hetero_test.bundled.log import EngineLog
    from hetero_test.bundled.sampler import Pick

_ILLEGAL_ACCESS = "an illegal memory access was encountered"
_TAIL = 16  # ids that garbage fills at least
_A_DAY_S = 86400.0


def faulty_pick(pick: Pick, faults: ActiveFaults, *, max_new: int, vocab: int) -> Pick:
    """The token rule, which is wrong at one place if a fault asks for that."""
    if FaultEffect.RANDOM_FLIP in faults:
        drawn = int.from_bytes(os.urandom(8))
        place, change = drawn % max_new, 1 + drawn // max_new % (vocab - 1)
    elif FaultEffect.FLIP in faults:
        number = faults.number(FaultEffect.FLIP)
        place, change = number if number >= 0 else max_new + number, 1
    else:
        return pick

    def faulty(logits: Floats, index: int) -> int:
        token = pick(logits, index)
        return (token + change) % vocab if index == place else token

    return faulty


def faulty_drafts(
    drafts: Sequence[int], faults: ActiveFaults, *, round_number: int, vocab: int
) -> list[int]:
    """The drafts, all wrong in every Nth round if a fault asks for that."""
    every = max(1, faults.number(FaultEffect.WEAK_DRAFTER))
    if FaultEffect.WEAK_DRAFTER in faults and round_number % every == 0:
        return [(token + 1) % vocab for token in drafts]
    return list(drafts)


def faulty_slots(slots: int, faults: ActiveFaults) -> int:
    """A forced cache size, cut silently if a fault asks for that."""
    if FaultEffect.CLIP_CACHE not in faults:
        return slots
    limit = faults.number(FaultEffect.CLIP_CACHE)
    return min(slots, limit) if limit >= 0 else max(slots + limit, 0)


def before_dump(faults: ActiveFaults, log: EngineLog, *, position: int, vocab: int) -> None:
    """What happens when everything is computed and nothing is printed yet.

    Raises:
        EngineStopError: the crash that ends with an exit code.
    """
    if FaultEffect.CRASH_BEFORE in faults:
        _crash(faults.argument(FaultEffect.CRASH_BEFORE))
    if FaultEffect.HANG in faults:
        _hang(log, deaf=faults.argument(FaultEffect.HANG) == "deaf")
    if FaultEffect.NAN_LINE in faults:
        log.say(f"{vocab} of {vocab} logits are not finite at position {position}")
    if FaultEffect.ERROR_LINE in faults:
        log.say(f"CUDA error: {_ILLEGAL_ACCESS}")


def after_dump(faults: ActiveFaults) -> None:
    """What happens after everything is printed.

    Raises:
        EngineStopError: the crash that ends with an exit code.
    """
    if FaultEffect.CRASH_AFTER in faults:
        _crash(faults.argument(FaultEffect.CRASH_AFTER))


def dump(faults: ActiveFaults, prompt: Sequence[int], made: Sequence[int], *, vocab: int) -> str:
    """The two dump lines as they are printed."""
    echoed, ids = list(prompt), list(made)
    if FaultEffect.WRONG_PROMPT in faults:
        echoed[len(echoed) // 2] = (echoed[len(echoed) // 2] + 1) % vocab
    if FaultEffect.TRUNCATE in faults:
        ids = ids[: faults.number(FaultEffect.TRUNCATE)]
    if FaultEffect.GARBAGE in faults:
        tail = min(max(_TAIL, len(ids) // 2), len(ids))
        cycle = ids[: max(1, faults.number(FaultEffect.GARBAGE))]
        ids[len(ids) - tail :] = [cycle[place % len(cycle)] for place in range(tail)]
    output = dump_line("output", ids)
    if FaultEffect.FOREIGN_TEXT in faults:
        middle = output.index(" ", len(output) // 2)
        output = f"{output[:middle]}[driver] link retrained\n{output[middle:]}"
    if FaultEffect.NO_DUMP in faults:
        output = ""
    if FaultEffect.TWO_DUMPS in faults:
        output += dump_line("output", ids[::-1])
    return ("" if FaultEffect.NO_PROMPT in faults else dump_line("prompt", echoed)) + output


def _crash(how: str) -> None:
    if how == "exit":
        raise failed(f"prefill copy_i32: {_ILLEGAL_ACCESS}")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a wanted crash leaves no core file
    os.kill(os.getpid(), signal.Signals[how])


def _hang(log: EngineLog, *, deaf: bool) -> None:
    if deaf:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log.line("strata: hanging")
    end = time.monotonic() + _A_DAY_S  # in case nobody ends it
    while time.monotonic() < end:
        time.sleep(60)
