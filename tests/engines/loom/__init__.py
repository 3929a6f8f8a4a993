"""A third engine, of another shape than the two that are shipped.

It weaves on lanes of a wood, has no expert cache, no ordinals and no draft head, and tells what
it does in JSON events. Nothing of the product knows a word of it: what the road asks about a run
is in the :class:`Reading` that :meth:`Loom.read` hands over, or the road can do without it.
"""

# ruff: noqa: ARG002 - it answers all that the protocol asks, and needs little of what it is given
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetero_test.engines.base import Binaries, Survey
from hetero_test.errors import EngineNotFoundError
from hetero_test.values.reading import (
    Factor,
    Place,
    Reading,
    Residency,
    Row,
    Sighting,
    Sign,
    Symptom,
    TokenChance,
)
from hetero_test.values.run import Device

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hetero_test.engines.base import LaunchedCell
    from hetero_test.launch.dialogue import Dialogue
    from hetero_test.values.run import Probe

PROGRAM = Path(__file__).with_name("program.py")
SCRIPT = "script.json"
LANES = ("east", "west")


class Loom:
    """All that an engine has to say; it can force no size, and says nothing of it."""

    name = "loom"
    probe_vocabulary = 50021
    drafter_flags = "--shuttle FILE"

    def find(self, build_dir: Path) -> Binaries:
        """The script stands for the binary."""
        script = build_dir.absolute() / SCRIPT
        if not script.is_file():
            raise EngineNotFoundError(f"no {SCRIPT} in {build_dir}")
        return Binaries(engine=script, device_tool=None, build_dir=build_dir.absolute())

    def survey(
        self,
        binaries: Binaries,
        flags: Sequence[str],
        *,
        devices: int | None,
        kinds: Mapping[str, str],
        fast: str | None,
    ) -> Survey:
        """Two lanes, whatever is asked."""
        lanes = tuple(Device(id=lane, name=f"lane {lane}", kind="oak") for lane in LANES)
        return Survey(devices=lanes, device_count=2, how="two lanes", known_flags=None)

    def has_drafter(self, flags: Sequence[str]) -> bool:
        """Never."""
        return False

    def has_experts(self, flags: Sequence[str]) -> bool | None:
        """Nobody asks."""
        return None

    def vocabulary(self, flags: Sequence[str]) -> int | None:
        """Told by nothing."""
        return None

    def placeholders(
        self, survey: Survey, flags: Sequence[str], device: Device | None
    ) -> Mapping[str, str]:
        """A lane's name."""
        return {} if device is None else {"device": device.id}

    def combine(self, flags: Sequence[str], variant_flags: Sequence[str]) -> tuple[str, ...]:
        """One after the other."""
        return (*flags, *variant_flags)

    def cannot_fit(self, survey: Survey, flags: Sequence[str]) -> str | None:
        """Everything fits."""
        return None

    def command(
        self, binaries: Binaries, flags: Sequence[str], probe: Probe, *, probe_file: Path
    ) -> tuple[str, ...]:
        """The program with its script, the flags, and the length at the end."""
        python = (sys.executable, "-I", "-S", str(PROGRAM))
        return (*python, str(binaries.engine), *flags, "--length", str(probe.max_new))

    def dialogue(self, command: Sequence[str], probe: Probe, folder: Path) -> Dialogue | None:
        """It ends by itself."""
        return None

    def read(self, stdout: Path, stderr: Path, asked: LaunchedCell) -> Reading:
        """The events, of which the last of a name counts."""
        lines = stdout.read_text(encoding="utf-8").splitlines()
        events: dict[str, dict[str, Any]] = {}
        for line in lines:
            event = json.loads(line)
            events[event["event"]] = event | {"line": line}
        laid, cloth = events["laid"], events.get("cloth")
        ids = None if cloth is None else tuple(cloth["ids"])
        snapped, fray = events.get("snapped"), events.get("fray")
        signs = [Sign(symptom=Symptom.ERROR, line=e["line"]) for e in (snapped, fray) if e]
        return Reading(
            stream=ids,
            echo_expected=False,
            signs=tuple(signs),
            residency=_residency(events),
            main=Place(device=laid["lane"], kind=laid["wood"], line=laid["line"]),
            movers=_factors(events, "threads", "the order of the threads"),
            causes=_factors(events, "halved", "its rows are kept at half width"),
            rows=(Row(label="spools", value=_value(events, "spools"), unit="kg"),),
            sightings=(Sighting(part="main", value=laid["lane"], line=laid["line"]),),
            chances=_chances(events, ids),
            chances_trouble=_value(events, "worthless"),
            version=events["loom"]["build"],
            lines=(laid["line"],),
            tail=tuple(lines[-3:]),
        )


def _value(events: Mapping[str, Any], name: str) -> Any:
    return events[name]["value"] if name in events else None


def _factors(events: Mapping[str, Any], name: str, words: str) -> tuple[Factor, ...]:
    value = _value(events, name)
    return () if value is None else (Factor(name=name, value=value, words=words),)


def _residency(events: Mapping[str, Any]) -> Residency:
    if "rows" not in events:
        return Residency(unknown="no event tells the beams")
    beams, wood = events["rows"]["beams"], events["laid"]["wood"]
    return Residency(facts=(("beams", beams),), main_kind=wood, label=f"{beams} on {wood}")


def _chances(
    events: Mapping[str, Any], ids: tuple[int, ...] | None
) -> tuple[TokenChance, ...] | None:
    """Every id at its worth, with its neighbour close behind."""
    if "worth" not in events or ids is None:
        return None
    tops = [tuple((token, worth) for token, worth in top) for top in events["worth"]["tops"]]
    return tuple(TokenChance(id=top[0][0], logprob=top[0][1], top=top) for top in tops)
