"""The way from a device to the root, by sysfs and ``lspci``, and its facts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.triage.links import (
    TUNNEL_GB_S,
    LinkSpeed,
    Port,
    link_speed,
    lspci_parents,
    mark_tunnels,
    narrowest,
    parse_lspci,
    parse_speed,
)
from harness.triage.rigfile import LinkFacts, LinkState
from harness.triage.sourced import Sourced, assumed, measured, specified

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.triage.tools import Runner

MAX_DEPTH = 32
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z", re.IGNORECASE)


class Topology:
    """Ports and who is above whom, from sysfs where it is there and ``lspci -vv``.

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
            return [part.lower() for part in reversed(parts) if _ADDRESS.match(part)][:MAX_DEPTH]
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
    """What a path says; None where no port tells anything.

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
    """The link's speed by its generation and width: seen under load, else what it can do."""
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
