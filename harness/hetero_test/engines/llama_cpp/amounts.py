"""How much of a model is where: layers by device, and MiB by device and use."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from hetero_test.engines.llama_cpp.residency import TensorPlaces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hetero_test.engines.llama_cpp.log import LlamaLog
    from hetero_test.values.run import Device


def layers_text(log: LlamaLog, devices: Sequence[Device]) -> str | None:
    """``1 of 4 on RPC0, 3 of 4 on CPU``: how much of the model is where, in order of layers."""
    model = log.main
    if model is None or not model.layers:
        return None
    where = TensorPlaces(model, devices)
    held = Counter(where.device(model.layers[layer]) for layer in sorted(model.layers))
    return ", ".join(f"{count} of {held.total()} on {device}" for device, count in held.items())


_USES: Final = ("model", "KV", "compute")
_GIB: Final = 1024


def memory(log: LlamaLog, devices: Sequence[Device]) -> Mapping[tuple[str, str], float]:
    """MiB by device and use, such as ``("RPC0", "model")``; the draft model's uses apart."""
    out: dict[tuple[str, str], float] = {}
    for model in log.models:
        tensors = TensorPlaces(model, devices)
        who = "draft " if model.draft else ""
        tables = [("model", model.weights_mib)]
        for context in model.contexts:
            tables += [("KV", context.kv_mib), ("compute", context.compute_mib)]
        for use, table in tables:
            for buffer, mib in table.items():
                key = (tensors.device(buffer), who + use)
                out[key] = round(out.get(key, 0.0) + mib, 2)
    return out


def memory_text(sizes: Mapping[tuple[str, str], float]) -> str | None:
    """``RPC0 2.63 / 1.00 / 3.26 MiB`` for weights, KV and compute; the draft model's apart."""
    found: dict[str, dict[str, float]] = {}
    for (device, use), mib in sizes.items():
        who = "draft " if use.startswith("draft ") else ""
        found.setdefault(who + device, {})[use.removeprefix(who)] = mib
    return "; ".join(f"{name} {_sum(parts)}" for name, parts in found.items()) or None


def _sum(sizes: Mapping[str, float]) -> str:
    unit, name = (_GIB, "GiB") if max(sizes.values()) >= _GIB else (1, "MiB")
    return " / ".join(f"{sizes.get(use, 0) / unit:.2f}" for use in _USES) + f" {name}"
