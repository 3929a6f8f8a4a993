"""What comes first: assumed bandwidths, and measurements that contradict each other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hetero_test.rig.sourced import Origin, Sourced, measured
from hetero_test.triage.answer.answer import TriageAnswer, answer
from hetero_test.triage.answer.not_helpful import cautions
from hetero_test.triage.cost.priors import PRIORS
from hetero_test.triage.learn.interval import Z80
from hetero_test.triage.learn.scoring import Call
from hetero_test.triage.options.devices import device_of
from hetero_test.triage.options.question import Speeds
from tests.triage.rigs import card, cpu, dense, question, rig

if TYPE_CHECKING:
    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.answer.forecast import Forecast
    from hetero_test.triage.learn.estimates import Estimates

SECOND = card("CUDA1", gib=24, gb_s=360.0, name="RTX 3060")


def forecast(found: TriageAnswer, key: str) -> Forecast:
    """One option's."""
    return next(ranked.forecast for ranked in found.ranked if ranked.option.key == key)


def read_test(gb_s: float, low: float, high: float) -> Sourced[float]:
    """A measured bandwidth with its ends."""
    return Sourced(value=gb_s, origin=Origin.MEASURED, source="read test", low=low, high=high)


def with_copy(device: DeviceFacts, fact: Sourced[float]) -> DeviceFacts:
    """The device with a measured bandwidth."""
    return replace(device, bandwidth_measured_gb_s=fact)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (card(gb_s=None, name="Card X"), "CUDA0: assumed 600 GB/s, no figure for Card X"),
        (
            replace(cpu(gb_s=None), name=measured("Chip Y", "test")),
            "CPU: memory bandwidth not measured, assumed 70 GB/s, no figure for Chip Y: "
            "run hetero-test rig",
        ),
    ],
)
def test_an_assumed_bandwidth_is_told_with_the_device_it_is_assumed_of(
    device: DeviceFacts, words: str, estimates: Estimates, q: float
) -> None:
    """In the first lines and among the inputs, with the number that counts."""
    found = answer(question(dense(), rig(device)), estimates, q)
    assert any(text.startswith(words) for text in found.cautions)
    rows = [row for row in found.inputs if row.name == f"{device.id}: bandwidth"]
    middle = PRIORS[f"nominal:{device.device_class.value}"].middle
    assert [(row.value.split(" (")[0], row.origin) for row in rows] == [
        (f"{middle:.0f} GB/s", Origin.ASSUMED)
    ]


def test_nothing_is_assumed_of_what_is_told_or_measured_alone(
    estimates: Estimates, q: float
) -> None:
    """With a data sheet or a baseline nothing is assumed."""
    known = answer(question(dense(), rig(card(), SECOND)), estimates, q)
    assert known.cautions == ()
    unknown = question(
        dense(), rig(card(gb_s=None)), baselines={"CUDA0": Speeds(decode_tok_s=24.0)}
    )
    assert cautions(unknown) == []


def test_a_baseline_that_contradicts_the_bandwidth_is_told_and_decides_nothing_else(
    estimates: Estimates, q: float
) -> None:
    """It is believed for its own device; the other's forecast stays, and nothing is GO by it."""
    asked = question(dense(layers=48, layer_mb=210), rig(card(), SECOND))
    odd = replace(asked, baselines={"CUDA0": Speeds(decode_tok_s=18.0)})
    before, after = answer(asked, estimates, q), answer(odd, estimates, q)
    assert before.cautions == ()
    (text,) = after.cautions
    assert text.startswith("CUDA0: its baseline of 18 tok/s and its bandwidth of 936 GB/s")
    assert "contradict each other" in text
    assert forecast(after, "alone:CUDA0").decode.value == pytest.approx(18.0)
    other, again = (forecast(found, "alone:CUDA1").decode for found in (before, after))
    assert again.value == pytest.approx(other.value, rel=0.05)
    assert again.high / again.low == pytest.approx(other.high / other.low, rel=0.05)
    both = next(r for r in after.ranked if r.option.key == "parallel:CUDA0+CUDA1")
    assert both.forecast.gain is not None
    assert both.forecast.gain.low > 1
    assert both.recommendation.call is Call.MEASURE_FIRST
    assert "what is told of CUDA0 contradicts itself" in both.recommendation.reason


def test_a_measured_bandwidth_far_from_the_data_sheet_decides_nothing_alone(
    estimates: Estimates, q: float
) -> None:
    """MEASURE FIRST, until a baseline says which of the two is right."""
    odd = with_copy(card("CUDA1", gib=24, gb_s=936.0), measured(300.0, "a copy test"))
    asked = question(dense(), rig(card(), odd))
    both = next(
        r for r in answer(asked, estimates, q).ranked if r.option.key == "parallel:CUDA0+CUDA1"
    )
    assert both.recommendation.call is Call.MEASURE_FIRST
    assert "what is told of CUDA1 contradicts itself" in both.recommendation.reason
    expected = forecast(answer(asked, estimates, q), "alone:CUDA1").decode.value
    surer = replace(asked, baselines={"CUDA1": Speeds(decode_tok_s=round(expected, 1))})
    found = answer(surer, estimates, q)
    both = next(r for r in found.ranked if r.option.key == "parallel:CUDA0+CUDA1")
    assert "contradicts itself" not in both.recommendation.reason


def test_a_baseline_contradicts_a_measured_bandwidth_as_well(
    estimates: Estimates, q: float
) -> None:
    """Neither is averaged away."""
    device = with_copy(card(gb_s=None), measured(300.0, "a copy test"))
    asked = question(
        dense(layers=48, layer_mb=210),
        rig(device, SECOND),
        baselines={"CUDA0": Speeds(decode_tok_s=90.0)},
    )
    (text,) = answer(asked, estimates, q).cautions
    assert "its bandwidth of 300 GB/s (measured)" in text


@given(tok_s=st.floats(1, 400))
@settings(max_examples=25, deadline=None)
def test_a_baseline_is_either_expected_or_told_to_contradict(
    tok_s: float, estimates: Estimates, q: float
) -> None:
    """Whatever it says, the other card's estimate moves by its class's part at most."""
    asked = question(dense(), rig(card(), SECOND))
    odd = replace(asked, baselines={"CUDA0": Speeds(decode_tok_s=tok_s)})
    expected = forecast(answer(asked, estimates, q), "alone:CUDA0").decode.value
    found = answer(odd, estimates, q)
    far = abs(math.log(tok_s / expected))
    assert far < 0.6 or found.cautions
    assert far > 0.2 or not found.cautions
    other = forecast(answer(asked, estimates, q), "alone:CUDA1").decode.value
    assert abs(math.log(forecast(found, "alone:CUDA1").decode.value / other)) < 0.25


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (measured(1200.0, "test"), "it is not believed"),
        (measured(300.0, "test"), "what was measured is believed"),
        (measured(800.0, "test"), None),
        (read_test(700.0, 690.0, 900.0), None),
        (read_test(500.0, 490.0, 930.0), "490 to 930 is possible"),
    ],
)
def test_a_measured_bandwidth_far_from_the_data_sheet_or_uneven_is_told(
    fact: Sourced[float], words: str | None
) -> None:
    """Which of the two counts, and what to do."""
    found = cautions(question(dense(), rig(with_copy(card(), fact))))
    assert len(found) == (words is not None)
    assert all(words is not None and words in text for text in found)


def test_the_far_end_of_a_measured_bandwidth_reaches_the_forecast(
    estimates: Estimates, q: float
) -> None:
    """What was measured beside other work may be faster, and is less sure."""
    at_rest = rig(with_copy(cpu(gb_s=None), read_test(9.0, 8.9, 9.1)))
    loaded = rig(with_copy(cpu(gb_s=None), read_test(9.0, 8.9, 27.0)))
    quiet, busy = (
        forecast(answer(question(dense(), machine), estimates, q), "alone:CPU").decode
        for machine in (at_rest, loaded)
    )
    assert busy.low > 0.9 * quiet.low
    assert busy.high > 1.8 * quiet.high
    assert busy.high / busy.low > 1.4 * quiet.high / quiet.low


@given(
    value=st.floats(1, 1000), less=st.floats(0.3, 1), more=st.floats(1, 10), wider=st.floats(1, 5)
)
def test_a_wider_measurement_is_never_surer(
    value: float, less: float, more: float, wider: float
) -> None:
    """Its ends hold 8 in 10 cases of the estimate, and its middle lies between them."""
    fact = read_test(value, value * less, value * more)
    device = device_of(with_copy(card(gb_s=None), fact))
    assert device.copy_gb_s is not None
    assert fact.low is not None
    assert fact.high is not None
    assert fact.low * 0.999 <= device.copy_gb_s <= fact.high * 1.001
    half = math.log(fact.high / fact.low) / 2
    assert device.copy_sigma * Z80 >= half * 0.999
    far = read_test(value, value * less, value * more * wider)
    assert device_of(with_copy(card(gb_s=None), far)).copy_sigma >= device.copy_sigma * 0.999
