"""The error lines of llama.cpp and its forks, and which of them mean that a run went wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from harness.engines.llama_lines import text_of
from harness.engines.llama_log import Fault, LogFault
from harness.engines.llama_tables import KEPT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ABORT: Final = re.compile(
    rb"[^\s:]++:\d{1,15}+: (?=\S)|GGML_ASSERT\(|terminate called |Segmentation fault"
    rb"|(?:CUDA|ROCm|HIP|MUSA|SYCL|Vulkan) error\b"
)
"""``ggml-rpc.cpp:547: Failed to connect to …``: the last words before an abort."""

_NO_MEMORY: Final = re.compile(
    rb"out of memory|OutOfDeviceMemory|OutOfHostMemory|OutOfMemory|MemoryAllocation|bad_alloc"
    rb"|insufficient memory|(?:failed|unable) to allocate .*buffer|failed to allocate buffer"
    rb"|failed to allocate compute|failed to reserve (?:initial output buffer|memory)"
    rb"|cudaMalloc failed|allocation of size \d{1,15} failed|not enough memory",
    re.IGNORECASE,
)
"""The engine says that the placement does not fit."""

_REFUSED: Final = re.compile(
    rb"\brequires?\b|not support|unsupported|incompatible|not compatible|\bmust be\b|\binvalid\b"
    rb"|cannot be (?:used|combined)|can't be used|\bunknown (?:argument|buffer type|device|type)"
    rb"|is only (?:available|supported)|expected value for argument|doesn't contain"
    rb"|the argument has been removed",
    re.IGNORECASE,
)
"""The engine says that it does not do what was asked, and why."""

_OLD_ERROR: Final = re.compile(
    rb"error loading model|failed to (?:load|create|allocate|initialize|decode|compute|eval)"
    rb"|unable to (?:load|allocate)|out of memory|cudaMalloc failed|couldn't bind"
    rb"|allocation of size \d{1,15} failed|\bError(?:DeviceLost|OutOf\w{1,9}Memory)\b"
    rb"|DeviceLostError|Remote RPC server crashed"
)
"""Errors of builds that mark no level, and those that backends print by themselves."""

_HARMLESS: Final = re.compile(
    rb"normal during memory fitting|[Ff]ailed to allocate .*pinned memory"
    rb"|ggml_cuda_init: failed to initialize \w++: "
    rb"(?:no \w++-capable device|\w++ driver version is insufficient)"
)
"""Errors that the engine itself calls normal, or that cost no more than speed or a backend that
has no device: memory that is not pinned will do, and where the model is other lines tell."""


class Faults:
    """Takes the error lines; a few of each kind are kept."""

    def __init__(self) -> None:
        self._found: list[LogFault] = []

    def found(self) -> tuple[LogFault, ...]:
        """What went wrong, in the order of the log."""
        return tuple(self._found)

    def events(self) -> Mapping[str, Callable[..., None]]:
        """What takes each row, by its name."""
        return {"usage": self._usage}

    def _usage(self, line: bytes, _what: bytes) -> None:
        # The command line is refused before anything is loaded.
        self._keep(Fault.REFUSED, line)

    def on_error(self, line: bytes, *, fitting: bool, listening: bool) -> None:
        """An error line that no other row is about.

        Args:
            line: the line, with its clock.
            fitting: it is being tried what fits, and what goes wrong then is no failure.
            listening: the server took requests already, so that no flag is refused any more.
        """
        is_abort = _ABORT.match(line) is not None
        # The end of the process is a failure even while it is tried what fits.
        if (fitting and not is_abort) or _HARMLESS.search(line):
            return
        if _NO_MEMORY.search(line):
            self._keep(Fault.NO_MEMORY, line)
        elif is_abort:
            self._keep(Fault.ABORT, line)
        elif not listening and _REFUSED.search(line):
            self._keep(Fault.REFUSED, line)
        else:
            self._keep(Fault.ERROR, line)

    def _keep(self, fault: Fault, line: bytes) -> None:
        # A generic line that follows a telling one must not push it out, nor the other way.
        if sum(known.fault is fault for known in self._found) < KEPT:
            self._found.append(LogFault(fault=fault, line=text_of(line)))


def is_error(line: bytes) -> bool:
    """Whether a line without a level is one of an abort, or of an old build's errors."""
    return bool(_ABORT.match(line) or _OLD_ERROR.search(line))
