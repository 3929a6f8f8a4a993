"""The model-facts file, read and written; equal layers stand once, with their numbers."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from hetero_test.formats.examples import HINTS, Example
from hetero_test.rig.facts_toml import FactsFile, document
from hetero_test.triage.model.facts import LayerFacts, LayerKind, ModelFacts, Role, RoleBytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hetero_test.formats.toml_lines import Located

HEADER = """\
# A model for `hetero-test triage --model-facts FILE`. Layers that are alike stand together
# under one `index`, such as "0-2, 5"; sizes are those of one layer.
"""
LAYER_LISTS = ("layers", "nextn_layers")
MAX_LAYERS = 4096
"""No model has more blocks; a larger index is a mistake that would fill the memory."""

_FILE = FactsFile(ModelFacts, "model-facts file", hint=HINTS[Example.MODEL])
_RANGE = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?\Z")


def load_model_facts(path: Path) -> ModelFacts:
    """Read a model-facts file, for when the model itself is elsewhere.

    Raises:
        MatrixError: the file is not TOML of this form; each complaint names file and line.
        UsageError: the file cannot be read.
    """
    located = _FILE.open(path)
    tables: dict[str, Any] = dict(located.data)
    tables.setdefault("source", str(path))
    tables.setdefault("completeness", "told")
    written_as: dict[tuple[str | int, ...], tuple[str | int, ...]] = {}
    complaints: list[str] = []
    for key in LAYER_LISTS:
        if not isinstance(groups := tables.get(key), list):
            continue
        layers: list[Any] = []
        for position, group in enumerate(groups):
            try:
                expanded = _expand(group)
            except ValueError as error:
                complaints.append(located.complaint((key, position, "index"), str(error)))
                expanded = []
            for layer in expanded:
                written_as[key, len(layers)] = (key, position)
                layers.append(layer)
        tables[key] = layers
    if complaints:
        raise _FILE.complain(tuple(complaints))
    model = _FILE.validate(located, tables, written_as)
    if complaints := _cross_checks(model, located, written_as):
        raise _FILE.complain(tuple(complaints))
    return replace(
        model,
        layers=tuple(sorted(model.layers, key=lambda layer: layer.index)),
        nextn_layers=tuple(sorted(model.nextn_layers, key=lambda layer: layer.index)),
    )


def dump_model_facts(model: ModelFacts) -> str:
    """The model as TOML text that `load_model_facts` reads back to an equal value."""
    tables: dict[str, Any] = {}
    for field in fields(model):
        value = getattr(model, field.name)
        if value is None or value == field.default:
            continue
        tables[field.name] = _grouped(value) if field.name in LAYER_LISTS else value
    tables["completeness"] = model.completeness
    return HEADER + "\n" + document(tables, inline=(RoleBytes,))


def _expand(group: Any) -> list[Any]:
    """One table per layer, for a group whose index is a number or a list such as ``0-2, 5``."""
    if not isinstance(group, dict) or not isinstance(index := group.get("index"), str):
        return [group]
    numbers: list[int] = []
    for part in index.split(","):
        found = _RANGE.match(part)
        if found is None:
            raise ValueError(f'not a list of layers: {index!r}; write it as "0-2, 5"')
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first or last >= MAX_LAYERS or len(numbers) > MAX_LAYERS:
            raise ValueError(f"no such range of layers: {part.strip()!r}")
        numbers.extend(range(first, last + 1))
    return [{**group, "index": number} for number in numbers]


def _grouped(layers: Sequence[LayerFacts]) -> list[dict[str, Any]]:
    """Layers that differ only in their number, together, in the order of their first."""
    groups: dict[LayerFacts, list[int]] = {}
    for layer in layers:
        groups.setdefault(replace(layer, index=0), []).append(layer.index)
    written = []
    for alike, numbers in groups.items():
        table: dict[str, Any] = {"index": _ranges(numbers)}
        for field in fields(alike):
            value = getattr(alike, field.name)
            if field.name != "index" and value != field.default:
                table[field.name] = value
        written.append(table)
    return written


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers in order as text: ``0-2, 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


def _cross_checks(model: ModelFacts, located: Located, written_as: dict[Any, Any]) -> list[str]:
    """Complaints about fields that contradict each other."""
    found: list[str] = []

    def complain(what: str, *where: str | int) -> None:
        path = (*written_as.get(where[:2], where[:2]), *where[2:])
        found.append(located.complaint(path, what))

    if model.n_embd <= 0:
        complain("must be more than 0", "n_embd")
    if not model.layers:
        complain("a model has at least one layer", "layers")
    if model.experts_used > model.experts_total:
        complain("more experts are used than there are", "experts_used")
    seen: set[int] = set()
    for key, layers in (("layers", model.layers), ("nextn_layers", model.nextn_layers)):
        for position, layer in enumerate(layers):
            if layer.index in seen:
                complain(f"layer {layer.index} stands here a second time", key, position, "index")
            seen.add(layer.index)
            if min(layer.kv_heads, layer.key_length, layer.value_length, layer.state_bytes) < 0:
                complain("sizes are not negative", key, position)
            if any(tensor.size_bytes < 0 for tensor in layer.tensors):
                complain("sizes are not negative", key, position, "tensors")
            if layer.kind is LayerKind.SLIDING and model.sliding_window is None:
                complain("a sliding layer needs `sliding_window`", key, position, "kind")
            if not model.experts_used and any(
                tensor.role is Role.ROUTED_EXPERTS for tensor in layer.tensors
            ):
                complain("routed experts need `experts_total` and `experts_used`", key, position)
    return list(dict.fromkeys(found))
