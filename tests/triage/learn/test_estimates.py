"""Estimates, and how a measurement changes them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.triage.cost.priors import Reader
from hetero_test.triage.learn.estimates import Estimates


def first(name: str) -> tuple[float, float]:
    """Two unknowns of middle one: one is known well, one badly."""
    return {"sure": (0.0, 0.1), "unsure": (0.0, 0.8), "other": (1.0, 0.5)}[
        name.split("@", maxsplit=1)[0]
    ]


def product(read: Reader) -> float:
    """ln(sure × unsure)."""
    return math.log(read("sure") * read("unsure"))


def total(read: Reader) -> float:
    """ln(sure + unsure)."""
    return math.log(read("sure") + read("unsure"))


def test_a_measurement_moves_what_is_unsure_most() -> None:
    """Each unknown takes of the surprise in proportion to its variance."""
    estimates = Estimates(first)
    estimates.condition(product, math.log(2), 0.01)
    sure, unsure = math.log(estimates.known("sure")[0]), math.log(estimates.known("unsure")[0])
    assert sure + unsure == pytest.approx(math.log(2), abs=1e-3)
    assert unsure / sure == pytest.approx(64, rel=1e-3)


def test_a_measurement_makes_its_own_prediction_sure_but_not_its_parts() -> None:
    """The sum is known after it was measured; how it divides is not."""
    estimates = Estimates(first)
    estimates.condition(product, math.log(2), 0.01)
    value, spread = estimates.predict(product)
    assert value == pytest.approx(math.log(2), abs=1e-3)
    assert spread < 0.011
    assert estimates.known("unsure")[1] > 0.09


@given(observed=st.floats(0.05, 50), noise=st.floats(0.005, 0.5))
def test_a_measurement_never_makes_anything_less_sure(observed: float, noise: float) -> None:
    """Spreads shrink or stay."""
    estimates = Estimates(first)
    estimates.condition(total, math.log(observed), noise)
    assert estimates.known("sure")[1] <= 0.1 + 1e-12
    assert estimates.known("unsure")[1] <= 0.8 + 1e-12
    assert estimates.known("other") == pytest.approx((math.e, 0.5))


def test_a_sum_is_met_although_it_is_not_linear() -> None:
    """Linearizing again and again lands where a single step would not."""
    estimates = Estimates(first)
    estimates.condition(total, math.log(5), 0.01)
    assert estimates.predict(total)[0] == pytest.approx(math.log(5), abs=0.02)


def test_a_copy_learns_apart() -> None:
    """Nothing is learned from one scored point for the next."""
    estimates = Estimates(first)
    estimates.condition(product, 0.5, 0.1)
    before = estimates.known("unsure")
    estimates.copy().condition(product, -3.0, 0.1)
    assert estimates.known("unsure") == before


def test_what_is_forgotten_leaves_what_it_taught() -> None:
    """A rig's deviation goes with the rig; the class keeps what it learned."""
    estimates = Estimates(first)

    def on_rig(read: Reader) -> float:
        return math.log(read("unsure", at="rig"))

    estimates.condition(on_rig, math.log(3), 0.01)
    learned = estimates.known("unsure")
    estimates.drop(lambda name: "@" in name)
    assert estimates.names == ("unsure",)
    assert estimates.known("unsure") == learned
    assert learned[0] == pytest.approx(math.sqrt(3), rel=1e-2)  # half of it was the rig's


def test_shares_of_doubt_add_up_and_the_largest_comes_first() -> None:
    """The uncertainty of a result, by unknown."""
    shares = Estimates(first).shares(product)
    assert [name for name, _ in shares] == ["unsure", "sure"]
    assert sum(share for _, share in shares) == pytest.approx(1.0)
    assert Estimates(first).shares(lambda _read: 1.0) == []


def test_one_unknown_can_be_looked_up_elsewhere_than_at_its_middle() -> None:
    """The search for the value at which a gain vanishes."""
    estimates = Estimates(first)
    estimates.predict(product)
    assert estimates.shifted("unsure", 3.0)("unsure") == pytest.approx(3.0)
    assert estimates.shifted("unsure", 3.0)("sure") == pytest.approx(1.0)
