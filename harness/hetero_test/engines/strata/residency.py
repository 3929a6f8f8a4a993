"""Where Strata's log says that experts, main model and drafter are.

A log comes in, and what was asked of the engine. :class:`Roles` tells which roles the last process
that wrote the log announces; :class:`Whereabouts` gives the residency, the cache's size, and what
was seen of each part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.engines.strata.devices import kind
from hetero_test.engines.strata.flags import (
    DRAFT_DEVICE,
    MAIN_DEVICE,
    cache_asked,
    last_value,
    whole,
)
from hetero_test.values.reading import CacheSize, Place, Residency, Sighting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.engines.base import LaunchedCell
    from hetero_test.engines.strata.log import Entry, Log


class Whereabouts:
    """Devices, roles and caches as one log tells them.

    Args:
        log: what both files hold.
        asked: what was asked of the engine, and what was known of the rig before.
    """

    def __init__(self, log: Log, asked: LaunchedCell) -> None:
        self._log = log
        self._flags = asked.flags
        self._mask = asked.mask
        self._roles = Roles(log, asked.flags)
        self._mains = {entry.groups[0]: entry for entry in log.all("gpu")}
        several = len(log.all("gpu")) > 1
        self._since = log.last("gpu") if several else None
        gpu = log.last("gpu")
        self._later = len(log.since("session", gpu)) > 1  # one is that device's own
        self._backend = "CUDA" if gpu is None or gpu.groups[2] else "HIP"
        # Behind a mask a number may be another card's: only what this log names is known.
        listed = asked.survey.devices if asked.mask is None else ()
        self._kinds = {device.id: device.kind for device in listed}
        for entry in log.all("role"):
            self._kinds[str(entry.groups[0])] = kind(self._backend, str(entry.groups[1]))
        for entry in self._mains.values():
            self._kinds[str(entry.groups[0])] = self._kind_of(entry)
        self.main = Place()
        if gpu is not None and len(self._mains) == 1 and not self._later:
            device = str(gpu.groups[0])
            self.main = Place(device=device, kind=self._kinds[device], line=gpu.line)

    def _kind_of(self, gpu: Entry) -> str:
        emulated = gpu.groups[4] is not None
        return kind(self._backend, str(gpu.groups[1]), emulated=emulated)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that the log names, with their kinds."""
        named = {str(e.groups[0]) for e in (*self._log.all("role"), *self._mains.values())}
        return tuple(f"{name}: {self._kinds[name]}" for name in sorted(named, key=int))

    @property
    def picked(self) -> dict[str, str]:
        """The roles that the engine announces to have picked itself."""
        return self._roles.picked

    @property
    def draft(self) -> Place:
        """Where the drafter is.

        The workspace line is printed only for a drafter that is off the main device; which
        device that is, only the announced roles tell. Without roles it cannot be elsewhere.
        """
        stays, workspace = self._roles.stays, self._roles.workspace
        main, roles = self.main, self._roles.announced
        if stays is not None:
            return Place(device=main.device, kind=main.kind, line=stays.line)
        if workspace is not None:
            if roles is None or main.device is None or roles[1] == main.device:
                return Place()
            return Place(device=roles[1], kind=self._kinds.get(roles[1]), line=workspace.line)
        if roles is None and not ROLE_FLAGS & set(self._flags):
            return Place(device=main.device, kind=main.kind)
        if roles is not None and roles[1] == main.device:
            return Place(device=main.device, kind=main.kind)
        return Place()

    @property
    def sightings(self) -> tuple[Sighting, ...]:
        """Where lines prove that main model and drafter are, or announce them astray."""
        seen = [
            Sighting(part="main", value=str(entry.groups[0]), line=entry.line)
            for entry in self._mains.values()
        ]
        draft = self.draft
        if draft.line is not None:
            value = draft.device or "the main path"
            seen.append(Sighting(part="draft", value=value, line=draft.line))
        return (*seen, *self._roles.astray)

    @property
    def residency(self) -> Residency:
        """The final residency, or why it is not known."""
        if not self._mains:
            return _unknown("no 'GPU N:' line tells the main device")
        if self._later:
            return _unknown("a later process in the same log has no 'GPU N:' line of its own")
        if self.main.device is None:
            names = ", ".join(sorted(str(name) for name in self._mains))
            return _unknown(f"the log names several main devices: {names}")
        slots = self._slots()
        if slots is None:
            return _unknown("an expert cache was asked for, and no line tells its final size")
        facts: list[tuple[str, str | int]] = [("slots", slots)]
        resident = self._resident()
        if resident is not None:
            facts.append(("resident", resident))
        others = [*self._stages(), *self._helpers()]
        facts += others
        main_kind = self.main.kind or ""
        label = f"{slots} slots, {main_kind.partition(' ')[2]}"
        label += "".join(f"; {name}: {value}" for name, value in others)
        if resident is not None and (others or resident != slots):
            label += f"; {resident} resident"
        return Residency(facts=tuple(facts), main_kind=main_kind, label=label)

    @property
    def cache(self) -> CacheSize:
        """The main device's expert cache, as it was asked for and as it was opened."""
        opened = self.residency.fact("slots")
        return CacheSize(
            forced=cache_asked(self._flags).forced,
            opened=opened if isinstance(opened, int) else None,
        )

    def _latest(self, name: str) -> Entry | None:
        entries = self._log.since(name, self._since)
        return entries[-1] if entries else None

    def _slots(self) -> int | None:
        """The size of the main device's cache in the end; the estimate never counts."""
        finals = [self._latest(name) for name in ("slots", "fewer", "no_room")]
        last = max((e for e in finals if e is not None), key=lambda e: e.place, default=None)
        if last is None:
            return None if cache_asked(self._flags).is_asked else 0
        return int(last.groups[0] or 0) if last.groups else 0

    def _resident(self) -> int | None:
        """Resident (layer, expert) pairs over all devices, where a line tells them."""
        pairs = self._latest("resident")
        if pairs is not None:
            return int(pairs.groups[0] or 0)
        filled = self._latest("filled")
        if filled is None or filled.groups[0] == filled.groups[1]:
            return None
        return int(filled.groups[0] or 0)

    def _stages(self) -> list[tuple[str, str | int]]:
        """The later stages of a layer split, by their layers."""
        stages = {entry.groups[1]: entry for entry in self._log.since("stage", self._since)}
        ordered = sorted(stages.values(), key=lambda e: int(str(e.groups[1]).partition("-")[0]))
        return [
            (
                f"stage {number}",
                f"layers {entry.groups[1]}, {entry.groups[2]} slots on {self._on(entry)}",
            )
            for number, entry in enumerate(ordered, 1)
        ]

    def _helpers(self) -> list[tuple[str, str | int]]:
        """The helper caches on other devices, by ordinal."""
        helpers = {entry.groups[0]: entry for entry in self._log.since("helper", self._since)}
        ordered = sorted(helpers.values(), key=lambda entry: int(str(entry.groups[0])))
        return [
            (f"helper {number}", f"{entry.groups[1]} experts on {self._on(entry)}")
            for number, entry in enumerate(ordered, 1)
        ]

    def _on(self, entry: Entry) -> str:
        """The kind of an entry's device; its number where the kind is not known."""
        device = str(entry.groups[0])
        unnamed = f"device {device}" + ("" if self._mask is None else f" behind {self._mask}")
        return self._kinds.get(device, unnamed)


def _unknown(why: str) -> Residency:
    return Residency(unknown=why)


AUTO = "--auto-roles"
_BY_PART = {"main": MAIN_DEVICE, "draft": DRAFT_DEVICE}
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
