"""A fact: value, origin, source, interval."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.rig.sourced import Origin, Sourced, assumed, measured, specified

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("make", "origin"),
    [(measured, Origin.MEASURED), (specified, Origin.SPECIFIED), (assumed, Origin.ASSUMED)],
)
def test_the_short_forms_set_the_origin(make: object, origin: Origin) -> None:
    """measured(), specified() and assumed() differ in the origin alone."""
    assert callable(make)
    assert make(936.0, "data sheet") == Sourced(value=936.0, origin=origin, source="data sheet")


@pytest.mark.parametrize("source", ["", " ", "\n"])
def test_a_fact_needs_a_source(source: str) -> None:
    """A fact without a source is refused."""
    with pytest.raises(ValueError, match="needs a source"):
        measured(1, source)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_is_finite(value: float) -> None:
    """NaN and infinity are not facts."""
    with pytest.raises(ValueError, match="finite"):
        measured(value, "x")


@pytest.mark.parametrize(("low", "high"), [(1.0, None), (None, 1.0)])
def test_half_an_interval_is_refused(low: float | None, high: float | None) -> None:
    """An interval has both ends or none."""
    with pytest.raises(ValueError, match="both"):
        Sourced(value=1.0, origin=Origin.ASSUMED, source="x", low=low, high=high)


@pytest.mark.parametrize("value", ["text", True])
def test_only_numbers_have_an_interval(value: str | bool) -> None:
    """A text or a yes/no has no interval."""
    with pytest.raises(ValueError, match="only a number"):
        Sourced(value=value, origin=Origin.ASSUMED, source="x", low=0.0, high=2.0)


@given(st.lists(FINITE, min_size=3, max_size=3))
def test_an_interval_holds_its_value(numbers: list[float]) -> None:
    """Whatever the numbers, an interval is accepted exactly when it holds the value."""
    low, value, high = numbers
    if low <= value <= high:
        fact = Sourced(value=value, origin=Origin.MEASURED, source="x", low=low, high=high)
        assert fact.value == value
    else:
        with pytest.raises(ValueError, match="leaves out"):
            Sourced(value=value, origin=Origin.MEASURED, source="x", low=low, high=high)


@pytest.mark.parametrize(("low", "high"), [(-math.inf, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_the_ends_are_finite(low: float, high: float) -> None:
    """An interval without an end carries no information and is refused."""
    with pytest.raises(ValueError, match="finite"):
        Sourced(value=0.5, origin=Origin.ASSUMED, source="x", low=low, high=high)
