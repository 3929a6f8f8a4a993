"""Arithmetic whose results depend on nothing but its operands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hetero_test.bundled.arith import Arithmetic, decay, normalize, product, sigmoid
from hetero_test.bundled.pack import Dimensions
from hetero_test.bundled.weights import make_weights

ROWS = arrays(np.float64, (5, 64), elements=st.floats(-8, 8, width=32))


@given(rows=ROWS, bits=st.integers(4, 12))
def test_a_row_is_rounded_to_whole_numbers_of_the_asked_width(rows: np.ndarray, bits: int) -> None:
    """Quantized rows are whole, within the width, and scale back to within half a step."""
    quantized, scale = Arithmetic(bits).quantize(rows)
    assert (quantized == np.rint(quantized)).all()
    assert np.abs(quantized).max() <= 2 ** (bits - 1) - 1
    assert (np.abs(quantized * scale - rows) <= scale * 0.500001).all()


@given(rows=ROWS)
def test_a_product_is_the_exact_sum_in_any_order(rows: np.ndarray) -> None:
    """A product equals the integer sum, forwards and backwards, so no library can change it."""
    weights = make_weights(Dimensions(), seed=5).layers[0].out
    quantized, _ = Arithmetic(12).quantize(rows)
    whole = quantized.astype(np.int64) @ weights.astype(np.int64)
    assert np.array_equal(quantized @ weights, whole)
    assert np.array_equal(quantized[:, ::-1] @ weights[::-1], whole)


@given(rows=ROWS, row=st.integers(0, 4))
def test_a_row_does_not_depend_on_the_rows_beside_it(rows: np.ndarray, row: int) -> None:
    """Quantizing and multiplying one row alone gives the same bits as among others."""
    weights = make_weights(Dimensions(), seed=5).layers[0].qkv
    together = product(*Arithmetic(6).quantize(rows), weights)
    alone = product(*Arithmetic(6).quantize(rows[row : row + 1]), weights)
    assert together[row].tobytes() == alone[0].tobytes()


def test_a_row_of_zeros_stays_zero() -> None:
    """A row without a peak is not divided by it."""
    rows = np.zeros((1, 64))
    assert not Arithmetic(8).quantize(rows)[0].any()
    assert not normalize(rows).any()


@given(distance=st.floats(0, 100))
def test_decay_is_close_to_the_exponential(distance: float) -> None:
    """The decay is exp(-distance) in whole 1/4096, at steps of 1/16."""
    value = float(decay(np.array([distance]))[0])
    assert value == int(value)
    assert value / 4096 == pytest.approx(np.exp(-distance), abs=0.035)


@given(value=st.floats(-50, 50))
def test_the_sigmoid_is_symmetric_about_a_half(value: float) -> None:
    """sigmoid(-x) is 1 - sigmoid(x), within 0 and 1."""
    up, down = sigmoid(np.array([value, -value]))
    assert 0 < up < 1
    assert up + down == pytest.approx(1)
