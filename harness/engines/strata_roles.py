"""The roles that Strata's log announces, and those of which process they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.engines.base import Sighting
from harness.engines.strata_cache import last_value, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.engines.strata_log import Entry, Log

AUTO = "--auto-roles"
_BY_PART = {"main": "--main-device", "draft": "--draft-device"}
ROLE_FLAGS = frozenset({AUTO, *_BY_PART.values()})


class Roles:
    """What the last process that wrote a log announces of its roles.

    Args:
        log: what both files hold.
        flags: what was asked of the engine.
    """

    def __init__(self, log: Log, flags: Sequence[str]) -> None:
        self._log = log
        self._flags = flags
        self._before = _left_by_another(log)

    @property
    def announced(self) -> tuple[str, str] | None:
        """(main, draft) as the engine announces its roles."""
        return self._pair("roles") or self._pair("picked")

    @property
    def picked(self) -> dict[str, str]:
        """The roles that the engine announces to have picked itself."""
        return dict(zip(_BY_PART, self._pair("picked") or (), strict=False))

    @property
    def workspace(self) -> Entry | None:
        """The line that only a drafter off the main device has."""
        return next(reversed(self._log.since("workspace", self._before)), None)

    @property
    def stays(self) -> Entry | None:
        """The line of a drafter that could not be moved; whichever process had it."""
        return self._log.last("stays")

    @property
    def astray(self) -> tuple[Sighting, ...]:
        """Announced roles that are neither the ones asked for nor the ones picked."""
        asked = self._asked()
        return tuple(
            Sighting(part=part, value=str(value), line=entry.line)
            for entry in self._log.since("roles", self._before)
            for part, value in zip(_BY_PART, entry.groups, strict=False)
            if value != asked.get(part, value)
        )

    def _asked(self) -> dict[str, str]:
        """The roles by the flags: of two, the one that is not given is 0."""
        given = {part: last_value(self._flags, flag) for part, flag in _BY_PART.items()}
        if any(value is not None for value in given.values()):
            return {part: str(whole(value or "")) for part, value in given.items()}
        return self.picked if AUTO in self._flags else {}

    def _pair(self, name: str) -> tuple[str, str] | None:
        entries = self._log.since(name, self._before)
        return (str(entries[-1].groups[0]), str(entries[-1].groups[1])) if entries else None


def _left_by_another(log: Log) -> Entry | None:
    """The last line of an earlier process in a log that was appended to, if one tells it.

    A process announces its roles first, then its device, and that its session is up at last.
    """
    devices = log.all("gpu")
    if len(devices) < 2:
        return None
    own = devices[-1].place
    others = [entry for entry in (*devices, *log.all("session")) if entry.place < own]
    return max(others, key=lambda entry: entry.place)
