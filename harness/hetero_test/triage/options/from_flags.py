"""Placement flags of an engine's command line: which say the same, and what they place where.

Read are the flags of llama.cpp and ik_llama.cpp that decide a placement, and Strata's devices.
A later flag overrides an earlier one, but for ``-ot``, whose rules add up.

The placement that an engine's flags say, of a model on a rig.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.triage.cost.memory import in_system_memory
from hetero_test.triage.cost.placement import Placement, Read
from hetero_test.triage.options.alone import reads_on
from hetero_test.triage.options.devices import (
    accelerators,
    device_of,
    host,
    is_cpu,
    peer_access,
    told_us,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import Question

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


PARALLEL_MODES = ("tensor", "graph")


def flagged_placement(
    question: Question, sizes: ModelBytes, flags: PlacementFlags, splits: int | None
) -> Placement | None:
    """The placement, or None where the flags name what the rig does not have.

    Args:
        question: model and rig.
        sizes: the model's bytes.
        flags: of the whole command line.
        splits: graph splits a token from the log; None: two a layer that changes device.
    """
    main = _main_devices(question, flags)
    if not main:
        return None
    share = _shares(main, flags)
    on_gpu = 1.0
    if flags.gpu_layers is not None and not any(is_cpu(device) for device in main):
        on_gpu = min(1.0, flags.gpu_layers / max(1, sizes.layers))
    cpu = host(question.rig)
    where = {device.id: part * on_gpu for device, part in zip(main, share, strict=True)}
    if on_gpu < 1.0:
        if cpu is None:
            return None
        where[cpu.id] = where.get(cpu.id, 0.0) + 1 - on_gpu
    experts = _experts(sizes, flags, where)
    if experts is None:
        return None
    names = [name for name in {**where, **experts} if where.get(name) or experts.get(name)]
    devices = [question.rig.device(name) for name in names]
    if any(device is None for device in devices):
        return None
    used = [device for device in devices if device is not None]
    parallel = flags.split_mode in PARALLEL_MODES and len(main) > 1
    counted = float(splits if splits is not None else _splits(sizes, where, experts))
    return Placement(
        devices=tuple(device_of(device, sizes.expert_quantization) for device in used),
        shape=sizes.shape,
        reads=_reads(sizes, names, where, experts),
        parallel=parallel,
        splits=0.0 if parallel else counted,
        staged_splits=counted if not parallel and _staged(question, used) else 0.0,
        all_reduces=2.0 * sizes.layers if parallel else 0.0,
        split_us=told_us(question.rig.sync_us),
        layer_us=told_us(question.rig.layer_us),
        cpu_layer_us=told_us(question.rig.cpu_layer_us),
        main_class=used[0].device_class.value,
    )


def _main_devices(question: Question, flags: PlacementFlags) -> list[DeviceFacts]:
    """Devices that layers are laid over."""
    cpu = host(question.rig)
    if flags.gpu_layers == 0 or flags.devices == ("none",):
        return [] if cpu is None else [cpu]
    cards = accelerators(question.rig)
    if flags.devices is not None:
        named = [_named(question, name) for name in flags.devices]
        found = [device for device in named if device is not None]
        return found if len(found) == len(named) else []
    if flags.split_mode == "none":
        index = int(flags.main_gpu) if (flags.main_gpu or "0").isdecimal() and flags.main_gpu else 0
        by_name = sorted(cards, key=lambda device: device.id)
        return by_name[index : index + 1]
    return sorted(cards, key=lambda device: device.id) or ([cpu] if cpu is not None else [])


def _named(question: Question, name: str) -> DeviceFacts | None:
    """A device by its id, or by its number among the accelerators (Strata)."""
    device = question.rig.device(name)
    if device is None and name.isdecimal():
        by_name = sorted(accelerators(question.rig), key=lambda d: d.id)
        device = by_name[int(name)] if int(name) < len(by_name) else None
    return device


def _shares(devices: Sequence[DeviceFacts], flags: PlacementFlags) -> list[float]:
    """Share of the layers by device: ``-ts``, else by free memory, else equal."""
    if flags.split_mode == "none":
        return [1.0, *([0.0] * (len(devices) - 1))]
    if flags.shares and len(flags.shares) >= len(devices):
        told = list(flags.shares[: len(devices)])
    else:
        memory = [device.free_bytes or device.memory_bytes for device in devices]
        told = [1.0 if fact is None else float(fact.value) for fact in memory]
    return [part / sum(told) for part in told] if sum(told) else [1.0, *([0.0] * (len(told) - 1))]


def _experts(
    sizes: ModelBytes, flags: PlacementFlags, where: Mapping[str, float]
) -> dict[str, float] | None:
    """Share of the routed experts by device; None: a rule names an unknown buffer."""
    if not sizes.expert_layers:
        return {}
    found: dict[str, float] = {}
    for layer, size in zip(sizes.expert_layers, sizes.expert_layer_bytes, strict=True):
        part = size / sizes.experts_bytes
        device = flags.expert_device(layer)
        if device is not None:
            found[device] = found.get(device, 0.0) + part
            continue
        for name, share in where.items():
            found[name] = found.get(name, 0.0) + part * share
    return found


def _reads(
    sizes: ModelBytes,
    names: Sequence[str],
    where: Mapping[str, float],
    experts: Mapping[str, float],
) -> tuple[Read, ...]:
    return tuple(
        part
        for name in names
        for part in reads_on(
            name,
            sizes,
            trunk=where.get(name, 0.0),
            experts=experts.get(name, 0.0),
            kv=where.get(name, 0.0),
        )
    )


def _splits(sizes: ModelBytes, where: Mapping[str, float], experts: Mapping[str, float]) -> int:
    """Two a layer whose experts are apart from its attention, and one a device."""
    apart = sum(max(0.0, share - where.get(name, 0.0)) for name, share in experts.items())
    return round(2 * apart * len(sizes.expert_layers)) + len(where) + 1


def _staged(question: Question, devices: Sequence[DeviceFacts]) -> bool:
    cards = [device for device in devices if not in_system_memory(device)]
    return len(cards) > 1 and not peer_access(question, cards[0], cards[1])
