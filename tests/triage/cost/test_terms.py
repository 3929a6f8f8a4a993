"""The terms of time: the arithmetic of a split, to the digits people quote."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.rig.links import link_gb_s
from hetero_test.triage.cost import terms

SIZES = st.floats(0.001, 1e3)
RATES = st.floats(0.1, 1e4)
HOP_BYTES = 5120 * 2
"""A hidden state of 5120 elements in f16."""


def test_gen4_x4_is_7_88_gb_s_and_carries_a_hop_in_1_3_us() -> None:
    """The wire time of a hop is a microsecond; its synchronization is what costs."""
    link = link_gb_s(4, 4)
    assert round(link, 2) == 7.88
    assert round(terms.wire_us(HOP_BYTES, link), 1) == 1.3


def test_two_hops_a_layer_of_64_layers_are_about_a_mebibyte_and_a_third_of_a_percent() -> None:
    """The bytes over the link are almost never the constraint."""
    size = 2 * 64 * HOP_BYTES
    assert round(size / 2**20) == 1
    assert terms.wire_us(size, 7.88) / 40_000 == pytest.approx(0.004, abs=0.001)


def test_an_eighth_of_the_bytes_on_936_instead_of_256_gb_s_gives_10_percent() -> None:
    """The calibration of moving expert mass: +10.0 % by the sheet, +10.7 % by the copy test."""
    gain = terms.harmonic_tok_s([(0.875, 256.0), (0.125, 936.0)]) / 256
    assert round(100 * (gain - 1), 1) == 10.0
    measured = terms.harmonic_tok_s([(0.875, 212.0), (0.125, 936.0)]) / 212
    assert round(100 * (measured - 1), 1) == 10.7


@pytest.mark.parametrize(
    ("percent", "expected"),
    [
        (10, 56.2),
        (20, 59.5),
        (30, 63.3),
        (40, 67.5),
        (50, 72.3),
        (60, 77.9),
        (70, 84.5),
        (80, 92.2),
        (90, 101.5),
    ],
)
def test_the_sweep_between_two_measured_ends_follows_the_harmonic_mean(
    percent: int, expected: float
) -> None:
    """Whole layers between 53.2 and 112.8 tok/s, within 0.1 of the published column."""
    share = percent / 100
    predicted = terms.harmonic_tok_s([(1 - share, 53.2), (share, 112.8)])
    assert predicted == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(
    ("gb", "nominal", "measured_ms", "share"),
    [(5.92, 1541, 7.9, 0.49), (8.455, 1792, 6.4, 0.74), (0.302, 212, 2.5, 0.57)],
)
def test_kv_is_read_at_half_to_three_quarters_of_the_bandwidth(
    gb: float, nominal: float, measured_ms: float, share: float
) -> None:
    """Three measured contexts give their share back."""
    assert terms.kv_ms(gb, nominal, share) == pytest.approx(measured_ms, rel=0.02)


def test_splits_cost_what_a_breakdown_measured() -> None:
    """51 splits at 57.6 µs are the 2.94 ms a token of a published breakdown."""
    assert terms.sync_ms(51, 57.6) == pytest.approx(2.94, abs=0.005)


@given(size=SIZES, rate=RATES, faster=st.floats(1.0, 100.0))
def test_more_bandwidth_never_makes_a_read_slower(size: float, rate: float, faster: float) -> None:
    """A read takes bytes over bandwidth."""
    assert terms.read_ms(size, rate * faster) <= terms.read_ms(size, rate)


@given(rates=st.lists(RATES, min_size=2, max_size=5), rate=RATES)
def test_a_device_of_zero_share_costs_nothing(rates: list[float], rate: float) -> None:
    """Adding a device that does nothing changes no speed."""
    shares = [(1 / len(rates), each) for each in rates]
    assert terms.harmonic_tok_s([*shares, (0.0, rate)]) == terms.harmonic_tok_s(shares)
    assert terms.read_ms(0.0, rate) == 0.0


@given(ms=st.lists(st.floats(0, 1e3), max_size=5))
def test_devices_at_once_take_as_long_as_the_slowest(ms: list[float]) -> None:
    """Never longer than all in turn, never shorter than any; nothing takes no time."""
    assert terms.parallel_ms(ms) == max([0.0, *ms])


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_a_bandwidth_that_cannot_be_is_refused(wrong: float) -> None:
    """Zero, negative and infinite bandwidths are mistakes, not speeds."""
    with pytest.raises(ValueError, match="cannot be"):
        terms.read_ms(1.0, wrong)
    with pytest.raises(ValueError, match="cannot be"):
        terms.wire_us(1.0, wrong)


@pytest.mark.parametrize("wrong", [-1.0, math.nan])
def test_a_size_or_count_that_cannot_be_is_refused(wrong: float) -> None:
    """There are no negative bytes and no negative splits."""
    with pytest.raises(ValueError, match="cannot be"):
        terms.read_ms(wrong, 1.0)
    with pytest.raises(ValueError, match="cannot be"):
        terms.sync_ms(wrong, 1.0)


def test_shares_that_do_not_add_to_one_are_refused() -> None:
    """A token is done once."""
    with pytest.raises(ValueError, match="add to one"):
        terms.harmonic_tok_s([(0.5, 10.0)])
