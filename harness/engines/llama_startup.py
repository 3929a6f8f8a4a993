"""What a log tells once, before anything is answered: build, machine, drafting, readiness.

What takes a row of :data:`harness.engines.llama_patterns.PATTERNS` is called with the line and
with the row's arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.engines.llama_lines import text_of
from harness.engines.llama_log import ListedDevice
from harness.engines.llama_tables import KEPT
from harness.logs import decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.engines.llama_tables import Tables


class Startup:
    """Takes the lines on the start of the process.

    Attributes:
        build: number and commit, such as ``4321 (abcdef0)``; None: not told.
        system: the instruction sets that the CPU backend uses.
        devices: by the engine's own name of each, such as ``CUDA0``.
        drafting: the ways of speculation that were set up, as often as they were.
        listening: a server says that it takes requests.
        lines: those on drafting, for the report.
    """

    def __init__(self, tables: Tables) -> None:
        self.build: str | None = None
        self.system: tuple[str, ...] = ()
        self.devices: dict[str, ListedDevice] = {}
        self.drafting: list[str] = []
        self.listening = False
        self.lines: list[str] = []
        self._tables = tables

    def events(self) -> Mapping[str, Callable[..., None]]:
        """What takes each row, by its name."""
        return {
            "build": self._build,
            "system": self._system,
            "device": self._device,
            "drafting": self._drafting,
            "no_drafting": self._no_drafting,
            "listening": self._listening,
            "old_listening": self._listening,
        }

    def _build(self, _line: bytes, build: bytes) -> None:
        self.build = decoded(build)

    def _system(self, _line: bytes, features: bytes) -> None:
        pairs = (part.partition(b"=") for part in features.split(b"|"))
        self.system = tuple(
            decoded(name.strip()) for name, _, value in pairs if value.strip() == b"1"
        )

    def _device(self, _line: bytes, name: bytes, what: bytes, total: bytes, free: bytes) -> None:
        device = ListedDevice(
            id=decoded(name),
            name=decoded(what),
            memory_mib=int(total),
            free_mib=int(free),
        )
        self._tables.put(self.devices, device.id, device)

    def _drafting(self, line: bytes, name: bytes) -> None:
        if len(self.drafting) < KEPT:
            self.drafting.append(decoded(name))
            self.lines.append(text_of(line))

    def _no_drafting(self, line: bytes) -> None:
        if len(self.lines) < KEPT:
            self.lines.append(text_of(line))

    def _listening(self, _line: bytes) -> None:
        self.listening = True
