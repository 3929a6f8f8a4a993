"""What a round of speculation costs, and when it pays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.triage.cost import drafting
from hetero_test.triage.cost.drafting import Verify, from_ratio

R = 0.075


def cost(window: int, r: float, beta: float) -> float:
    """Steps of a round: K drafts and K + 1 rows verified."""
    return drafting.round_cost(window, r, Verify(beta=beta).cost(window + 1))


# id, window, tokens a round, measured speed-up, A/(K r + 1) as published, cost, implied beta
ROUNDS = [
    ("2x5060Ti K2", 2, 2.56, 1.81, 2.23, 1.41, 0.13),
    ("2x5060Ti K3", 3, 3.14, 1.93, 2.56, 1.63, 0.13),
    ("2x5060Ti K4", 4, 3.59, 1.90, 2.76, 1.89, 0.15),
    ("8060S K2", 2, 2.56, 2.06, 2.23, 1.24, 0.05),
    ("8060S K4", 4, 3.63, 2.04, 2.79, 1.78, 0.12),
    ("7900XTX K2", 2, 2.61, 2.01, 2.27, 1.30, 0.07),
    ("7900XTX K3", 3, 3.16, 2.45, 2.58, 1.29, 0.02),
    ("3090 K4", 4, 3.59, 1.66, 2.76, 2.17, 0.22),
    ("3090 K2", 2, 2.58, 1.54, 2.24, 1.68, 0.26),
    ("5080+3090", 2, 2.58, 1.67, 2.24, 1.54, 0.20),
    ("3060Ti+3080Ti", 2, 2.79, 1.25, 2.43, 2.23, 0.54),
    ("2xP40", 4, 3.72, 1.79, 2.86, 2.08, 0.20),
    ("PRO6000 K2", 2, 2.18, 1.52, 1.90, 1.44, 0.14),
    ("PRO6000 K4", 4, 2.68, 1.84, 2.06, 1.46, 0.04),
    ("M3 Ultra K2", 2, 2.60, 1.06, 2.26, 2.45, 0.65),
    ("M3 Ultra K3", 3, 3.16, 0.91, 2.58, 3.48, 0.75),
    ("M3 Ultra K4", 4, 3.60, 0.79, 2.77, 4.54, 0.81),
    ("GLM-5.2", 1, 1.86, 0.81, 1.73, 2.28, 1.21),
    ("Step h1", 3, 1.95, 0.60, 1.59, 3.25, 0.67),
    ("Step h2", 3, 2.69, 0.81, 2.19, 3.31, 0.69),
    ("Step h3", 3, 2.76, 0.85, 2.25, 3.26, 0.68),
    ("Flash-Next", 4, 2.68, 0.58, 2.06, 4.61, 0.83),
]


@pytest.mark.parametrize(
    ("r", "beta", "window", "expected"),
    [
        (0.4, 0.0, 3, 0.607),
        (0.45, 0.0, 3, 0.651),
        (0.5, 0.0, 3, 0.691),
        (0.1, 0.2, 3, 0.509),
        (0.05, 0.8, 3, 0.921),
    ],
)
def test_the_break_even_p_of_a_drafter(r: float, beta: float, window: int, expected: float) -> None:
    """Published break-even points, to their three digits."""
    p = drafting.break_even_p(window, cost(window, r, beta))
    assert p is not None
    assert round(p, 3) == expected


def test_no_p_suffices_where_a_round_costs_more_than_it_can_commit() -> None:
    """Three drafts of a step each with dear verification cost more than four tokens."""
    assert drafting.break_even_p(3, cost(3, 1.0, 0.5)) is None


def test_an_incumbent_that_drafts_raises_the_break_even() -> None:
    """A head that already gives 1.3 times the speed is a harder rival than no drafting."""
    alone = drafting.break_even_p(3, 1.8)
    against = drafting.break_even_p(3, 1.8, incumbent_speedup=1.3)
    assert alone is not None
    assert against is not None
    assert against > alone


@pytest.mark.parametrize(
    ("experts", "used", "rows", "expected"),
    [
        (128, 8, 2, 1.94),
        (128, 8, 3, 2.82),
        (128, 8, 4, 3.64),
        (128, 8, 5, 4.41),
        (128, 8, 8, 6.45),
        (256, 8, 2, 1.97),
        (256, 8, 3, 2.91),
        (256, 8, 4, 3.82),
        (256, 8, 5, 4.70),
        (256, 8, 8, 7.18),
        (512, 10, 2, 1.98),
        (512, 10, 3, 2.94),
        (512, 10, 4, 3.88),
        (512, 10, 5, 4.81),
        (512, 10, 8, 7.47),
        (64, 6, 2, 1.91),
        (64, 6, 3, 2.73),
        (64, 6, 4, 3.47),
        (64, 6, 5, 4.15),
        (64, 6, 8, 5.81),
        (128, 4, 5, 4.70),
    ],
)
def test_unique_experts_grow_as_independent_routing_says(
    experts: int, used: int, rows: int, expected: float
) -> None:
    """The tables of U(T)/k, to two digits."""
    assert drafting.expert_growth(experts, used, rows) == pytest.approx(expected, abs=0.0051)


@pytest.mark.parametrize("row", ROUNDS, ids=[row[0] for row in ROUNDS])
def test_round_costs_and_implied_beta_of_published_runs(
    row: tuple[str, int, float, float, float, float, float],
) -> None:
    """E over the measured speed-up is the cost; β is what is left of it after K drafts."""
    _, window, tokens, measured, rule, steps, beta = row
    found = tokens / measured
    assert found == pytest.approx(steps, rel=0.012)  # both factors are rounded to three digits
    assert drafting.implied_beta(window, R, steps) == pytest.approx(beta, abs=0.011)
    free = drafting.speedup(tokens, cost(window, R, 0.0))
    assert free == pytest.approx(rule, abs=0.011)


@pytest.mark.parametrize(
    ("window", "tokens", "beta", "expected"),
    [
        (4, 3.59, 0.199, 1.71),
        (2, 2.58, 0.199, 1.66),
        (2, 2.60, 0.791, 0.95),
        (3, 3.16, 0.791, 0.88),
        (4, 3.60, 0.791, 0.81),
    ],
)
def test_a_beta_that_was_measured_apart_predicts_the_speed_up(
    window: int, tokens: float, beta: float, expected: float
) -> None:
    """Batched-bench costs of a row predict runs that they were not measured on."""
    assert drafting.speedup(tokens, cost(window, R, beta)) == pytest.approx(expected, abs=0.012)


def test_beta_of_a_batch_of_eight() -> None:
    """2.39 and 6.54 steps for eight rows are 0.199 and 0.791 a row."""
    assert round((2.39 - 1) / 7, 3) == 0.199
    assert Verify(beta=0.199).cost(8) == pytest.approx(2.39, abs=0.005)
    assert Verify(beta=0.791).cost(8) == pytest.approx(6.54, abs=0.005)


def test_a_measured_v_is_used_and_nothing_else() -> None:
    """Where V(T) was measured, β and experts do not matter; between sizes lines are straight."""
    verify = Verify(beta=9.0, expert_share=0.9, experts=8, used=2, measured={2: 2.2, 4: 3.0})
    assert verify.cost(1) == 1.0
    assert verify.cost(2) == 2.2
    assert verify.cost(3) == pytest.approx(2.6)
    assert verify.cost(5) == pytest.approx(3.4)


def test_matrix_kernels_make_rows_beyond_eight_nearly_free() -> None:
    """A tree of 22 drafts costs no more to verify than eight rows, but not on a CPU."""
    assert Verify(beta=0.12).cost(23) == Verify(beta=0.12).cost(8)
    assert Verify(beta=0.12, kernel_rows=None).cost(23) > Verify(beta=0.12).cost(23)


@given(
    beta=st.floats(0, 2),
    share=st.floats(0, 1),
    rows=st.integers(1, 64),
    eta=st.floats(0, 1.5),
)
def test_a_batch_never_costs_less_than_one_row(
    beta: float, share: float, rows: int, eta: float
) -> None:
    """V(T) is at least one, and more rows never cost less."""
    verify = Verify(beta=beta, expert_share=share, experts=64, used=6, eta=eta)
    assert verify.cost(rows) >= 1 - 1e-12
    assert verify.cost(rows + 1) >= verify.cost(rows) - 1e-12


@given(window=st.integers(1, 16), share=st.floats(0, 1), steps=st.floats(1, 20))
def test_break_even_is_where_the_speed_up_is_one(window: int, share: float, steps: float) -> None:
    """At the break-even p a round commits as many tokens as it costs steps."""
    p = drafting.break_even_p(window, steps)
    if p is None:
        assert steps > window + 1
    else:
        assert sum(p**i for i in range(window + 1)) == pytest.approx(steps)
    assert drafting.speedup(from_ratio(window, share), steps) > 0


def test_a_batch_of_nothing_and_more_used_than_there_are_cannot_be() -> None:
    """Mistakes are reported, not computed with."""
    with pytest.raises(ValueError, match="0 rows"):
        Verify(beta=0.1).cost(0)
    with pytest.raises(ValueError, match="cannot be"):
        drafting.unique_experts(4, 8, 2)
    with pytest.raises(ValueError, match="alone says nothing"):
        Verify(beta=0.1, measured={1: 1.0}).cost(3)
