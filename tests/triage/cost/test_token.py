"""The time of a token of a placement."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetero_test.rig.facts import DeviceClass
from hetero_test.triage.answer.forecast import Forecaster
from hetero_test.triage.cost.placement import (
    DeviceSpeeds,
    Drafting,
    DraftKind,
    Hot,
    Placement,
    Read,
)
from hetero_test.triage.cost.priors import first_estimate
from hetero_test.triage.cost.terms import TermKind, total
from hetero_test.triage.cost.token import log_ms, token_terms
from hetero_test.triage.learn.estimates import Estimates
from hetero_test.triage.model.bytes import ModelShape
from hetero_test.triage.options.option import Option, OptionFamily

GPU = DeviceSpeeds(id="CUDA0", device_class=DeviceClass.DISCRETE_GPU, nominal_gb_s=936.0)
CPU = DeviceSpeeds(id="CPU", device_class=DeviceClass.DESKTOP_CPU, nominal_gb_s=77.0)
SHAPE = ModelShape(layers=48, experts=128, used=8)
BASE = Placement(
    devices=(GPU, CPU),
    shape=SHAPE,
    reads=(
        Read(device="CUDA0", gb=1.3, kv_gb=0.2),
        Read(device="CPU", gb=0.6, experts=True, quantization="Q4_K"),
    ),
    splits=98,
)
POSITIVE = st.floats(0.01, 100)


def ms(placement: Placement) -> float:
    """Milliseconds a token at first estimates."""
    estimates = Estimates(first_estimate)
    return math.exp(estimates.predict(partial(log_ms, placement))[0])


def width(placement: Placement, estimates: Estimates | None = None) -> float:
    """Width of the 80 % interval of the time, ms."""
    option = Option(key="x", title="x", family=OptionFamily.ALONE, devices=(), placement=placement)
    decode = Forecaster(estimates or Estimates(first_estimate), 1.28).decode(option)
    return 1e3 / decode.low - 1e3 / decode.high


def test_every_term_says_what_it_is_made_of() -> None:
    """Weights, KV, splits and layers of a mixture whose experts are on the CPU."""
    estimates = Estimates(first_estimate)
    estimates.predict(partial(log_ms, BASE))
    found = token_terms(BASE, estimates.reader())
    kinds = [term.kind for term in found]
    assert kinds == [
        TermKind.WEIGHTS,
        TermKind.KV,
        TermKind.WEIGHTS,
        TermKind.SYNC,
        TermKind.LAYERS,
        TermKind.LAYERS,
    ]
    assert all(term.because for term in found)
    assert total(found) == pytest.approx(ms(BASE))


@given(gpu=POSITIVE, cpu=POSITIVE, faster=st.floats(1, 50), which=st.sampled_from(["gpu", "cpu"]))
@settings(max_examples=60)
def test_more_bandwidth_never_makes_a_prediction_slower(
    gpu: float, cpu: float, faster: float, which: str
) -> None:
    """Whatever is read where, a faster memory is never slower."""
    reads = (Read(device="CUDA0", gb=gpu, kv_gb=gpu / 10), Read(device="CPU", gb=cpu, experts=True))
    slow = replace(BASE, reads=reads)
    devices = (
        replace(GPU, nominal_gb_s=936 * (faster if which == "gpu" else 1)),
        replace(CPU, nominal_gb_s=77 * (faster if which == "cpu" else 1)),
    )
    assert ms(replace(slow, devices=devices)) <= ms(slow) * (1 + 1e-9)


@given(rate=st.floats(1, 5000))
@settings(max_examples=30)
def test_a_device_that_reads_nothing_costs_nothing(rate: float) -> None:
    """An idle card beside it changes neither the time nor the uncertainty."""
    idle = DeviceSpeeds(id="CUDA1", device_class=DeviceClass.DISCRETE_GPU, nominal_gb_s=rate)
    beside = replace(
        BASE, devices=(*BASE.devices, idle), reads=(*BASE.reads, Read(device="CUDA1", gb=0.0))
    )
    assert ms(beside) == ms(BASE)
    assert width(beside) == width(BASE)


TERMS = {
    "splits": {"splits": 300.0},
    "staged": {"staged_splits": 160.0},
    "messages": {"messages": 4.0},
    "all_reduces": {"all_reduces": 96.0},
    "kv": {"reads": (*BASE.reads, Read(device="CPU", kv_gb=0.5))},
    "weights": {"reads": (*BASE.reads, Read(device="CUDA0", gb=2.0))},
    "layers": {"shape": ModelShape(layers=94, experts=128, used=8)},
}


@pytest.mark.parametrize("name", TERMS)
def test_a_term_that_nobody_measured_never_shrinks_an_interval(name: str) -> None:
    """More that is not known makes the whole less known, in ms a token."""
    more = replace(BASE, **TERMS[name])  # type: ignore[arg-type]
    assert ms(more) > ms(BASE)
    assert width(more) > width(BASE)


@given(count=st.floats(0.5, 500), splits=st.floats(0, 500), gb=st.floats(0.05, 50))
@settings(max_examples=60)
def test_an_unmeasured_term_never_shrinks_an_interval_that_a_baseline_narrowed(
    count: float, splits: float, gb: float
) -> None:
    """What a baseline does not cover adds its whole uncertainty."""
    base = replace(BASE, reads=(Read(device="CUDA0", gb=gb),), splits=splits)
    estimates = Estimates(first_estimate)
    estimates.condition(partial(log_ms, base), math.log(20), 0.03)
    assert width(replace(base, messages=count), estimates) >= width(base, estimates)


def test_a_baseline_pins_its_own_placement_and_moves_its_neighbors() -> None:
    """One measured speed recalibrates what else is read on the same devices."""
    estimates = Estimates(first_estimate)
    before = estimates.predict(partial(log_ms, BASE))
    estimates.condition(partial(log_ms, BASE), before[0] + 0.5, 0.03)
    after = estimates.predict(partial(log_ms, BASE))
    assert after[0] == pytest.approx(before[0] + 0.5, abs=0.02)
    assert after[1] < 0.05 < before[1]
    neighbor = replace(BASE, splits=50)
    assert estimates.predict(partial(log_ms, neighbor))[0] > math.log(ms(neighbor)) + 0.3


def test_parallel_devices_take_as_long_as_the_slower_and_meet() -> None:
    """A parallel split halves the reads and adds its meetings."""
    other = replace(GPU, id="CUDA1")
    reads = (Read(device="CUDA0", gb=8.0), Read(device="CUDA1", gb=8.0))
    layers = Placement(devices=(GPU, other), shape=ModelShape(layers=64), reads=reads, splits=3)
    tensor = replace(layers, splits=0, parallel=True, all_reduces=128)
    assert 1.3 < ms(layers) / ms(tensor) < 2.0
    peer = replace(tensor, peer=True)
    assert ms(peer) < ms(tensor)
    assert ms(replace(tensor, pair_latency_us=46.0)) > ms(tensor)


def test_a_second_card_without_peer_access_makes_each_split_dearer() -> None:
    """A measured latency between the cards is paid at each split."""
    staged = replace(BASE, staged_splits=98, pair_latency_us=46.0)
    assert ms(staged) - ms(BASE) == pytest.approx(98 * 46e-3, rel=0.01)
    assert ms(replace(staged, peer=True)) < ms(staged)
    assert ms(replace(BASE, split_us=100.0)) - ms(BASE) == pytest.approx(98 * 75e-3, rel=0.01)


def test_fitted_bandwidths_count_before_measured_before_told() -> None:
    """A device that was fitted is not derated again."""
    alone = Placement(devices=(GPU,), reads=(Read(device="CUDA0", gb=10.0),))
    fitted = replace(GPU, effective_gb_s={"dense": 500.0}, copy_gb_s=800.0)
    assert ms(replace(alone, devices=(fitted,))) == pytest.approx(20.0)
    copied = replace(GPU, copy_gb_s=936 * 0.85)
    assert ms(replace(alone, devices=(copied,))) == pytest.approx(ms(alone))
    unknown = replace(GPU, nominal_gb_s=None)
    assert width(replace(alone, devices=(unknown,))) > 2 * width(alone)


def test_trellis_weights_are_slow_on_a_cpu_but_not_on_a_card() -> None:
    """Decoding them is arithmetic, of which a CPU has little."""
    for device, slower in ((CPU, True), (GPU, False)):
        plain = Placement(devices=(device,), reads=(Read(device=device.id, gb=1, experts=True),))
        coded = replace(plain, reads=(replace(plain.reads[0], quantization="IQ3_KT"),))
        assert (ms(coded) > 1.5 * ms(plain)) is slower


def test_drafting_divides_a_round_by_what_it_commits() -> None:
    """K r + V steps for E tokens, and what a round trip costs."""
    step = replace(BASE, reads=(Read(device="CUDA0", gb=16.0),), shape=ModelShape(layers=64))
    drafting = Drafting(window=3, tokens_per_round=3.0, draft_cost=0.1, verify={4: 1.6})
    assert ms(replace(step, drafting=drafting)) == pytest.approx(ms(step) * 1.9 / 3.0, rel=1e-6)
    remote = replace(drafting, round_ms=30.0)
    assert ms(replace(step, drafting=remote)) == pytest.approx(ms(step) * 1.9 / 3 + 10, rel=1e-6)
    block = Drafting(window=22, tokens_per_round=7.0, kind=DraftKind.BLOCK, draft_cost=0.1)
    cost = ms(replace(step, drafting=block)) * 7 / ms(step)
    assert cost == pytest.approx(0.1 + 1 + 7 * 0.12, rel=1e-6)


def test_experts_on_a_cpu_make_verification_nearly_linear() -> None:
    """Each row touches experts of its own; dense weights are read once a batch."""
    drafting = Drafting(window=4, tokens_per_round=2.68)
    moe = Placement(shape=ModelShape(experts=512, used=10), experts_on_cpu=True, drafting=drafting)
    dense = Placement(drafting=drafting)
    assert ms(moe) / ms(dense) > 2


def test_hot_experts_serve_more_than_their_share_and_misses_cross_the_link() -> None:
    """Half of the experts by use are 57 % of the traffic; the rest is computed or copied."""
    hot = Hot(device="CUDA0", share=0.5, experts_gb=2.0, cold_device="CPU")
    kept = replace(BASE, reads=BASE.reads[:1], hot=hot)
    estimates = Estimates(first_estimate)
    estimates.predict(partial(log_ms, kept))
    cold = [t for t in token_terms(kept, estimates.reader()) if "GB of experts" in t.because]
    assert "0.85 GB of experts" in cold[1].because
    copied = replace(kept, hot=replace(hot, cold_device=None), link_gb_s=7.88)
    assert ms(copied) > ms(kept)
    estimates.predict(partial(log_ms, copied))
    link = [t for t in token_terms(copied, estimates.reader()) if t.kind is TermKind.LINK]
    assert link[0].amount == pytest.approx(0.85 / 7.88 * 1e3, rel=0.01)


def test_a_read_on_a_device_that_is_not_there_is_a_mistake() -> None:
    """Placements name their own devices."""
    with pytest.raises(KeyError, match="CUDA9"):
        BASE.device("CUDA9")
