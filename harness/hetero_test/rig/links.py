"""PCIe links: speeds of ports, the path from a device to the root, and its narrowest port.

GB/s are 1e9 bytes in one direction after encoding, before packet headers: 8b/10b for generations 1
and 2, 128b/130b for 3 to 5, 242 of 256 bytes of a FLIT for 6 (PCI Express Base Specification). A
copy reaches about 84 % of it (6.6 of 7.88 over OCuLink).

Paths and speeds come from sysfs and ``lspci``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hetero_test.rig.facts import LinkFacts, LinkState
from hetero_test.rig.sourced import Sourced, assumed, measured, specified

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hetero_test.launch.query import Runner

GENERATIONS: Mapping[float, int] = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""Transfers a second and lane, in GT/s, to the generation."""
LANE_GB_S: Mapping[int, float] = {
    1: 2.5 * 8 / 10 / 8,
    2: 5.0 * 8 / 10 / 8,
    3: 8.0 * 128 / 130 / 8,
    4: 16.0 * 128 / 130 / 8,
    5: 32.0 * 128 / 130 / 8,
    6: 64.0 * 242 / 256 / 8,
}
"""GB/s of one lane in one direction, by generation."""
TUNNEL_GB_S = LANE_GB_S[3] * 4
"""What Thunderbolt 3, Thunderbolt 4 and USB4 at 40 Gb/s carry at most: PCIe 3.0 ×4."""

_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?)\s?GT/s")
_ADDRESS = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s+(.*)", re.IGNORECASE)
# "(ok)", "(downgraded)", "(strange)" may follow the speed, the width, both or neither.
_LINK = re.compile(
    r"\s*Lnk(Cap|Sta):\s.*?Speed (\d{1,3}(?:\.\d)?)GT/s(?: \(\w+\))?, Width x(\d{1,2})\b"
)
_BUSES = re.compile(r"\s*Bus: primary=([0-9a-f]{2}), secondary=([0-9a-f]{2})", re.IGNORECASE)
_TUNNEL_NAMES = re.compile(r"thunderbolt|\bUSB4\b|(?:Titan|Alpine|Goshen|Maple|Barlow) Ridge", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSpeed:
    """A speed and a width."""

    gen: int
    width: int

    @property
    def gb_s(self) -> float:
        """GB/s in one direction."""
        return link_gb_s(self.gen, self.width)

    def __str__(self) -> str:
        return f"Gen{self.gen} x{self.width}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One PCI function on the path from a device to the root."""

    address: str
    """``0000:01:00.0``."""
    name: str = ""
    """Description by ``lspci``; empty where it did not run."""
    now: LinkSpeed | None = None
    capable: LinkSpeed | None = None
    external: bool = False
    """Behind a port that the firmware calls external: Thunderbolt or USB4."""
    tunnel: bool = False
    """Part of a Thunderbolt or USB4 tunnel whose speed has no meaning."""

    def __str__(self) -> str:
        words = [self.address]
        words.append(f"now {self.now}" if self.now else "speed unknown")
        if self.capable:
            words.append(f"can {self.capable}")
        if self.tunnel:
            words.append("tunnel, ignored")
        return ", ".join(words)


def link_gb_s(gen: int, width: int) -> float:
    """GB/s of a link in one direction after encoding.

    Raises:
        KeyError: there is no such generation.
    """
    return LANE_GB_S[gen] * width


def parse_speed(text: str) -> int | None:
    """The generation of a speed as sysfs and lspci write it (``16.0 GT/s PCIe``); None: unknown."""
    found = _SPEED.search(text)
    return GENERATIONS.get(float(found[1])) if found else None


def link_speed(gen: int | None, width: int | None) -> LinkSpeed | None:
    """Both together; None where one is unknown or no link is up (width 0 or 255)."""
    if gen is None or width is None or gen not in LANE_GB_S or not 0 < width <= 32:
        return None
    return LinkSpeed(gen=gen, width=width)


def full_address(address: str) -> str:
    """The address as sysfs writes it: ``01:00.0`` and ``00000000:01:00.0`` to ``0000:01:00.0``."""
    parts = address.strip().lower().split(":")
    domain = int(parts[-3], 16) if len(parts) == 3 else 0
    return f"{domain:04x}:{parts[-2]}:{parts[-1]}"


def parse_lspci(text: str) -> dict[str, Port]:
    """Ports by address, from ``lspci -vv`` (with or without ``-D``).

    Without root lspci prints ``Capabilities: <access denied>``; such ports have no speeds.
    """
    ports: dict[str, Port] = {}
    for address, name, lines in _sections(text):
        speeds: dict[str, LinkSpeed | None] = {}
        for line in lines:
            if found := _LINK.match(line):
                gen = GENERATIONS.get(float(found[2]))
                speeds.setdefault(found[1], link_speed(gen, int(found[3])))
        ports[address] = Port(
            address=address, name=name, now=speeds.get("Sta"), capable=speeds.get("Cap")
        )
    return ports


def lspci_parents(text: str) -> dict[str, str]:
    """The bridge above each function, by the bus numbers in ``lspci -vv``."""
    bridges: dict[tuple[str, str], str] = {}
    addresses = []
    for address, _, lines in _sections(text):
        addresses.append(address)
        domain = address.split(":")[0]
        for line in lines:
            if (found := _BUSES.match(line)) and int(found[2], 16):
                bridges[domain, found[2].lower()] = address
    parents = {}
    for address in addresses:
        domain, bus, _ = address.split(":")
        if (bridge := bridges.get((domain, bus))) and bridge != address:
            parents[address] = bridge
    return parents


def mark_tunnels(path: Sequence[Port]) -> tuple[Port, ...]:
    """Say which ports of a path are tunnels.

    A tunnel port states 2.5 GT/s as its highest speed, whatever it carries. Without a sign of
    Thunderbolt or USB4 on the path such a port may be an old slot and is left as it is.
    """
    if not any(port.external or _TUNNEL_NAMES.search(port.name) for port in path):
        return tuple(path)
    marked = []
    for position, port in enumerate(path):
        claims = [speed.gen for speed in (port.capable, port.now) if speed]
        tunnel = position > 0 and bool(claims) and max(claims) == 1
        marked.append(replace(port, tunnel=port.tunnel or tunnel))
    return tuple(marked)


def narrowest(path: Sequence[Port], *, capable: bool) -> tuple[Port, LinkSpeed] | None:
    """The port with the least GB/s, tunnels ignored; None where no port states its speed.

    Args:
        path: from the device to the root.
        capable: by the highest speed of the ports, else by their present speed.
    """
    told = []
    for port in path:
        speed = port.capable if capable else port.now
        if speed is not None and not port.tunnel:
            told.append((port, speed))
    return min(told, key=lambda pair: pair[1].gb_s, default=None)


def _sections(text: str) -> list[tuple[str, str, list[str]]]:
    """Address, description and lines of each function."""
    sections: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        if found := _ADDRESS.match(line):
            sections.append((full_address(found[1]), found[2], []))
        elif sections:
            sections[-1][2].append(line)
    return sections


MAX_DEPTH = 32
_FOLDER = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z", re.IGNORECASE)


class Topology:
    """Ports and the bridge above each, from sysfs where it exists and ``lspci -vv``.

    Args:
        sysfs: ``/sys``, or a tree like it.
        run: how ``lspci`` is run.
    """

    def __init__(self, sysfs: Path, run: Runner) -> None:
        self._sysfs = sysfs
        answer = run(("lspci", "-vv", "-D"))
        # Without root the speeds are denied and the exit code may still be 0; names remain.
        self._named = parse_lspci(answer.stdout)
        self._parents = lspci_parents(answer.stdout)
        self.trouble = None if self._named else answer.trouble

    def path(self, address: str) -> tuple[Port, ...]:
        """From the device to the root, tunnels marked; empty where nothing is known of it."""
        addresses = self._addresses(address)
        return mark_tunnels([self._port(found) for found in addresses])

    def name(self, address: str) -> str | None:
        """The description that ``lspci`` gives, without its class; None: it does not say."""
        port = self._named.get(address)
        return port.name.partition(": ")[2] or None if port else None

    def _addresses(self, address: str) -> list[str]:
        device = self._sysfs / "bus/pci/devices" / address
        if device.exists():
            parts = device.resolve().parts
            return [part.lower() for part in reversed(parts) if _FOLDER.match(part)][:MAX_DEPTH]
        found: list[str] = []
        step: str | None = address if address in self._named else None
        while step is not None and step not in found and len(found) < MAX_DEPTH:
            found.append(step)
            step = self._parents.get(step)
        return found

    def _port(self, address: str) -> Port:
        port = self._named.get(address, Port(address=address))
        folder = self._sysfs / "bus/pci/devices" / address
        now = _read_link(folder, "current")
        capable = _read_link(folder, "max")
        external = read_text(folder / "removable") == "removable"
        return replace(
            port, now=now or port.now, capable=capable or port.capable, external=external
        )


def link_facts(path: Sequence[Port], *, state: LinkState, source: str) -> LinkFacts | None:
    """The facts of a path; None where no port states any.

    Args:
        path: from the device to the root, tunnels marked.
        state: whether the device was idle or under load when the path was read.
        source: names sysfs or the command.
    """
    now = narrowest(path, capable=False)
    best = narrowest(path, capable=True)
    if now is None and best is None:
        return None
    facts = LinkFacts(path=tuple(str(port) for port in path))
    where = f"{source}, narrowest of {len(path)} ports"
    if now is not None:
        port, speed = now
        facts = replace(
            facts,
            gen=measured(speed.gen, where),
            width=measured(speed.width, where),
            state=measured(state, source),
            bottleneck=measured(port.address, where),
        )
    if best is not None:
        facts = replace(
            facts,
            max_gen=measured(best[1].gen, where),
            max_width=measured(best[1].width, where),
        )
    return replace(facts, gb_s=_gb_s(path, now, best, state))


def best_of(paths: Sequence[Sequence[Port]]) -> tuple[Port, ...]:
    """One path with the fastest state that each port was seen in, from several readings."""
    if not paths:
        return ()
    best: dict[str, Port] = {}
    for path in paths:
        for port in path:
            seen = best.get(port.address)
            faster = seen is None or _gb(port.now) > _gb(seen.now)
            best[port.address] = port if faster else best[port.address]
    return tuple(best[port.address] for port in paths[0])


def _gb(speed: LinkSpeed | None) -> float:
    return speed.gb_s if speed else 0.0


def _gb_s(
    path: Sequence[Port],
    now: tuple[Port, LinkSpeed] | None,
    best: tuple[Port, LinkSpeed] | None,
    state: LinkState,
) -> Sourced[float]:
    """The link's speed by generation and width: as read under load, else the highest possible."""
    if now is not None and (state is LinkState.UNDER_LOAD or best is None):
        speed, words = now[1], f"{now[1]} as seen {state.value.replace('_', ' ')}"
    else:
        assert best is not None
        speed, words = best[1], f"{best[1]} that the path can do, not seen under load"
    if any(port.tunnel for port in path) and speed.gb_s > TUNNEL_GB_S:
        return assumed(
            round(TUNNEL_GB_S, 3),
            f"behind a Thunderbolt or USB4 tunnel, which carries PCIe 3.0 x4 at 40 Gb/s ({words})",
        )
    return specified(round(speed.gb_s, 3), f"{words}, one direction after encoding")


def _read_link(folder: Path, which: str) -> LinkSpeed | None:
    speed = read_text(folder / f"{which}_link_speed")
    width = read_text(folder / f"{which}_link_width")
    if speed is None or width is None or not width.isdecimal():
        return None
    return link_speed(parse_speed(speed), int(width))


def read_text(path: Path) -> str | None:
    """A small file of sysfs or procfs, stripped; None where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(65_536).decode("utf-8", errors="replace").strip()
    except OSError:
        return None


def read_count(path: Path) -> int | None:
    """A whole number that is not negative; None where there is none."""
    text = read_text(path)
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
