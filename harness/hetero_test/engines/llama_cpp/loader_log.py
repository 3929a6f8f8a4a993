"""What the log of a llama.cpp or ik_llama.cpp start tells triage.

Graph splits and memory by device, in all dialects: the prefix of a line (``print_info:``,
``llm_load_print_meta:``, ``llama_params_fit_impl:`` …) is never looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from hetero_test.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_LINE_BYTES = 4096
"""What a line has beyond it is not looked at: no line of interest is that long."""

_SPLITS = re.compile(
    r"graph(?:: nodes = \d+,)? splits = (\d{1,9})"
    r"(?: \(with bs=(\d{1,9})\), (\d{1,9}) \(with bs=1\))?"
)
_FIT = re.compile(
    r"projected to use (\d{1,12}) MiB of (\w+) memory vs\. (\d{1,12}) MiB of free \w+ memory"
)
_BUFFER = re.compile(
    r"(\S{1,200})\s+(?:(model|KV|RS|compute|output) )?buffer size\s*=\s*"
    r"(\d{1,12}(?:\.\d{1,6})?) MiB"
)
_KV_SELF = re.compile(r"KV self size\s*=\s*(\d{1,12}(?:\.\d{1,6})?) MiB")
_UMA = re.compile(r"ggml_vulkan: (\d{1,3}) = (.{1,200}?) \|.*?\buma: ([01])\b")


class BufferUse(StrEnum):
    """What a buffer is for. Old logs do not say for model buffers, which then are MODEL."""

    MODEL = "model"
    KV = "kv"
    STATE = "state"
    """States of linear layers (``RS``)."""
    COMPUTE = "compute"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSplits:
    """How many pieces the scheduler cut the graph into: one synchronization each."""

    prefill: int
    """For a batch of `batch` tokens; where the log gives one number, that number."""
    decode: int
    """For one token."""
    batch: int | None
    """The batch of `prefill`; None: the log gives one number for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """One allocation."""

    device: str
    """Name of the buffer type: ``CUDA0``, ``CUDA_Host``, ``CPU_Mapped``, ``RPC0[…]``."""
    use: BufferUse
    size_mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """What ``--fit`` expected before loading."""

    used_mib: int
    free_mib: int
    kind: str
    """``device`` or ``host``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderLog:
    """All that was found, in the order of the log."""

    splits: tuple[GraphSplits, ...] = ()
    """One a context: a drafter has its own."""
    buffers: tuple[Buffer, ...] = ()
    kv_mib: float | None = None
    """The whole cache: the last ``KV self size``, else the sum of the KV buffers."""
    projections: tuple[Projection, ...] = ()
    uma: tuple[tuple[str, bool], ...] = ()
    """``Vulkan0`` … with whether ggml sees a unified memory."""

    @property
    def decode_splits(self) -> int | None:
        """Splits of one token in the context with most of them, the main model's."""
        return max((found.decode for found in self.splits), default=None)

    def device_mib(self, use: BufferUse) -> dict[str, float]:
        """MiB of this use by buffer type."""
        sums: dict[str, float] = {}
        for buffer in self.buffers:
            if buffer.use is use:
                sums[buffer.device] = sums.get(buffer.device, 0.0) + buffer.size_mib
        return sums


def read_loader_log(path: Path) -> LoaderLog:
    """Read a log of any length, in constant memory.

    Raises:
        UsageError: the file cannot be read, or no line of it is one of a loader.
    """
    try:
        if not path.is_file():
            raise UsageError(f"cannot read the loader log {path}: it is no regular file")
        log = parse_loader_log(_lines(path))
    except OSError as error:
        raise UsageError(f"cannot read the loader log {path}: {error.strerror}") from error
    if log == LoaderLog():
        raise UsageError(
            f"{path} holds no line of a llama.cpp loader",
            hint="give what the engine prints on stderr while it loads, with `graph splits = …`",
        )
    return log


def parse_loader_log(lines: Iterable[str]) -> LoaderLog:
    """What the lines tell; an empty `LoaderLog` where they tell nothing."""
    splits: list[GraphSplits] = []
    buffers: list[Buffer] = []
    projections: list[Projection] = []
    uma: list[tuple[str, bool]] = []
    kv_self: float | None = None
    for line in lines:
        # Nearly all lines of a log are about something else; a word test is cheaper.
        if "splits = " in line and (found := _SPLITS.search(line)):
            decode = int(found[3] or found[1])
            batch = int(found[2]) if found[2] else None
            splits.append(GraphSplits(prefill=int(found[1]), decode=decode, batch=batch))
        elif "buffer size" in line and (found := _BUFFER.search(line)):
            buffers.append(Buffer(device=found[1], use=_use(found[2]), size_mib=float(found[3])))
        elif "KV self size" in line and (found := _KV_SELF.search(line)):
            kv_self = float(found[1])
        elif "projected to use" in line and (found := _FIT.search(line)):
            projections.append(
                Projection(used_mib=int(found[1]), kind=found[2], free_mib=int(found[3]))
            )
        elif "uma:" in line and (found := _UMA.search(line)):
            uma.append((f"Vulkan{found[1]}", found[3] == "1"))
    cache = [buffer.size_mib for buffer in buffers if buffer.use is BufferUse.KV]
    if kv_self is None and cache:
        kv_self = sum(cache)
    return LoaderLog(
        splits=tuple(splits),
        buffers=tuple(buffers),
        kv_mib=kv_self,
        projections=tuple(projections),
        uma=tuple(uma),
    )


def _use(word: str | None) -> BufferUse:
    if word is None:
        return BufferUse.MODEL
    return BufferUse.STATE if word == "RS" else BufferUse(word.lower())


def _lines(path: Path) -> Iterator[str]:
    """Lines cut to a sane length; the rest of a longer one counts as lines of its own."""
    with path.open("rb") as stream:
        while line := stream.readline(MAX_LINE_BYTES):
            yield line.decode("utf-8", errors="replace")
