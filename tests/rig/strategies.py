"""Generators of facts, rigs and models for the round trips."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from hetero_test.rig.facts import RigFacts
from hetero_test.rig.sourced import Origin, Sourced
from hetero_test.triage.model.facts import LayerFacts, ModelFacts

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SOURCE = TEXT.filter(lambda text: bool(text.strip()))
NUMBER = st.floats(min_value=1e-6, max_value=1e15)


def facts_of(inner: Any) -> st.SearchStrategy[Sourced[Any]]:
    """Facts whose value is of the type; numbers come with and without an interval."""
    origin = st.sampled_from(Origin)
    plain = st.builds(Sourced, value=value_of(inner), origin=origin, source=SOURCE)
    if inner not in (int, float):
        return plain
    with_interval = st.builds(
        lambda value, less, more, origin, source: Sourced(
            value=value, origin=origin, source=source, low=value * less, high=value * more
        ),
        value_of(inner),
        st.floats(0.1, 1.0),
        st.floats(1.0, 10.0),
        origin,
        SOURCE,
    )
    return plain | with_interval


def value_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type as it stands in the facts' dataclasses."""
    if get_origin(kind) in (UnionType, Union):
        inner = next(option for option in get_args(kind) if option is not type(None))
        return st.none() | value_of(inner)
    if get_origin(kind) is Sourced:
        return facts_of(get_args(kind)[0])
    if get_origin(kind) is tuple:
        return st.lists(value_of(get_args(kind)[0]), max_size=2).map(tuple)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return st.builds(kind, **{f.name: value_of(hints[f.name]) for f in fields(kind)})
    basic: dict[Any, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: st.integers(1, 2**62),
        float: NUMBER,
        str: TEXT,
    }
    return basic[kind]


def rigs() -> st.SearchStrategy[RigFacts]:
    """Rigs that hold together: every device once, and pairs of devices that exist."""

    def sound(rig: RigFacts) -> RigFacts:
        devices = tuple(replace(d, id=f"{d.id}{i}") for i, d in enumerate(rig.devices))
        names = [device.id for device in devices]
        pairs = tuple(replace(p, a=names[0], b=names[-1]) for p in rig.links if names)
        return replace(rig, devices=devices, links=pairs)

    return value_of(RigFacts).map(sound)


def models() -> st.SearchStrategy[ModelFacts]:
    """Models that hold together: numbered layers, and experts that are used exist."""

    def sound(model: ModelFacts, layers: list[LayerFacts], nextn: list[LayerFacts]) -> ModelFacts:
        # Few different layers many times over, as in real models.
        plain = tuple(replace(layers[i % len(layers)], index=i) for i in range(2 * len(layers)))
        draft = tuple(replace(layer, index=len(plain) + i) for i, layer in enumerate(nextn))
        return replace(
            model,
            layers=plain,
            nextn_layers=draft,
            experts_total=model.experts_total + model.experts_used,
            sliding_window=model.sliding_window or 128,
        )

    layers = st.lists(value_of(LayerFacts), min_size=1, max_size=3)
    return st.builds(
        sound, value_of(ModelFacts), layers, st.lists(value_of(LayerFacts), max_size=2)
    )
