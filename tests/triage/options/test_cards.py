"""Two cards and the host: nothing of the model is lost, and nothing is there twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.triage.options.cards import LEAST_SHARE, tensor_parallel, two_cards_and_host
from tests.triage.rigs import card, cpu, dense, mixture, question, rig


@given(
    first=st.integers(8, 17),
    second=st.integers(8, 17),
    layers=st.integers(30, 60),
    expert_mb=st.integers(1300, 3000),
)
def test_a_layer_split_places_every_byte_once(
    first: int, second: int, layers: int, expert_mb: int
) -> None:
    """Experts, KV, trunk and reads over all devices sum up to the model's."""
    cards, host = (card(gib=first), card("CUDA1", gib=second)), cpu()
    asked = question(mixture(layers=layers, expert_mb=expert_mb), rig(*cards, host))
    sizes = asked.sizes_of(asked.model)

    option = two_cards_and_host(asked, sizes, cards, host)

    assert option is not None
    parts = [fill.parts for fill in option.fills]
    reads = option.placement.reads
    for name, size in (
        ("experts", sizes.experts_bytes),
        ("KV", sizes.kv_bytes),
        ("attention and shared", sizes.trunk_bytes),
    ):
        assert sum(part.get(name, 0) for part in parts) == pytest.approx(size)
    assert sum(read.gb for read in reads) == pytest.approx(sizes.trunk_gb + sizes.experts_gb)
    assert sum(read.kv_gb for read in reads) == pytest.approx(sizes.kv_gb)
    assert {fill.device for fill in option.fills} == set(option.devices)
    assert all(fill.missing == 0 for fill in option.fills[:2])


def test_there_is_no_such_split_without_experts_on_all_three() -> None:
    """A dense model, one that both cards hold, and one of which a card holds no experts."""
    host = cpu()
    for model, first, second in (
        (dense(), 24, 24),
        (mixture(layers=8), 24, 24),
        (mixture(), 24, 1),
    ):
        cards = (card(gib=first), card("CUDA1", gib=second))
        asked = question(model, rig(*cards, host))
        assert two_cards_and_host(asked, asked.sizes_of(asked.model), cards, host) is None


@given(first=st.integers(12, 40), second=st.integers(12, 40), speed=st.floats(1, 500))
def test_a_parallel_split_places_every_byte_once(first: int, second: int, speed: float) -> None:
    """Shares of weights, KV and reads sum up to the model's, each large enough for a flag."""
    cards = (card(gib=first), card("CUDA1", gib=second))
    asked = question(dense(), rig(*cards, cpu()))
    sizes = asked.sizes_of(asked.model)

    option = tensor_parallel(asked, sizes, *cards, {"CUDA0": speed, "CUDA1": 60.0})

    assert option is not None
    on_cards = [fill.parts for fill in option.fills[:2]]
    assert sum(part["weights"] for part in on_cards) == pytest.approx(sizes.resident_bytes)
    assert sum(part["KV"] for part in on_cards) == pytest.approx(sizes.kv_bytes)
    assert min(part["weights"] for part in on_cards) >= LEAST_SHARE * sizes.resident_bytes
    reads = option.placement.reads
    assert sum(read.gb + read.kv_gb for read in reads) == pytest.approx(
        sizes.trunk_gb + sizes.kv_gb
    )
