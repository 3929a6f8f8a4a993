"""The command-line words that express a placement, in llama.cpp and in ik_llama.cpp.

A comma separates rules of ``-ot``, so none stands in an expression; buffer types match by
name, and the first rule that matches counts. The fused operations of ik_llama.cpp need gate,
up and down of a layer together, which a rule on ``exps`` keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Flags for one engine."""

    engine: str
    flags: str


def both(flags: str, *, ik_flags: str | None = None) -> tuple[Words, ...]:
    """Flags for both engines; `ik_flags` where ik_llama.cpp says it otherwise."""
    return (
        Words(engine="llama.cpp", flags=flags),
        Words(engine="ik_llama.cpp", flags=flags if ik_flags is None else ik_flags),
    )


def joined(first: Sequence[Words], second: Sequence[Words]) -> tuple[Words, ...]:
    """Flags of a placement and more of them, engine by engine."""
    return tuple(
        Words(engine=a.engine, flags=f"{a.flags} {b.flags}")
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


def alone(device: str, *, cpu: bool) -> tuple[Words, ...]:
    """Everything on one device."""
    if cpu:
        return both("-dev none -ngl 0", ik_flags="-ngl 0")
    return both(
        f"-dev {device} -ngl 99 -sm none", ik_flags=f"-ngl 99 -sm none -mg {_index(device)}"
    )


def by_role(
    fast: str, slow: str, layers: Sequence[int], *, slow_is_cpu: bool, all_layers: bool
) -> tuple[Words, ...]:
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
) -> tuple[Words, ...]:
    """Everything on the big device but the routed experts of these layers.

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


def contiguous(devices: Sequence[str], counts: Sequence[int]) -> tuple[Words, ...]:
    """Whole layers in ranges, one range a device."""
    shares = ",".join(str(count) for count in counts)
    return both(
        f"-dev {','.join(devices)} -ngl 99 -sm layer -ts {shares}", ik_flags=f"-ngl 99 -ts {shares}"
    )


def cards_and_host(
    cards: Sequence[str], counts: Sequence[int], slow_layers: Sequence[int]
) -> tuple[Words, ...]:
    """Ranges over cards, with routed experts of these layers on the CPU."""
    rule = experts_rule(slow_layers, "CPU")
    shares = ",".join(str(count) for count in counts)
    flags = f"-ngl 99 -sm layer -ts {shares} {rule}"
    return both(f"-dev {','.join(cards)} {flags}", ik_flags=f"-ngl 99 -ts {shares} {rule}")


def partly_host(device: str, layers: int) -> tuple[Words, ...]:
    """So many layers on a card, the rest on the CPU."""
    return both(f"-dev {device} -ngl {layers}", ik_flags=f"-ngl {layers}")


def parallel(devices: Sequence[str], shares: Sequence[float]) -> tuple[Words, ...]:
    """Every layer over all devices at once."""
    told = ",".join(f"{share:.2f}" for share in shares)
    return both(
        f"-dev {','.join(devices)} -ngl 99 -sm tensor -ts {told}",
        ik_flags=f"-ngl 99 -sm graph -ts {told}",
    )


def drafter(device: str, window: int) -> tuple[Words, ...]:
    """An external drafter on a device of its own."""
    common = f"-md DRAFT.gguf -devd {device} -ngld 99"
    return both(
        f"{common} --spec-type draft-simple --spec-draft-n-max {window}",
        ik_flags=f"{common} --draft-max {window}",
    )


def own_head(window: int) -> tuple[Words, ...]:
    """The target's own draft head, where the runtime knows it."""
    return both(
        f"--spec-type draft-mtp --spec-draft-n-max {window}", ik_flags=f"-mtp --draft-max {window}"
    )


def _index(device: str) -> str:
    """The number at the end of a device's name; 0 where there is none."""
    digits = device[len(device.rstrip("0123456789")) :]
    return digits or "0"
