"""Tokens a round, from whatever a runtime prints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.triage.cost import drafting
from hetero_test.triage.cost.drafting import Acceptance


def test_accepted_over_drafted_is_not_p() -> None:
    """0.42 accepted/drafted at four drafts is 2.68 tokens a round; taken as p it would be 1.70."""
    positions = [0.696, 0.445, 0.326, 0.212]
    assert round(drafting.from_positions(positions), 2) == 2.68
    assert round(drafting.from_ratio(4, 0.42), 2) == 2.68
    assert round(drafting.from_p(4, 0.42), 2) == 1.70


def test_counters_tell_tokens_a_round_even_where_drafts_are_gated() -> None:
    """1728 predicted and 1178 accepted are 3.14 tokens a round."""
    assert round(drafting.from_counters(1728, 1178), 2) == 3.14


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ((0.696, 0.445, 0.326, 0.212), (0.70, 0.64, 0.73, 0.65)),
        ((0.918, 0.772, 0.616), (0.92, 0.84, 0.80)),
        ((0.93, 0.83, 0.70), (0.93, 0.89, 0.84)),
    ],
)
def test_conditional_acceptance_is_each_position_over_the_one_before(
    positions: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    """Published counts by position, to their printed digits."""
    assert drafting.conditional(positions) == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(
    ("positions", "p"), [((0.696, 0.445, 0.326, 0.212), 0.682), ((0.918, 0.772, 0.616), 0.874)]
)
def test_one_p_stands_for_positions_that_commit_as_many(
    positions: tuple[float, ...], p: float
) -> None:
    """The p of independent acceptance that gives the same tokens a round."""
    found = drafting.to_p(len(positions), drafting.from_positions(positions))
    assert found == pytest.approx(p, abs=0.0006)


@given(window=st.integers(1, 32), p=st.floats(0, 1))
def test_p_and_tokens_a_round_are_inverse(window: int, p: float) -> None:
    """to_p undoes from_p."""
    tokens = drafting.from_p(window, p)
    assert 1 <= tokens <= window + 1
    assert drafting.from_p(window, drafting.to_p(window, tokens)) == pytest.approx(tokens)


def test_more_tokens_than_drafts_and_one_cannot_be() -> None:
    """K drafts commit K + 1 tokens at the most, and one at the least."""
    with pytest.raises(ValueError, match="cannot commit"):
        drafting.to_p(3, 4.5)
    with pytest.raises(ValueError, match="cannot commit"):
        drafting.to_p(3, 0.5)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_outside_of_zero_and_one_is_refused(share: float) -> None:
    """Percent are no shares."""
    with pytest.raises(ValueError, match="cannot be"):
        drafting.from_ratio(3, share)
    with pytest.raises(ValueError, match="cannot be"):
        drafting.from_positions([share])


def test_counters_that_accept_all_that_was_predicted_cannot_be() -> None:
    """Each round predicts one token of the target's own."""
    with pytest.raises(ValueError, match="cannot be"):
        drafting.from_counters(10, 10)


def test_the_strongest_form_that_is_given_counts() -> None:
    """Tokens a round before positions before counters before a ratio before p."""
    every = {
        "tokens_per_round": 2.0,
        "accepted_at": (0.5,),
        "predicted": 30,
        "accepted": 10,
        "accepted_share": 0.9,
        "p": 0.1,
    }
    expected = [2.0, 1.5, 1.5, 2.8, pytest.approx(1.11)]
    for wanted in expected:
        assert Acceptance(window=2, **every).tokens == wanted  # type: ignore[arg-type]
        every.pop(next(iter(every)))
        if "accepted" in every and "predicted" not in every:
            every.pop("accepted")


def test_an_acceptance_without_any_number_is_refused() -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="nothing is said"):
        Acceptance(window=3)
    with pytest.raises(ValueError, match="window"):
        Acceptance(window=0, p=0.5)
