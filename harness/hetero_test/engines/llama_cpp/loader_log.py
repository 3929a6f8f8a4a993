"""What triage asks of the log of a llama.cpp or ik_llama.cpp start.

The graph splits of a token, and whether ggml sees a unified memory. The lines are those of
`patterns`, in all dialects; of everything else a run's log says, nothing is read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from hetero_test.engines.llama_cpp.patterns import BUFFER_WORDS, PATTERNS, UMA, lines_of
from hetero_test.errors import UsageError
from hetero_test.formats.files import STORED, open_file

if TYPE_CHECKING:
    from pathlib import Path

_SPLITS: Final = re.compile(PATTERNS["splits"])


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderLog:
    """What a loader's log says.

    Attributes:
        loading: whether any line is one of a loader.
        decode_splits: graph splits of one token, in the context that has most of them: a
            drafter has a context of its own, with fewer. None: no line tells.
        uma: devices (``Vulkan0`` …) with whether ggml sees a unified memory.
    """

    loading: bool = False
    decode_splits: int | None = None
    uma: tuple[tuple[str, bool], ...] = ()

    @property
    def only_uma(self) -> bool | None:
        """What ggml says of the one device it lists; the numbers of several match no other list."""
        return self.uma[0][1] if len({device for device, _ in self.uma}) == 1 else None


def read_loader_log(path: Path) -> LoaderLog:
    """Read a log of any length, in constant memory.

    Raises:
        UsageError: the file cannot be read, or no line of it is one of a loader.
    """
    try:
        with open_file(path, most=STORED) as stream:
            log = scan_loader_log(stream)
    except OSError as error:
        raise UsageError(f"cannot read the loader log {path}: {error.strerror}") from error
    if not log.loading:
        raise UsageError(
            f"{path} holds no line of a llama.cpp loader",
            hint="give what the engine prints on stderr while it loads, with `graph splits = …`",
        )
    return log


def scan_loader_log(stream: IO[bytes]) -> LoaderLog:
    """What the lines say; an empty `LoaderLog` where they say nothing.

    Args:
        stream: opened in binary mode; read to its end.
    """
    splits: list[int] = []
    uma: list[tuple[str, bool]] = []
    loading = False
    for lines in lines_of(stream):
        for line in lines:
            # Nearly all lines are about something else; a search for a word is cheaper.
            if BUFFER_WORDS in line:
                loading = True
            elif b"splits = " in line:
                # Searched, not matched: a user's file may have the prefixes of a journal.
                if (found := _SPLITS.search(line)) is not None:
                    splits.append(int(found[2] or found[1]))
            elif b"uma: " in line and (found := UMA.search(line)):
                uma.append((f"Vulkan{int(found[1])}", found[2] == b"1"))
    return LoaderLog(
        loading=loading or bool(splits or uma),
        decode_splits=max(splits, default=None),
        uma=tuple(uma),
    )
