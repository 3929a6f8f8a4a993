"""What llama.cpp and its forks mean by their own lines; all others are weighed by what they say.

A line at level E is an error, whatever its words. What may be said depends on when: while the
engine tries what fits, nothing but the end of the process is a failure, and once the server
listens no flag is refused any more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hetero_test.engines.llama_cpp.patterns import CLOCK
from hetero_test.engines.meaning import Level, level_of, said, weigh
from hetero_test.engines.notes import Notes
from hetero_test.engines.remarks import Lines
from hetero_test.values.remark import Remark, Weight

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABORT: Final = re.compile(
    r"[^\s:]+:\d{1,15}: (?=\S)|GGML_ASSERT\(|terminate called |Segmentation fault"
    r"|(?:CUDA|ROCm|HIP|MUSA|SYCL|Vulkan) error\b"
)
"""``ggml-rpc.cpp:547: Failed to connect to …``: the last words before an abort."""

_NO_ALLOCATION: Final = r"out of memory|cudaMalloc failed|allocation of size \d{1,15} failed"

_NO_MEMORY: Final = re.compile(
    _NO_ALLOCATION + r"|OutOfDeviceMemory|OutOfHostMemory|OutOfMemory|MemoryAllocation|bad_alloc"
    r"|insufficient memory|(?:failed|unable) to allocate .*buffer"
    r"|failed to allocate compute|failed to reserve (?:initial output buffer|memory)"
    r"|not enough memory",
    re.IGNORECASE,
)
"""The engine says that the placement does not fit."""

_COMMAND_LINE: Final = re.compile(
    r"error: (?:(?:invalid|unknown|unrecognized|missing|the) .*argument|.*\bargument\b"
    r"|unknown buffer type|invalid .*value|.*\bhas been removed)"
    r"|error while handling argument "
)
"""The engine's own words on its command line, at the beginning of a line."""

_REFUSED: Final = re.compile(
    r"\brequires?\b|not support|unsupported|incompatible|not compatible|\bmust be\b|\binvalid\b"
    r"|cannot be (?:used|combined)|can't be used|\bunknown (?:argument|buffer type|device|type)"
    r"|is only (?:available|supported)|expected value for argument|doesn't contain"
    r"|the argument has been removed",
    re.IGNORECASE,
)
"""The engine says that it does not do what was asked, and why."""
_OLD_ERROR: Final = re.compile(
    r"error loading model|failed to (?:load|create|allocate|initialize|decode|compute|eval)"
    r"|unable to (?:load|allocate)|couldn't bind|\bError(?:DeviceLost|OutOf\w{1,9}Memory)\b"
    r"|DeviceLostError|Remote RPC server crashed|" + _NO_ALLOCATION
)
"""Errors of builds that mark no level, and those that backends print by themselves."""

_HARMLESS: Final = re.compile(
    r"normal during memory fitting"
    r"|ggml_cuda_init: failed to initialize \w+: "
    r"(?:no \w+-capable device|\w+ driver version is insufficient)"
    r"|logit bias = -inf"
)
"""Errors that are no failure: the engine calls them normal, or they only cost speed, or a backend
has no device. Where the model is, other lines tell."""

_NOTES: Final = Notes("hetero_test.engines.llama_cpp")


def rule(text: str, *, listening: bool) -> Weight | None:
    """What the engine means by a line; None for one that is not known as its own.

    Args:
        text: the line, without its clock.
        listening: the server took requests already.
    """
    if _HARMLESS.search(text) or _NOTES.known(text):
        return Weight.KNOWN
    level = level_of(text)
    if level is Level.WARNING:
        return None
    is_abort = _ABORT.match(text) is not None
    is_error = level is Level.ERROR or is_abort or _OLD_ERROR.search(said(text)) is not None
    if not listening and _COMMAND_LINE.match(text):
        return Weight.REFUSED
    if not is_error:
        return None
    if _NO_MEMORY.search(said(text)):
        return Weight.NO_MEMORY
    found = weigh(text)
    if is_abort or found in {Weight.NO_MEMORY, Weight.FATAL, Weight.NOT_A_NUMBER}:
        return found if found is Weight.NO_MEMORY else Weight.FATAL
    refused = not listening and _REFUSED.search(text) is not None
    return Weight.REFUSED if refused else Weight.FATAL


class Unread:
    """Takes the lines that no row reads, in the order of the log."""

    def __init__(self) -> None:
        self._before = Lines(lambda text: rule(text, listening=False), clean=_without_clock)
        self._after = Lines(lambda text: rule(text, listening=True), clean=_without_clock)

    def take(self, lines: Sequence[bytes], *, fitting: bool, listening: bool) -> None:
        """Look at some lines.

        Args:
            lines: whole lines, with their clocks.
            fitting: it is being tried what fits, and what goes wrong then is no failure.
            listening: the server took requests already.
        """
        if fitting:  # the end of the process is a failure even then
            lines = [line for line in lines if _ABORT.match(line.decode("utf-8", "replace"))]
        (self._after if listening else self._before).take(lines)

    def found(self) -> tuple[Remark, ...]:
        """The different lines, those from before the server listened first."""
        return (*self._before.found(), *self._after.found())


def _without_clock(line: bytes) -> bytes:
    return CLOCK.sub(b"", line, count=1)
