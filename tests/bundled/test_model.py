"""The model: a row's result does not depend on what is computed with it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hetero_test.bundled.arith import Arithmetic
from hetero_test.bundled.build import demo_pack, rank_pairs
from hetero_test.bundled.cache import ExpertPlaces
from hetero_test.bundled.kv import KvFormat
from hetero_test.bundled.model import Kernels, Model
from hetero_test.bundled.pack import Layout
from hetero_test.bundled.weights import make_weights
from hetero_test.bundled.work import Work

PACK = demo_pack(Layout.CANONICAL)
WEIGHTS = make_weights(PACK.shape, PACK.seed)
IDS = st.lists(st.integers(0, PACK.shape.vocab - 1), min_size=1, max_size=12)


def model(*, slots: int, bits: int = 6) -> Model:
    """The demo's model with the first ranked pairs on a device."""
    return Model(
        WEIGHTS,
        PACK.shape,
        Kernels(main=Arithmetic(bits), places=(Arithmetic(bits), Arithmetic(12))),
        ExpertPlaces(PACK, [rank_pairs(PACK)[:slots]], pcie_share=51),
        Work(),
    )


@settings(deadline=None, max_examples=30)
@given(ids=IDS, data=st.data(), kept=st.sampled_from(KvFormat))
def test_windows_of_any_sizes_give_the_bits_of_single_rows(
    ids: list[int], data: st.DataObject, kept: KvFormat
) -> None:
    """However a sequence is cut into windows, logits, routes, keys and values are the same."""
    computed = model(slots=44)
    single, cut = (computed.memory(64, kept) for _ in range(2))
    alone = [computed.read([token], single) for token in ids]
    start = 0
    while start < len(ids):
        rows = data.draw(st.integers(1, len(ids) - start), label="rows")
        logits, routes = computed.read(ids[start : start + rows], cut)
        for row in range(rows):
            assert logits[row].tobytes() == alone[start + row][0][0].tobytes()
            assert np.array_equal(routes[:, row], alone[start + row][1][:, 0])
        start += rows
    assert np.array_equal(single.keys, cut.keys)
    assert np.array_equal(single.values, cut.values)


@settings(deadline=None, max_examples=25)
@given(ids=IDS, rejected=IDS)
def test_a_rejected_draft_leaves_no_trace(ids: list[int], rejected: list[int]) -> None:
    """After a roll-back the next row is computed as if the rejected rows had never been."""
    computed = model(slots=44)
    straight, detour = (computed.memory(64, KvFormat.FP16) for _ in range(2))
    computed.read(ids, straight)
    computed.read(ids, detour)
    computed.read(rejected, detour)
    detour.roll_back(len(ids))
    expected, _ = computed.read([7], straight)
    found, _ = computed.read([7], detour)
    assert expected.tobytes() == found.tobytes()


def test_the_last_row_alone_has_the_logits_of_the_last_row() -> None:
    """Asking for the last row's logits only changes what is returned."""
    computed = model(slots=44)
    every, _ = computed.read([1, 2, 3], computed.memory(8, KvFormat.FP16))
    last, _ = computed.read([1, 2, 3], computed.memory(8, KvFormat.FP16), last_only=True)
    assert last.tobytes() == every[-1:].tobytes()


def test_an_expert_in_the_cache_rounds_differently_from_one_outside() -> None:
    """Another residency gives other logits, and the kind of the device does too."""
    logits = [
        computed.read([5, 9, 13], computed.memory(8, KvFormat.FP16))[0].tobytes()
        for computed in (model(slots=0), model(slots=64), model(slots=64, bits=7))
    ]
    assert len(set(logits)) == 3


def test_an_id_beyond_the_vocabulary_is_taken_modulo_its_size() -> None:
    """Ids are not checked against the vocabulary."""
    computed = model(slots=64)
    inside, _ = computed.read([3], computed.memory(8, KvFormat.FP16))
    outside, _ = computed.read([3 + 4096], computed.memory(8, KvFormat.FP16))
    assert inside.tobytes() == outside.tobytes()


def test_two_distinct_experts_are_used_for_every_row() -> None:
    """Routing names two different experts of sixteen."""
    computed = model(slots=64)
    _, routes = computed.read(list(range(50)), computed.memory(64, KvFormat.FP16))
    assert routes.shape == (4, 50, 2)
    assert (routes[..., 0] != routes[..., 1]).all()
    assert set(routes.ravel().tolist()) == set(range(16))


def test_work_is_counted_where_it_is_done() -> None:
    """Every routed row is counted once: held by a device, read over the link, or the host's."""
    computed = model(slots=44)
    computed.read([4], computed.memory(8, KvFormat.FP16))
    work = computed.work
    assert work.resident_routed + work.host_routed + work.pcie_distinct == 4 * 2
    work.reset()
    assert work == Work()
