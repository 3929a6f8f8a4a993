"""The time of a token of a placement: the terms of `terms`, with the unknowns filled in."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.rig.facts import DeviceClass
from hetero_test.triage.cost import terms
from hetero_test.triage.cost.drafting import KERNEL_ROWS, Verify
from hetero_test.triage.cost.placement import DraftKind, Read
from hetero_test.triage.cost.priors import PRIORS
from hetero_test.triage.cost.terms import Term, TermKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.triage.cost.placement import DeviceSpeeds, Drafting, Hot, Placement
    from hetero_test.triage.cost.priors import Reader

COPY_SHARE = 0.85
"""What a copy test reaches of the data sheet: 1541 of 1792 on an RTX 5090
(https://github.com/ikawrakow/ik_llama.cpp/issues/629), 212 of 256 on a Strix Halo."""
COPY_SIGMA = PRIORS["told:copy"].spread
"""Spread of the unknown behind a copy test."""
TOLD = ("told:bandwidth", "told:copy", "told:nominal")
"""Unknowns that scale a bandwidth which the user or the rig gave."""
TOKENS_SIGMA = PRIORS["drafting:tokens"].sigma
"""Spread of the unknown behind tokens a round."""
STEP = "step"
"""The unknown for the whole step of a placement whose reads are not known, ms."""
CPUS = (DeviceClass.DESKTOP_CPU, DeviceClass.SERVER_CPU)


def token_terms(placement: Placement, read: Reader) -> tuple[Term, ...]:
    """Where the time of one token goes, ms a token.

    Args:
        placement: what is read where.
        read: the unknowns; `priors` has their names and units.
    """
    step = step_terms(placement, read)
    if placement.drafting is None:
        return step
    return _drafted(placement, placement.drafting, step, read)


def step_terms(placement: Placement, read: Reader) -> tuple[Term, ...]:
    """Likewise, of a step of the target alone, without drafting."""
    if not placement.reads:
        return (Term(kind=TermKind.WEIGHTS, where="", amount=read(STEP), because="a whole step"),)
    if placement.hot is not None:
        placement = with_hot_experts(placement, placement.hot, read)
    by_device = {
        device.id: _device_terms(placement, device, read)
        for device in placement.devices
        if any(r.device == device.id for r in placement.reads)
    }
    if placement.parallel:
        waited_for = by_device.get(placement.slowest or "")
        slowest = waited_for or max(by_device.values(), key=terms.total, default=())
        return (*slowest, *_waiting(placement, read))
    return (*(t for listed in by_device.values() for t in listed), *_waiting(placement, read))


def with_hot_experts(placement: Placement, hot: Hot, read: Reader) -> Placement:
    """The placement with reads by use: hot experts serve share^x of the traffic, x below one.

    The exponent follows from a published sweep, where half of the experts by frequency
    gave what 57 % of the traffic gives
    (https://github.com/kvcache-ai/ktransformers, kt-kernel's tutorial on expert scheduling).
    """
    served = min(1.0, hot.share ** read("traffic")) if hot.share else 0.0
    cold_gb = hot.experts_gb * (1 - served)
    here = hot.experts_gb if hot.cold_device is None else hot.experts_gb * served
    parts = [Read(device=hot.device, gb=here, experts=True, quantization=hot.quantization)]
    link_bytes = placement.link_bytes
    if hot.cold_device is None:
        link_bytes += cold_gb * 1e9
    else:
        parts.append(
            Read(device=hot.cold_device, gb=cold_gb, experts=True, quantization=hot.quantization)
        )
    return replace(placement, hot=None, reads=(*placement.reads, *parts), link_bytes=link_bytes)


def log_ms(placement: Placement, read: Reader) -> float:
    """The logarithm of the milliseconds a token takes."""
    return math.log(terms.total(token_terms(placement, read)))


def weight_gb_s(device: DeviceSpeeds, part: Read, read: Reader) -> float:
    """Effective GB/s of a device on these weights and their type."""
    if device.relative:
        return read("rate", at=device.id)
    work = "moe" if part.experts else "dense"
    if work in device.effective_gb_s:
        return device.effective_gb_s[work] * read("told:bandwidth", at=device.id)
    own = read("device:" + device.device_class.value, at=device.id)
    share = read(f"weights:{device.device_class.value}:{work}", at="rig")
    return nominal_gb_s(device, read) * share * own * _type_share(device, part, read)


def own_unknowns(device: DeviceSpeeds) -> tuple[str, ...]:
    """Unknowns by which this device may differ from what the rig says of it."""
    found = (f"told:nominal@{device.id}",)
    return (*found, f"told:bandwidth@{device.id}") if device.effective_gb_s else found


def nominal_gb_s(device: DeviceSpeeds, read: Reader) -> float:
    """GB/s by the data sheet, from a copy test where there is one, else that of the class."""
    if device.copy_gb_s is not None:
        rate = device.copy_gb_s / COPY_SHARE * read("told:nominal", at=device.id)
        if not device.copy_sigma:
            return rate
        # The unknown has one spread for all; what is less certain follows a power of it.
        power: float = device.copy_sigma / COPY_SIGMA
        return rate * math.exp(power * math.log(read("told:copy", at=device.id)))
    if device.nominal_gb_s is not None:
        return device.nominal_gb_s * read("told:nominal", at=device.id)
    return read("nominal:" + device.device_class.value, at=device.id)


def _device_terms(placement: Placement, device: DeviceSpeeds, read: Reader) -> Sequence[Term]:
    found = []
    for part in placement.reads:
        if part.device != device.id:
            continue
        if part.gb:
            rate = weight_gb_s(device, part, read)
            found.append(
                Term(
                    kind=TermKind.WEIGHTS,
                    where=device.id,
                    amount=terms.read_ms(part.gb, rate),
                    because=f"{part.gb:.2f} GB{' of experts' * part.experts} at {rate:.0f} GB/s",
                )
            )
        if part.kv_gb:
            nominal = nominal_gb_s(device, read)
            share = read("kv", at=device.id)
            found.append(
                Term(
                    kind=TermKind.KV,
                    where=device.id,
                    amount=terms.kv_ms(part.kv_gb, nominal, share),
                    because=f"{part.kv_gb:.2f} GB at {share:.2f} of {nominal:.0f} GB/s",
                )
            )
    return found


def _type_share(device: DeviceSpeeds, part: Read, read: Reader) -> float:
    """Speed of this type of weights on a CPU, as a share of the others."""
    name = (part.quantization or "").upper()
    if device.device_class not in CPUS:
        return 1.0
    if name.endswith("_KT"):
        return read("quant:trellis", at=device.id)
    return read("quant:nonlinear", at=device.id) if name.startswith("IQ") else 1.0


def _waiting(placement: Placement, read: Reader) -> list[Term]:
    """Sync, link and per-layer terms: all that is not reading."""
    found = []
    if placement.splits:
        told = placement.split_us
        cost = read("split", at="rig") if told is None else told * read("told:split")
        found.append(_sync(placement.splits, cost, "graph splits"))
    if placement.staged_splits:
        found.append(_sync(placement.staged_splits, _latency_us(placement, read), "staged copies"))
    if placement.all_reduces:
        cost = (
            2 * read("latency:peer", at="rig")
            if placement.peer
            else read("all_reduce:" + placement.all_reduce_rule, at="rig")
        )
        if placement.pair_latency_us is not None and not placement.peer:
            cost = 2 * placement.pair_latency_us * read("staged", at="rig")
        found.append(_sync(placement.all_reduces, cost, "all-reduces"))
    if placement.messages:
        cost = read("rpc", at="rig") + placement.round_trip_us
        found.append(_sync(placement.messages, cost, "messages"))
    if placement.link_bytes and placement.link_gb_s:
        us = terms.wire_us(placement.link_bytes, placement.link_gb_s)
        size = placement.link_bytes
        carried = f"{size / 1e9:.2f} GB" if size > 1e8 else f"{size / 1024:.0f} KiB"
        why = f"{carried} at {placement.link_gb_s:.2f} GB/s"
        found.append(Term(kind=TermKind.LINK, where="", amount=us / 1e3, because=why))
    if placement.overheads and placement.shape.layers:
        found.extend(_per_layer(placement, read))
    return found


def _per_layer(placement: Placement, read: Reader) -> list[Term]:
    """The cost of a layer beside reading; higher where its experts are on a CPU."""
    layers = placement.shape.layers
    name = "layer:moe" if placement.shape.mixture else "layer:dense"
    counted = [(float(layers), name, placement.layer_us)]
    experts = [part for part in placement.reads if part.experts]
    on_cpu = sum(part.gb for part in experts if placement.device(part.device).device_class in CPUS)
    if on_cpu:
        count = layers * on_cpu / sum(part.gb for part in experts)
        counted.append((count, "layer:cpu_experts", placement.cpu_layer_us))
    found = []
    for count, name, told in counted:
        cost = read(name, at="rig") if told is None else told * read("told:layer")
        why = f"{count:.0f} layers{' with experts on a CPU' * ('cpu' in name)} at {cost:.0f} µs"
        amount = terms.sync_ms(count, cost)
        found.append(Term(kind=TermKind.LAYERS, where="", amount=amount, because=why))
    return found


def _latency_us(placement: Placement, read: Reader) -> float:
    if placement.peer:
        return read("latency:peer", at="rig")
    if placement.pair_latency_us is not None:
        return placement.pair_latency_us * read("staged", at="rig")
    return read("latency:staged", at="rig") * read("staged", at="rig")


def _sync(count: float, cost_us: float, noun: str) -> Term:
    return Term(
        kind=TermKind.SYNC,
        where="",
        amount=terms.sync_ms(count, cost_us),
        because=f"{count:.0f} {noun} at {cost_us:.0f} µs",
    )


def _drafted(
    placement: Placement, drafting: Drafting, step: tuple[Term, ...], read: Reader
) -> tuple[Term, ...]:
    """Time per committed token: (K r + V) steps over E tokens, plus the round trip of a round."""
    step_ms = terms.total(step)
    # The unknown has one spread for all; what is less certain follows a power of it.
    power = drafting.tokens_sigma / TOKENS_SIGMA
    committed = drafting.tokens_per_round * read("drafting:tokens") ** power
    drafts = 1 if drafting.kind is DraftKind.BLOCK else drafting.window
    draft_cost = drafts * _draft_cost(drafting, read)
    verify = verify_cost(placement, drafting, step, read)
    found = [
        Term(
            kind=TermKind.DRAFT,
            where="",
            amount=step_ms * draft_cost / committed,
            because=f"{draft_cost:.2f} steps a round of {committed:.2f} tokens",
        ),
        Term(
            kind=TermKind.VERIFY,
            where="",
            amount=step_ms * verify / committed,
            because=f"{verify:.2f} steps of {step_ms:.1f} ms a round of {committed:.2f} tokens",
        ),
    ]
    if drafting.round_ms:
        amount = drafting.round_ms / committed
        found.append(Term(kind=TermKind.LINK, where="", amount=amount, because="a round trip"))
    return tuple(found)


def _draft_cost(drafting: Drafting, read: Reader) -> float:
    if drafting.draft_cost is not None:
        return drafting.draft_cost * read("drafting:draft")
    return read("draft:" + drafting.kind.value, at="rig")


def verify_cost(
    placement: Placement, drafting: Drafting, step: tuple[Term, ...], read: Reader
) -> float:
    """V(K + 1) of a placement: as measured, else by class of device and model.

    Args:
        placement: what is read where.
        drafting: its window, and what was measured of its verification.
        step: terms of a step of the target alone, ms; see `step_terms`.
        read: the unknowns; `priors` has their names and units.

    Returns:
        Time of a step of K + 1 rows in steps of one row.
    """
    rows = drafting.rows or drafting.window + 1
    if drafting.verify:
        measured = Verify(beta=0.0, measured=drafting.verify).cost(rows)
        return 1 + (measured - 1) * read("drafting:verify")
    where = _place(placement)
    mixture = placement.shape.mixture
    beta = (
        drafting.beta * read("drafting:beta")
        if drafting.beta is not None
        else read(f"beta:{where}:{'moe' if mixture else 'dense'}", at="rig")
    )
    share = _expert_share(placement, step, read) if mixture else 0.0
    return Verify(
        beta=beta,
        kernel_rows=None if where == "cpu" else KERNEL_ROWS,
        expert_share=share,
        experts=placement.shape.experts,
        used=placement.shape.used,
        eta=read("eta", at="rig") if mixture else 1.0,
    ).cost(rows)


def _place(placement: Placement) -> str:
    """Whose kernels verify, by the device that reads most: ``gpu``, ``apple`` or ``cpu``."""
    device_class = placement.main_class
    if placement.reads:
        most = max(placement.reads, key=lambda r: 0.0 if r.experts else r.gb)
        device_class = placement.device(most.device).device_class
    if device_class in CPUS:
        return "cpu"
    return "apple" if device_class is DeviceClass.APPLE else "gpu"


def _expert_share(placement: Placement, step: tuple[Term, ...], read: Reader) -> float:
    """Share of a step that reads routed experts: from the reads, else by where experts are."""
    if not placement.reads:
        kind = "cpu" if placement.experts_on_cpu else "gpu"
        return min(0.95, read("expert_time:" + kind, at="rig"))
    spent = sum(
        terms.read_ms(part.gb, weight_gb_s(placement.device(part.device), part, read))
        for part in placement.reads
        if part.experts and part.gb
    )
    return min(0.95, spent / terms.total(step))
