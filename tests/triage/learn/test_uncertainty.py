"""What is unsure of one device stays unsure when another one is measured."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetero_test.rig.facts import DeviceClass
from hetero_test.triage.answer.answer import answer
from hetero_test.triage.cost.placement import DeviceSpeeds, Placement, Read
from hetero_test.triage.cost.priors import PRIORS, first_estimate
from hetero_test.triage.cost.token import log_ms, weight_gb_s
from hetero_test.triage.learn.estimates import Estimates
from hetero_test.triage.learn.uncertainty import deciding_placement, predict_placement
from hetero_test.triage.model.bytes import ModelShape
from hetero_test.triage.options.question import Speeds
from tests.triage.rigs import card, dense, question, rig

if TYPE_CHECKING:
    from collections.abc import Callable

    from hetero_test.triage.cost.priors import Reader

A = DeviceSpeeds(id="CUDA0", device_class=DeviceClass.DISCRETE_GPU)
B = DeviceSpeeds(id="CUDA1", device_class=DeviceClass.DISCRETE_GPU)
OWN = math.hypot(PRIORS["nominal:discrete_gpu"].spread, PRIORS["device:discrete_gpu"].spread)
"""What one card of no known bandwidth differs by from others."""
SPEED = st.floats(3, 300)
TIMES = partial(partial, log_ms)


def split(share: float, *, parallel: bool, gb: float = 10.0) -> Placement:
    """A dense model over both cards, this share of it on the first."""
    return Placement(
        devices=(A, B),
        shape=ModelShape(layers=48),
        reads=(Read(device="CUDA0", gb=gb * share), Read(device="CUDA1", gb=gb * (1 - share))),
        parallel=parallel,
    )


def alone(device: DeviceSpeeds, gb: float = 10.0) -> Placement:
    """The same model on one card."""
    return Placement(
        devices=(device,), shape=ModelShape(layers=48), reads=(Read(device=device.id, gb=gb),)
    )


def rate_of(device: DeviceSpeeds) -> Callable[[Reader], float]:
    """ln(GB/s) that a card reaches on dense weights."""
    return lambda read: math.log(weight_gb_s(device, Read(device=device.id, gb=1.0), read))


def measured_a(tok_s: float) -> Estimates:
    """First estimates after the first card was measured alone."""
    estimates = Estimates(first_estimate)
    estimates.condition(partial(log_ms, alone(A)), math.log(1e3 / tok_s), 0.03)
    return estimates


@given(tok_s=SPEED)
@settings(max_examples=40)
def test_measuring_one_card_leaves_anothers_own_speed_as_unsure_as_it_was(tok_s: float) -> None:
    """Only what the class shares may become surer; what is the card's own has the same spread."""
    after = measured_a(tok_s).predict(rate_of(B))
    assert after[1] >= OWN
    before = Estimates(first_estimate).predict(rate_of(B))
    shared = math.sqrt(before[1] ** 2 - OWN**2)
    # What is learned of the class is in proportion to its part of the uncertainty.
    surprise = abs(measured_a(tok_s).predict(rate_of(A))[0] - before[0])
    assert abs(after[0] - before[0]) <= surprise * (shared / before[1]) ** 2 + 0.02


@given(tok_s=SPEED, share=st.floats(0.1, 0.9))
@settings(max_examples=40)
def test_layers_in_sequence_are_as_unsure_as_the_unmeasured_cards_part(
    tok_s: float, share: float
) -> None:
    """Its share of the time times its own spread, at the least."""
    estimates = measured_a(tok_s)
    value, spread = predict_placement(estimates, split(share, parallel=False), TIMES)
    rate = math.exp(estimates.predict(rate_of(B))[0])
    part = 10.0 * (1 - share) / rate * 1e3 / math.exp(value)
    assert spread >= part * OWN * 0.999


@given(tok_s=SPEED)
@settings(max_examples=40)
def test_a_parallel_split_of_fitting_shares_is_as_unsure_as_its_unmeasured_card(
    tok_s: float,
) -> None:
    """Whichever of the two is the slower one at the middle."""
    estimates = measured_a(tok_s)
    rates = [math.exp(estimates.predict(rate_of(device))[0]) for device in (A, B)]
    for tilt in (0.98, 1.0, 1.02):
        share = min(0.999, tilt * rates[0] / sum(rates))
        placement = split(share, parallel=True)
        value, spread = predict_placement(estimates, placement, TIMES)
        second = estimates.predict(partial(log_ms, replace(placement, slowest="CUDA1")))
        waiting = 10.0 * (1 - share) / rates[1] * 1e3 / math.exp(second[0])
        assert spread >= OWN * waiting * math.exp(-abs(second[0] - value)) * 0.999


def test_a_card_that_cannot_be_the_slower_one_adds_little() -> None:
    """A hundredth of the reads on it may vary by half and nobody waits."""
    estimates = measured_a(30.0)
    _, spread = predict_placement(estimates, split(0.99, parallel=True), TIMES)
    _, known = estimates.predict(partial(log_ms, split(0.99, parallel=True)))
    assert spread == pytest.approx(known, abs=0.05)


def test_the_deciding_unknown_is_of_the_card_that_leaves_most_in_doubt() -> None:
    """Not of the one that was measured, although that is the slower one at the middle."""
    estimates = measured_a(30.0)
    placement = split(0.55, parallel=True)
    assert deciding_placement(estimates, placement, TIMES).slowest == "CUDA1"
    assert deciding_placement(estimates, split(0.5, parallel=False), TIMES).slowest is None


def test_two_cards_by_name_only_of_which_one_is_measured_stay_undecided(
    estimates: Estimates, q: float
) -> None:
    """An interval as of one card is not to be had of two, of which one is a guess."""
    machine = rig(card(gb_s=None, name="One"), card("CUDA1", gib=12, gb_s=None, name="Other"))
    asked = question(
        dense(layers=48, layer_mb=210),
        machine,
        context=32768,
        baselines={"CUDA0": Speeds(decode_tok_s=24, prefill_tok_s=900)},
    )
    found = answer(asked, estimates, q)
    other = next(r.forecast for r in found.ranked if r.option.key == "alone:CUDA1")
    both = next(r.forecast for r in found.ranked if r.option.key == "parallel:CUDA0+CUDA1")
    assert other.decode.high / other.decode.value > 1.5
    assert both.gain is not None
    assert both.gain.high / both.gain.low > 1.7
    assert both.decider is not None
    assert both.decider.name.endswith("@CUDA1")


def test_the_prompt_of_a_parallel_split_is_as_unsure_as_its_unmeasured_card(
    estimates: Estimates, q: float
) -> None:
    """A baseline's prefill speed is that of its own card, not that of the pair."""
    asked = question(
        dense(),
        rig(card(), card("CUDA1", gib=24)),
        baselines={"CUDA0": Speeds(decode_tok_s=45, prefill_tok_s=900)},
    )
    found = {r.option.key: r.forecast.prefill for r in answer(asked, estimates, q).ranked}
    one, both = found["alone:CUDA0"], found["parallel:CUDA0+CUDA1"]
    assert one is not None
    assert both is not None
    assert one.high / one.low < 1.15
    assert both.high / both.low > 1.3
