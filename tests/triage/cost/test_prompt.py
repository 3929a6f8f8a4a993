"""Reading a prompt, in its three regimes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.triage.cost import prompt
from hetero_test.triage.cost.prompt import Runtime
from hetero_test.triage.cost.terms import read_ms


@pytest.mark.parametrize(("tokens", "measured"), [(1024, 53.0), (2048, 97.1), (4096, 166.0)])
def test_uploading_costs_a_constant_a_batch_and_some_ms_a_token(
    tokens: int, measured: float
) -> None:
    """17.5 s and 1.75 ms a token reproduce a published sweep of batch sizes."""
    ms = prompt.uploaded_ms(tokens, 4096, 17_500, 1.75)
    assert tokens / ms * 1e3 == pytest.approx(measured, abs=0.1)


def test_360_gb_over_15_gb_s_is_24_s_a_batch() -> None:
    """A maintainer's worked example."""
    assert prompt.uploaded_ms(512, 512, read_ms(360, 15), 0.0) == pytest.approx(24_000)


def test_what_an_apu_kept_crosses_a_x4_link_for_each_batch_of_512() -> None:
    """97 GB at 6.6 GB/s for every 512 tokens is the fall from 192 to about 32 tok/s."""
    ms = prompt.uploaded_ms(512, 512, read_ms(97, 6.6), 1.7)
    assert 512 / ms * 1e3 == pytest.approx(32, abs=2)


def test_uploading_starts_at_a_batch_that_the_runtime_decides() -> None:
    """32 rows in llama.cpp, more in ik_llama.cpp where few of many experts are used."""
    assert prompt.upload_starts_at(Runtime.LLAMA_CPP, 256, 8) == 32
    assert prompt.upload_starts_at(Runtime.IK_LLAMA, 256, 8) == 1024
    assert prompt.upload_starts_at(Runtime.IK_LLAMA, 0, 0) == 32


@given(
    tokens=st.integers(1, 10_000),
    share=st.floats(0, 1),
    fast=st.floats(0.01, 10),
    slow=st.floats(0.01, 100),
)
def test_computing_in_place_lies_between_both_devices(
    tokens: int, share: float, fast: float, slow: float
) -> None:
    """A share on either device is never faster than the faster of them alone."""
    ms = prompt.in_place_ms(tokens, [(share, fast), (1 - share, slow)])
    low, high = sorted((fast, slow))
    assert prompt.resident_ms(tokens, low) <= ms * (1 + 1e-9)
    assert ms <= prompt.resident_ms(tokens, high) * (1 + 1e-9)


def test_the_batch_from_which_uploading_pays() -> None:
    """Upload time over what computing leaves of the wanted time; never, if it leaves nothing."""
    assert prompt.break_even_ubatch(1000, 10.0, 5.0) == 200
    assert prompt.break_even_ubatch(1000, 5.0, 5.0) is None


def test_links_batches_and_shares_that_cannot_be_are_refused() -> None:
    """Mistakes are reported."""
    with pytest.raises(ValueError, match="cannot be"):
        prompt.uploaded_ms(1, 512, -1, 1)
    with pytest.raises(ValueError, match="cannot be"):
        prompt.uploaded_ms(1, 0, 1, 1)
    with pytest.raises(ValueError, match="cannot be"):
        prompt.in_place_ms(1, [(1.5, 1)])
