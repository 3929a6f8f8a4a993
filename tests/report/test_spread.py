"""Numbers are quoted with their range, and no winner is declared inside the noise."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.report.spread import Spread, change, interval, number


def spread(*values: float) -> Spread:
    """Values in the order of measuring."""
    found = Spread.of(values)
    assert found is not None
    return found


def test_unknown_values_are_no_values() -> None:
    """Missing and not-a-number readings count for nothing; without any there is no spread."""
    assert Spread.of([None, math.nan, math.inf]) is None
    assert spread(1.0, math.nan, 3.0).values == (1.0, 3.0)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((7.23,), "7.23"),
        ((7.2, 7.2), "7.20"),
        ((7.1, 7.3, 7.2), "7.20 [7.10-7.30]"),
        ((123.44, 130.0), "126.7 [123.4-130.0]"),
        ((12345.6,), "12346"),
        ((0.002, 0.004), "0.00"),
    ],
)
def test_a_spread_reads_as_median_and_range(values: tuple[float, ...], shown: str) -> None:
    """The range is left out only where it says nothing."""
    assert str(spread(*values)) == shown


@pytest.mark.parametrize(
    ("this", "reference", "shown"),
    [
        ((8.0, 8.0), (7.0, 7.1), "+13.5 %"),
        ((6.0,), (7.0, 7.1), "-14.9 %"),
        ((7.05,), (7.0, 7.1), "~"),
        # Outside of the range, but not farther than the reference drifted.
        ((7.15,), (7.0, 7.1), "~"),
        ((7.25,), (7.0, 7.1), "+2.8 %"),
        # Its own range reaches into the reference's.
        ((7.0, 9.0), (7.0, 7.1), "~"),
        ((5.0, 6.8), (7.0, 7.1), "-16.3 %"),
        # A reference measured once has no noise that could be told from a change.
        ((8.0, 8.0), (7.0,), "–"),
        ((8.0,), (0.0, 0.0), "–"),
    ],
)
def test_a_change_must_leave_the_noise(
    this: tuple[float, ...], reference: tuple[float, ...], shown: str
) -> None:
    """The ranges must be apart by more than the reference drifted."""
    assert change(spread(*this), spread(*reference)) == shown


def test_many_runs_give_an_interval() -> None:
    """From five runs on both sides the 95 % interval of the ratio is shown."""
    shown = change(spread(8.0, 8.1, 8.0, 8.2, 8.1), spread(7.0, 7.1, 7.0, 7.2, 7.1))

    assert shown.startswith("+14.1 % (95 %: +")


def test_many_runs_that_overlap_are_no_change() -> None:
    """An interval that holds 1 is noise."""
    values = (7.0, 7.5, 7.2, 6.9, 7.3)

    assert change(spread(*values), spread(*reversed(values))) == "~"


@given(
    st.lists(st.floats(1, 100), min_size=5, max_size=9),
    st.lists(st.floats(1, 100), min_size=5, max_size=9),
)
def test_an_interval_lies_within_the_extreme_ratios(a: list[float], b: list[float]) -> None:
    """Resampling never leaves what was measured, and is the same each time."""
    low, high = interval(tuple(a), tuple(b))

    assert min(a) / max(b) <= low <= high <= max(a) / min(b)
    assert interval.__wrapped__(tuple(a), tuple(b)) == (low, high)


def test_digits_follow_the_size() -> None:
    """Nobody reads six digits."""
    assert [number(v) for v in (0.5, 99.994, 100.06, 5000.4)] == ["0.50", "99.99", "100.1", "5000"]
