"""Placement as flags of llama.cpp and ik_llama.cpp: what a command line says, and how to say it.

A comma separates rules of ``-ot``, so none stands in an expression; buffer types match by
name, and the first rule that matches counts. The fused operations of ik_llama.cpp need gate,
up and down of a layer together, which a rule on ``exps`` keeps.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hetero_test.engines.llama_cpp import flags

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DRAFTING: Final = (flags.SPECULATION, flags.DRAFT_LENGTH)
_WITH_VALUE: Final = frozenset(
    {
        *flags.DEVICES,
        *flags.DRAFT_DEVICES,
        *flags.SPLIT_MODE,
        *flags.SHARES,
        *flags.MAIN_GPU,
        *flags.GPU_LAYERS,
        *flags.CPU_EXPERT_LAYERS,
        *flags.OVERRIDES,
        *flags.SPECULATION,
        *flags.DRAFT_LENGTH,
    }
)
ALL_LAYERS: Final = 99
"""``-ngl`` from which all layers are meant, as people write."""


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
        """Whether it places anything."""
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
    """What an argument vector says of placement; all other flags are passed over.

    A later flag overrides an earlier one, except ``-ot``, whose rules add up.
    """
    words = list(_split_equals(argv))
    rules = [
        _rule(rule)
        for flag, value in pairwise(words)
        if flag in flags.OVERRIDES
        for rule in value.split(",")
        if "=" in rule
    ]
    devices = flags.value(words, flags.DEVICES)
    draft_devices = flags.value(words, flags.DRAFT_DEVICES)
    drafting = (draft_devices, *(flags.value(words, names) for names in _DRAFTING))
    return PlacementFlags(
        devices=_listed(devices),
        split_mode=flags.value(words, flags.SPLIT_MODE),
        shares=_numbers(flags.value(words, flags.SHARES)),
        main_gpu=flags.value(words, flags.MAIN_GPU),
        gpu_layers=_whole(flags.value(words, flags.GPU_LAYERS)),
        cpu_expert_layers=_whole(flags.value(words, flags.CPU_EXPERT_LAYERS)),
        all_experts_on_cpu=any(word in flags.CPU_EXPERTS for word in words),
        rules=tuple(rules),
        draft_devices=_listed(draft_devices),
        drafts=any(said is not None for said in drafting),
    )


def parse_text(text: str) -> PlacementFlags:
    """What flags in one text say, as in a prediction or pasted into a shell."""
    try:
        return parse_flags(shlex.split(text))
    except ValueError:
        return PlacementFlags()


def same_placement(first: PlacementFlags, second: PlacementFlags) -> bool:
    """Whether two command lines place alike; one that says nothing equals no other."""
    return first.says_something and _signature(first) == _signature(second)


def _signature(said: PlacementFlags) -> tuple[object, ...]:
    layers = said.gpu_layers
    shares = said.shares
    total = sum(shares) if shares else 0.0
    return (
        said.devices,
        said.split_mode or "layer",
        None if not shares or not total else tuple(round(s / total, 3) for s in shares),
        None if layers is None or layers >= ALL_LAYERS else layers,
        said.cpu_expert_layers,
        said.all_experts_on_cpu,
        said.rules,
        said.draft_devices,
        said.drafts,
    )


def _split_equals(argv: Iterable[str]) -> Iterable[str]:
    """``--flag=value`` as two words, for the flags that are read here."""
    for word in argv:
        name, equals, value = word.partition("=")
        if equals and name in _WITH_VALUE:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFlags:
    """Flags for one engine."""

    engine: str
    flags: str


def both(text: str, *, ik_flags: str | None = None) -> tuple[EngineFlags, ...]:
    """Flags for both engines; `ik_flags` where ik_llama.cpp says it otherwise."""
    return (
        EngineFlags(engine="llama.cpp", flags=text),
        EngineFlags(engine="ik_llama.cpp", flags=text if ik_flags is None else ik_flags),
    )


def joined(first: Sequence[EngineFlags], second: Sequence[EngineFlags]) -> tuple[EngineFlags, ...]:
    """Two lists of flags joined, engine by engine."""
    return tuple(
        EngineFlags(engine=a.engine, flags=f"{a.flags} {b.flags}")
        for a, b in zip(first, second, strict=True)
    )


def layer_alternatives(layers: Sequence[int]) -> str:
    """An expression for layer numbers, without a comma: ``[0-9]|1[0-9]|2[0-3]``."""
    by_tens: dict[int, list[int]] = {}
    for layer in sorted(layers):
        by_tens.setdefault(layer // 10, []).append(layer % 10)
    full = [tens for tens, ones in by_tens.items() if len(ones) == 10 and 0 < tens < 10]
    found = [f"{_digits(full)}[0-9]"] if full else []
    for tens, ones in by_tens.items():
        if tens not in full:
            found.append(f"{tens or ''}{_digits(ones)}")
    return "|".join(found)


def _digits(digits: Sequence[int]) -> str:
    """One digit as itself, a run as a range, others listed."""
    if len(digits) == 1:
        return str(digits[0])
    if digits[-1] - digits[0] == len(digits) - 1:
        return f"[{digits[0]}-{digits[-1]}]"
    return f"[{''.join(map(str, digits))}]"


def experts_rule(layers: Sequence[int], device: str, *, all_layers: bool = False) -> str:
    """The ``-ot`` rule that puts routed experts of these layers on a device."""
    where = r"\.ffn_.*_exps" if all_layers else rf"blk\.({layer_alternatives(layers)})\.ffn_.*_exps"
    return f'-ot "{where}={device}"'


def alone(device: str, *, cpu: bool) -> tuple[EngineFlags, ...]:
    """Everything on one device."""
    if cpu:
        return both("-dev none -ngl 0", ik_flags="-ngl 0")
    return both(
        f"-dev {device} -ngl 99 -sm none", ik_flags=f"-ngl 99 -sm none -mg {_index(device)}"
    )


def by_role(
    fast: str, slow: str, layers: Sequence[int], *, slow_is_cpu: bool, all_layers: bool
) -> tuple[EngineFlags, ...]:
    """Attention, KV and shared on the fast device, routed experts of `layers` on the slow one.

    Args:
        fast: id of a card, such as ``CUDA0``.
        slow: id of the other device.
        layers: numbers of layers.
        slow_is_cpu: the slow one is the host, which needs no ``-dev``.
        all_layers: these are all layers that have experts, so no number need be named.
    """
    rule = experts_rule(layers, slow, all_layers=all_layers)
    if slow_is_cpu:
        return both(
            f"-dev {fast} -ngl 99 {rule}", ik_flags=f"-ngl 99 -sm none -mg {_index(fast)} {rule}"
        )
    return both(
        f"-dev {fast},{slow} -ngl 99 -sm layer -ts 1,0 {rule}", ik_flags=f"-ngl 99 -ts 1,0 {rule}"
    )


def some_experts(
    big: str, card: str, layers: Sequence[int], *, big_is_cpu: bool
) -> tuple[EngineFlags, ...]:
    """Everything on the big device except the routed experts of these layers.

    Args:
        big: id of the device that has all else.
        card: id of the one that has these experts.
        layers: numbers of layers.
        big_is_cpu: the big one is the host: no layer is offloaded, only these experts.
    """
    rule = experts_rule(layers, card)
    if big_is_cpu:
        return both(f"-dev {card} -ngl 0 {rule}", ik_flags=f"-ngl 0 {rule}")
    return both(f"-dev {big},{card} -ngl 99 -sm layer -ts 1,0 {rule}")


def contiguous(devices: Sequence[str], counts: Sequence[int]) -> tuple[EngineFlags, ...]:
    """Whole layers in ranges, one range a device."""
    shares = ",".join(str(count) for count in counts)
    return both(
        f"-dev {','.join(devices)} -ngl 99 -sm layer -ts {shares}", ik_flags=f"-ngl 99 -ts {shares}"
    )


def cards_and_host(
    cards: Sequence[str], counts: Sequence[int], slow_layers: Sequence[int]
) -> tuple[EngineFlags, ...]:
    """Ranges over cards, with routed experts of these layers on the CPU."""
    rule = experts_rule(slow_layers, "CPU")
    shares = ",".join(str(count) for count in counts)
    placed = f"-ngl 99 -sm layer -ts {shares} {rule}"
    return both(f"-dev {','.join(cards)} {placed}", ik_flags=f"-ngl 99 -ts {shares} {rule}")


def partly_host(device: str, layers: int) -> tuple[EngineFlags, ...]:
    """A number of layers on a card, the rest on the CPU."""
    return both(f"-dev {device} -ngl {layers}", ik_flags=f"-ngl {layers}")


def parallel(devices: Sequence[str], shares: Sequence[float]) -> tuple[EngineFlags, ...]:
    """Every layer over all devices at once."""
    told = ",".join(f"{share:.2f}" for share in shares)
    return both(
        f"-dev {','.join(devices)} -ngl 99 -sm tensor -ts {told}",
        ik_flags=f"-ngl 99 -sm graph -ts {told}",
    )


def drafter(device: str, window: int) -> tuple[EngineFlags, ...]:
    """An external drafter on a device of its own."""
    common = f"-md DRAFT.gguf -devd {device} -ngld 99"
    return both(
        f"{common} --spec-type draft-simple --spec-draft-n-max {window}",
        ik_flags=f"{common} --draft-max {window}",
    )


def own_head(window: int) -> tuple[EngineFlags, ...]:
    """The target's own draft head, where the runtime knows it."""
    return both(
        f"--spec-type draft-mtp --spec-draft-n-max {window}", ik_flags=f"-mtp --draft-max {window}"
    )


def _index(device: str) -> str:
    """The number at the end of a device's name; 0 where there is none."""
    digits = device[len(device.rstrip("0123456789")) :]
    return digits or "0"
