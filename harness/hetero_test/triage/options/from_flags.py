"""The placement of a model on a rig that a command line says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp import flags as llama_flags
from hetero_test.engines.llama_cpp.placement_flags import parse_flags
from hetero_test.engines.strata import flags as strata_flags
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

    from hetero_test.engines.llama_cpp.placement_flags import PlacementFlags
    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import TriageQuestion

PARALLEL_MODES = ("tensor", "graph")
_STRATA = {
    strata_flags.MAIN_DEVICE: llama_flags.DEVICES[0],
    strata_flags.DRAFT_DEVICE: llama_flags.DRAFT_DEVICES[0],
}
"""Strata's flags by those of llama.cpp that say the same; Strata numbers the devices."""


def placement_flags(argv: Iterable[str]) -> PlacementFlags:
    """What a command line of llama.cpp, ik_llama.cpp or Strata says of placement."""
    words = []
    for word in argv:
        name, equals, value = word.partition("=")
        words.append(_STRATA.get(name, name) + equals + value)
    return parse_flags(words)


def placement_from_flags(
    question: TriageQuestion, sizes: ModelBytes, flags: PlacementFlags, splits: int | None
) -> Placement | None:
    """The placement, or None where the flags name what the rig does not have.

    Args:
        question: model and rig.
        sizes: the model's bytes.
        flags: of the whole command line.
        splits: graph splits per token, from the log; None: two per layer that changes device.
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


def _main_devices(question: TriageQuestion, flags: PlacementFlags) -> list[DeviceFacts]:
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


def _named(question: TriageQuestion, name: str) -> DeviceFacts | None:
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
    """Two per layer whose experts are apart from its attention, and one per device."""
    apart = sum(max(0.0, share - where.get(name, 0.0)) for name, share in experts.items())
    return round(2 * apart * len(sizes.expert_layers)) + len(where) + 1


def _staged(question: TriageQuestion, devices: Sequence[DeviceFacts]) -> bool:
    cards = [device for device in devices if not in_system_memory(device)]
    return len(cards) > 1 and not peer_access(question, cards[0], cards[1])
