"""Placement flags of an engine's command line: which say the same, and what they place where.

Read are the flags of llama.cpp and ik_llama.cpp that decide a placement, and Strata's devices.
A later flag overrides an earlier one, but for ``-ot``, whose rules add up.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAMES = {
    "--device": "dev",
    "-dev": "dev",
    "--main-device": "dev",
    "--split-mode": "sm",
    "-sm": "sm",
    "--tensor-split": "ts",
    "-ts": "ts",
    "--main-gpu": "mg",
    "-mg": "mg",
    "--gpu-layers": "ngl",
    "--n-gpu-layers": "ngl",
    "-ngl": "ngl",
    "--n-cpu-moe": "ncmoe",
    "-ncmoe": "ncmoe",
    "--override-tensor": "ot",
    "-ot": "ot",
    "--device-draft": "devd",
    "--spec-draft-device": "devd",
    "--draft-device": "devd",
    "-devd": "devd",
    "--spec-type": "spec",
    "--spec-draft-n-max": "draft",
    "--draft-max": "draft",
    "--draft": "draft",
}
"""Flags with a value, by what they say."""
SWITCHES = {"--cpu-moe": "cmoe", "-cmoe": "cmoe"}
ALL_LAYERS = 99
"""``-ngl`` from which all layers are meant, as people write it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementFlags:
    """What a command line says of placement; None: not said."""

    devices: tuple[str, ...] | None = None
    split_mode: str | None = None
    shares: tuple[float, ...] | None = None
    main_gpu: str | None = None
    gpu_layers: int | None = None
    cpu_expert_layers: int | None = None
    all_experts_on_cpu: bool = False
    rules: tuple[tuple[str, str], ...] = ()
    """Expression and buffer type, in the order in which they count."""
    draft_devices: tuple[str, ...] | None = None
    drafts: bool = False

    @property
    def says_something(self) -> bool:
        """Whether it places anything at all."""
        return self != PlacementFlags()

    def expert_device(self, layer: int) -> str | None:
        """Where a rule puts the routed experts of a layer; None: no rule does."""
        name = f"blk.{layer}.ffn_down_exps.weight"
        for expression, buffer_type in self.rules:
            try:
                if re.search(expression, name):
                    return buffer_type
            except re.error:
                continue
        if self.all_experts_on_cpu or layer < (self.cpu_expert_layers or 0):
            return "CPU"
        return None


def parse_flags(argv: Sequence[str]) -> PlacementFlags:
    """What an argument vector says of placement; everything else is passed over."""
    said: dict[str, str] = {}
    rules: list[tuple[str, str]] = []
    words = list(_split_equals(argv))
    for index, word in enumerate(words):
        if word in SWITCHES:
            said[SWITCHES[word]] = "1"
        name = NAMES.get(word)
        if name is None or index + 1 >= len(words):
            continue
        value = words[index + 1]
        if name == "ot":
            rules += [_rule(rule) for rule in value.split(",") if "=" in rule]
        else:
            said[name] = value
    return PlacementFlags(
        devices=_listed(said.get("dev")),
        split_mode=said.get("sm"),
        shares=_numbers(said.get("ts")),
        main_gpu=said.get("mg"),
        gpu_layers=_whole(said.get("ngl")),
        cpu_expert_layers=_whole(said.get("ncmoe")),
        all_experts_on_cpu="cmoe" in said,
        rules=tuple(rules),
        draft_devices=_listed(said.get("devd")),
        drafts="spec" in said or "devd" in said or "draft" in said,
    )


def parse_text(text: str) -> PlacementFlags:
    """The same of flags as they stand in a prediction or are pasted into a shell."""
    try:
        return parse_flags(shlex.split(text))
    except ValueError:
        return PlacementFlags()


def same_placement(first: PlacementFlags, second: PlacementFlags) -> bool:
    """Whether two command lines place the same; one that says nothing equals nothing."""
    return first.says_something and _signature(first) == _signature(second)


def _signature(flags: PlacementFlags) -> tuple[object, ...]:
    layers = flags.gpu_layers
    shares = flags.shares
    total = sum(shares) if shares else 0.0
    return (
        flags.devices,
        flags.split_mode or "layer",
        None if not shares or not total else tuple(round(s / total, 3) for s in shares),
        None if layers is None or layers >= ALL_LAYERS else layers,
        flags.cpu_expert_layers,
        flags.all_experts_on_cpu,
        flags.rules,
        flags.draft_devices,
        flags.drafts,
    )


def _split_equals(argv: Iterable[str]) -> Iterable[str]:
    """``--flag=value`` as two words, for the flags that are read here."""
    for word in argv:
        name, equals, value = word.partition("=")
        if equals and name in NAMES:
            yield name
            yield value
        else:
            yield word


def _rule(text: str) -> tuple[str, str]:
    expression, _, buffer_type = text.rpartition("=")
    return expression, buffer_type


def _listed(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part for part in text.split(",") if part)


def _numbers(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in re.split(r"[,/]", text) if part)
    except ValueError:
        return None


def _whole(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
