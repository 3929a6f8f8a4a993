"""Intervals, and how arithmetic changes them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.triage.learn.interval import Interval

VALUES = st.floats(0.001, 1e6)
WIDTHS = st.floats(0, 1e6)


@given(value=VALUES, width=WIDTHS, wider=WIDTHS)
def test_more_doubt_is_never_narrower(value: float, width: float, wider: float) -> None:
    """Both ends move outward with the half width."""
    narrow, wide = Interval.around(value, width), Interval.around(value, width + wider)
    assert wide.low <= narrow.low * (1 + 1e-12)
    assert narrow.high <= wide.high


@given(value=VALUES, width=WIDTHS)
def test_an_inverse_swaps_the_ends(value: float, width: float) -> None:
    """Milliseconds a token become tokens a second."""
    interval = Interval.around(value, width)
    back = interval.inverse().inverse()
    assert back.value == pytest.approx(value)
    assert interval.inverse().low == pytest.approx(1 / interval.high)


@given(value=VALUES, more=VALUES, width=WIDTHS)
def test_a_larger_quantity_of_equal_doubt_is_never_narrower(
    value: float, more: float, width: float
) -> None:
    """Adding what is known exactly makes no interval narrower."""
    first, second = Interval.around(value, width), Interval.around(value + more, width)
    assert second.high - second.low >= first.high - first.low - 1e-9 * (value + more + width)


def test_both_ends_lie_as_far_as_a_ratio() -> None:
    """×÷, not ±: the lower end never reaches zero."""
    interval = Interval.around(2.0, 1.0)
    assert (interval.low, interval.value, interval.high) == pytest.approx((2 / 1.5, 2, 3))


def test_units_scale_all_ends() -> None:
    """1000 ms are a second."""
    assert Interval(low=1, value=2, high=4).times(1000) == Interval(low=1000, value=2000, high=4000)


def test_intervals_that_cannot_be_are_refused() -> None:
    """Ends enclose the value; positive quantities stay positive."""
    with pytest.raises(ValueError, match="leaves out"):
        Interval(low=2, value=1, high=3)
    with pytest.raises(ValueError, match="finite"):
        Interval(low=0, value=1, high=math.inf)
    with pytest.raises(ValueError, match="negative"):
        Interval.around(-1, 0)
    with pytest.raises(ValueError, match="no inverse"):
        Interval(low=0, value=1, high=2).inverse()
    with pytest.raises(ValueError, match="positive"):
        Interval.around(1.0, 0.0).times(0)
