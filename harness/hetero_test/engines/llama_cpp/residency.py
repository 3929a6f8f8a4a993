"""Where the tensors of a loaded model are: the equality key, and what proves a placement.

The key is the set of tensors for each kind of device, written as ranges of layers: a layer's
tensors are where the layer is, but for those that ``-ot`` moved. The input embedding is always
the CPU's (``load_tensors``: "there is very little benefit to offloading the input layer").
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hetero_test.engines.llama_cpp.devices import CPU, device_of
from hetero_test.values.reading import Residency, Sighting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hetero_test.engines.llama_cpp.log import LlamaLog, LoadedModel
    from hetero_test.values.run import Device

INPUT: Final = "token_embd"
EXPERTS: Final = re.compile(r"^blk\.\d+\.ffn_(?:up|gate|down|gate_up)_(?:ch)?exps\.")
FEED_FORWARD: Final = re.compile(r"^blk\.\d+\.ffn_(?:up|gate|down)\.")
ATTENTION: Final = re.compile(r"^blk\.\d+\.(?:attn|ssm)_")
_ALWAYS_THERE: Final = (re.compile(r"ffn_(?:gate_)?up_?"), re.compile(r"ffn_down_?"))
"""Tensors of every feed-forward, of experts too; a gate is not."""
_LAYER: Final = re.compile(r"^blk\.(\d{1,9})\.(.*)$")
_EMPTY_MIB: Final = 0.005
"""Up to this size a buffer is printed as ``0.00`` and counts as empty."""


class TensorPlaces:
    """The placement of one loaded model on a known rig."""

    def __init__(self, model: LoadedModel, devices: Sequence[Device]) -> None:
        self.model = model
        self._devices = tuple(devices)
        self._kinds = {CPU: CPU, **{device.id: device.kind for device in devices}}
        self.output = max(model.layers, default=-1)

    def device(self, buffer: str) -> str:
        """The device of a buffer type, or of a device's own name."""
        return device_of(buffer, self._devices)

    def kind(self, buffer: str) -> str:
        """The kind of the device of a buffer type."""
        device = self.device(buffer)
        if device == "Meta()":
            parts = [self.kind(name) for name in self.model.using if name != device]
            return f"tensor split over {' and '.join(parts)}"
        return self._kinds.get(device, device)

    def where(self, layer: int, tensor: re.Pattern[str]) -> list[str]:
        """The devices that hold a layer's tensors of one role, as buffer types."""
        moved = {
            name: buffer
            for name, buffer in self.model.overrides.items()
            if tensor.match(name) and (found := _LAYER.match(name)) and int(found[1]) == layer
        }
        # Only what was moved is told. What every block of feed-forward has, and is not among
        # it, stayed with the layer.
        parts = () if tensor is ATTENTION else _ALWAYS_THERE
        if moved and all(any(part.search(name) for name in moved) for part in parts):
            return [*moved.values()]
        return [self.model.layers[layer], *moved.values()]

    def blocks(self) -> list[int]:
        """Every layer but the output layer, in order."""
        return sorted(layer for layer in self.model.layers if layer != self.output)


def residency(log: LlamaLog, devices: Sequence[Device]) -> Residency:
    """The residency of the model under test; unknown where the log does not tell it.

    From the debug lines, which name every tensor's place, else from the sizes of buffers.

    Args:
        log: what one run's log says.
        devices: of the rig, whose kinds count.
    """
    model = log.main
    if model is None:
        return Residency(unknown="no line tells that a model was loaded")
    if log.overflow:
        return Residency(unknown="the log names more tensors than a model has")
    tensors = TensorPlaces(model, devices)
    facts = _by_tensor(tensors) if model.layers else _by_size(tensors)
    if not facts:
        return Residency(unknown="no line tells where the model's tensors are")
    facts = (*facts, *_moved(tensors), *_computing(tensors))
    label = _label(tensors) if model.layers else _said(facts)
    # Another residency is another placement over kinds of devices: never claimed to be equal.
    return Residency(facts=facts, main_kind=_said(facts), label=label)


_MOVED = "unsupported where wanted"
_COMPUTE = "computing"
_CLASSES = ((EXPERTS, "experts"), (FEED_FORWARD, "feed-forward"), (ATTENTION, "attention"))


def _said(facts: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{name}: {what}" for name, what in facts)


def _label(tensors: TensorPlaces) -> str:
    """The key in few words: classes of tensors in place of their names."""

    def class_of(role: str) -> str:
        name = f"blk.0.{role}"
        return next((word for pattern, word in _CLASSES if pattern.match(name)), role)

    return _said(
        [
            (kind, ", ".join(part for part in what.split(", ") if not part.startswith("no ")))
            for kind, what in _by_tensor(tensors, class_of)
        ]
    )


def _by_tensor(
    tensors: TensorPlaces, name_of: Callable[[str], str] = str
) -> tuple[tuple[str, str], ...]:
    """Tensors by kind of device, from the debug lines."""
    model = tensors.model
    parts: dict[str, dict[str, set[int]]] = {}

    def put(kind: str, part: str, layer: int) -> None:
        parts.setdefault(kind, {}).setdefault(part, set()).add(layer)

    input_buffer = next((b for n, b in model.overrides.items() if n.startswith(INPUT)), CPU)
    put(tensors.kind(input_buffer), "input", -1)
    for layer, device in model.layers.items():
        put(tensors.kind(device), "output" if layer == tensors.output else "layers", layer)
    for tensor, buffer in model.overrides.items():
        found = _LAYER.match(tensor)
        layer = int(found[1]) if found else tensors.output
        home = model.layers.get(layer)
        if tensor.startswith(INPUT) or home is None or tensors.kind(home) == tensors.kind(buffer):
            continue
        role = name_of(found[2] if found else tensor)
        put(tensors.kind(buffer), role, layer)
        put(tensors.kind(home), f"no {role}", layer)
    for layer, device in model.contexts[0].kv_layers.items() if model.contexts else ():
        put(tensors.kind(device), "KV", layer)
    return tuple(
        (kind, ", ".join(_part(name, found[name]) for name in sorted(found, key=_rank)))
        for kind, found in sorted(parts.items())
    )


def _rank(part: str) -> tuple[int, str]:
    first = ("input", "layers", "output", "KV")
    return (first.index(part) if part in first else len(first), part)


def _part(name: str, layers: set[int]) -> str:
    return name if name in {"input", "output"} else f"{name} {ranges(layers)}"


def ranges(numbers: Iterable[int]) -> str:
    """Whole numbers as ranges joined by ``+``: 0, 1, 2, 3 and 7 are ``0-3+7``."""
    out: list[list[int]] = []
    for number in sorted(numbers):
        if out and number == out[-1][1] + 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return "+".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def _by_size(tensors: TensorPlaces) -> tuple[tuple[str, str], ...]:
    """Bytes by kind of device, from the buffer lines of builds that tell no more."""
    model = tensors.model
    sizes: dict[str, list[float]] = {}
    kv = model.contexts[0].kv_mib if model.contexts else {}
    for column, table in enumerate((model.weights_mib, kv)):
        for buffer, mib in table.items():
            sizes.setdefault(tensors.kind(buffer), [0.0, 0.0])[column] += mib
    return tuple(
        (kind, f"{weights:.2f} MiB of weights, {cache:.2f} MiB of KV")
        for kind, (weights, cache) in sorted(sizes.items())
    )


def _moved(tensors: TensorPlaces) -> tuple[tuple[str, str], ...]:
    """Tensors that the wanted device cannot hold; which ones is told of the first only."""
    found = [
        f"{moved.tensor} and {moved.others} more in {tensors.kind(moved.used)}, "
        f"not {tensors.kind(moved.preferred)}"
        for moved in tensors.model.moved
        if tensors.kind(moved.used) != tensors.kind(moved.preferred)
        and not (moved.tensor.startswith(INPUT) and moved.others == 0)
    ]
    return ((_MOVED, "; ".join(sorted(found))),) if found else ()


def _computing(tensors: TensorPlaces) -> tuple[tuple[str, str], ...]:
    """Kinds with room to compute in: a prompt may be computed away from its weights."""
    model = tensors.model
    if not model.contexts:
        return ()
    kinds = {
        tensors.kind(buffer)
        for buffer, mib in model.contexts[0].compute_mib.items()
        if mib > _EMPTY_MIB
    }
    return ((_COMPUTE, ", ".join(sorted(kinds))),) if kinds else ()


def places(log: LlamaLog, devices: Sequence[Device]) -> dict[str, str]:
    """Layers, weights and KV cache by device, of the model and of its drafter.

    Sizes tell what moved within a layer, layers what moved between two devices of one size.
    """
    found = {}
    for name, model in (("main", log.main), ("draft", log.draft)):
        if model is None:
            continue
        where = TensorPlaces(model, devices)
        layers = Counter(where.device(buffer) for buffer in model.layers.values())
        if layers:
            found[name] = ", ".join(f"{layers[device]} on {device}" for device in sorted(layers))
        context = model.contexts[0] if model.contexts else None
        found[f"weights of {name}"] = _sizes(where, model.weights_mib)
        if context is not None:
            found[f"KV of {name}"] = _sizes(where, context.kv_mib)
    return {part: place for part, place in found.items() if place}


def _sizes(where: TensorPlaces, mib: Mapping[str, float]) -> str:
    held: Counter[str] = Counter()
    for buffer, size in mib.items():
        held[where.device(buffer)] += round(size * 100)
    return ", ".join(f"{held[name] / 100:.2f} MiB on {name}" for name in sorted(held) if held[name])


def sightings(log: LlamaLog, devices: Sequence[Device]) -> tuple[Sighting, ...]:
    """Where the log shows each part of the placement: devices joined by ``+`` in layer order.

    Parts are ``main``, ``experts`` (of a dense model ``feed-forward``), ``attention``, ``kv`` and
    ``draft``, as the matrices name them; none where no model was loaded.
    """
    model = log.main
    if model is None:
        return ()
    tensors = TensorPlaces(model, devices)
    blocks = tensors.blocks()
    found = [_every_weight(tensors, "main")]
    if model.experts:
        found.append(_weights(tensors, "experts", _role(tensors, EXPERTS), blocks))
    else:
        found.append(_weights(tensors, "feed-forward", _role(tensors, FEED_FORWARD), blocks))
    found.append(_weights(tensors, "attention", _role(tensors, ATTENTION), blocks))
    found.append(_kv(tensors))
    found += _draft(log, devices)
    return tuple(found)


def _role(tensors: TensorPlaces, tensor: re.Pattern[str]) -> Callable[[int], list[str]]:
    return lambda layer: tensors.where(layer, tensor)


def _every_weight(tensors: TensorPlaces, part: str) -> Sighting:
    """A model's weights, each counted but for the input embedding.

    The output is no layer that computes: a device that holds it and nothing else is told apart.
    """
    model = tensors.model
    if not model.layers:
        return _weights_by_size(tensors, part)
    elsewhere = _away(tensors)
    seen = _weights(
        tensors,
        part,
        lambda layer: [model.layers[layer], *elsewhere.get(layer, ())],
        tensors.blocks(),
    )
    told = (seen.value or "").split("+")
    held = {tensors.device(buffer) for buffer, mib in model.weights_mib.items() if mib > _EMPTY_MIB}
    last = [
        tensors.device(name) for name in (model.layers[tensors.output], *elsewhere[tensors.output])
    ]
    alone = [
        f"{name} (the output alone)"
        for name in dict.fromkeys(last)
        if name in held.difference(told)
    ]
    return replace(seen, value="+".join([*told, *alone]))


def _away(tensors: TensorPlaces) -> Mapping[int, Sequence[str]]:
    """The buffers of a layer's tensors that lie elsewhere than the layer, by layer."""
    model = tensors.model
    found: dict[int, list[str]] = {tensors.output: []}
    for tensor, buffer in (
        *model.overrides.items(),
        *((moved.tensor, moved.used) for moved in model.moved),
    ):
        layer = _LAYER.match(tensor)
        if not tensor.startswith(INPUT):
            found.setdefault(int(layer[1]) if layer else tensors.output, []).append(buffer)
    return found


def _weights(
    tensors: TensorPlaces, part: str, where: Callable[[int], list[str]], blocks: Sequence[int]
) -> Sighting:
    """Weights of one role: the debug lines say where, the buffer lines prove it."""
    model = tensors.model
    if not blocks:
        return _weights_by_size(tensors, part)
    wanted = dict.fromkeys(tensors.device(buffer) for layer in blocks for buffer in where(layer))
    held = {tensors.device(buffer) for buffer, mib in model.weights_mib.items() if mib > _EMPTY_MIB}
    seen = [device for device in wanted if device in held]
    line = _line(model, "model buffer size", [*seen, *wanted], tensors)
    return Sighting(part=part, value="+".join(seen) or "no buffer", line=line)


def _weights_by_size(tensors: TensorPlaces, part: str) -> Sighting:
    """Without debug lines: devices that hold weights; of single roles nothing is told."""
    model = tensors.model
    held = [tensors.device(buffer) for buffer, mib in model.weights_mib.items() if mib > _EMPTY_MIB]
    away = list(dict.fromkeys(device for device in held if device != CPU))
    # The CPU's buffer holds the input embedding in any case; only the count tells of layers, and
    # the lines on single tensors of those.
    moved = {tensors.device(name) for names in _away(tensors).values() for name in names}
    left = [CPU] if away and (model.partly_offloaded or CPU in moved) else []
    value = "+".join([*left, *away] or dict.fromkeys(held))
    line = _line(model, "buffer size", away or held, tensors)
    told = part in {"main", "draft"}
    return Sighting(part=part, value=(value or None) if told else None, line=line)


def _kv(tensors: TensorPlaces) -> Sighting:
    model = tensors.model
    context = model.contexts[0] if model.contexts else None
    if context is None:
        return Sighting(part="kv", value=None, line="")
    by_layer = [tensors.device(context.kv_layers[layer]) for layer in sorted(context.kv_layers)]
    held = [tensors.device(buffer) for buffer, mib in context.kv_mib.items() if mib > _EMPTY_MIB]
    seen = [device for device in dict.fromkeys(by_layer or held) if device in held]
    return Sighting(
        part="kv",
        value="+".join(seen) or None,
        line=_line(model, "KV buffer size", seen, tensors),
    )


def _draft(log: LlamaLog, devices: Sequence[Device]) -> list[Sighting]:
    """Where the drafter is; one that drafted nothing is nowhere, whatever memory it holds."""
    model = log.draft
    idle = not log.drafts.offered
    if model is None:
        if not log.drafting:
            return []
        # Heads of the model itself draft where the model is.
        main = log.main
        assert main is not None
        where = TensorPlaces(main, devices)
        last = where.device(main.layers[where.output]) if main.layers else None
        line = next((line for line in log.lines if "speculative implementation" in line), "")
        return [Sighting(part="draft", value="nothing drafted" if idle else last, line=line)]
    tensors = TensorPlaces(model, devices)
    if not idle:
        return [_every_weight(tensors, "draft")]
    line = next((line for line in log.lines if "speculat" in line), model.path)
    return [Sighting(part="draft", value="nothing drafted", line=line)]


def _line(model: LoadedModel, words: str, devices: Sequence[str], tensors: TensorPlaces) -> str:
    """The log line on a buffer of the first device that has one."""
    told = {
        tensors.device(name): line
        for line in reversed(model.lines)
        if words in line
        for name in (_buffer_name(line),)
    }
    return next((told[device] for device in devices if device in told), "")


def _buffer_name(line: str) -> str:
    """``I load_tensors:   CPU_Mapped model buffer size = …`` to ``CPU_Mapped``."""
    found = re.search(r"(\S+) +(?:model |KV |RS |compute )?buffer size", line)
    return found[1] if found else ""
