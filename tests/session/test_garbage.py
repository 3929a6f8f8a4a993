"""What dominates the tail of a stream decides whether it is garbage."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.session import garbage as rules
from hetero_test.session.garbage import garbage
from tests.session.garbage_rates import BROKEN, SOUND, share

PROMPT = tuple(place * place % 4999 for place in range(300, 400))


@pytest.mark.parametrize("name", sorted(SOUND))
def test_sound_streams_pass(name: str) -> None:
    """At most one sound stream in a hundred is called garbage, whatever it is like."""
    assert share(SOUND[name], 60, 300) <= 0.01


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_broken_streams_are_found(name: str) -> None:
    """At least 95 of 100 broken streams are found, although 3 % of their ids are noise."""
    assert share(BROKEN[name], 60, 300) >= 0.95


@given(
    ring=st.lists(st.integers(0, 30_000), min_size=1, max_size=10, unique=True),
    head=st.lists(st.integers(0, 30_000), max_size=30),
)
def test_any_loop_is_found(ring: list[int], head: list[int]) -> None:
    """A loop of up to a sixth of the stream is found, whatever came before it."""
    stream = (head + [ring[place % len(ring)] for place in range(60)])[-60:]
    assert garbage(stream, PROMPT) is not None


@given(st.lists(st.integers(0, 2), min_size=16, max_size=80))
def test_few_ids_are_garbage_in_any_order(ids: list[int]) -> None:
    """Three ids that fill a tail of 16 or more are garbage even where no loop is exact."""
    if len(ids) >= 32:
        assert garbage(ids) is not None


def test_id_that_alternates_in_blocks_is_garbage() -> None:
    """One id eight times, then another, again and again: no cycle is short, but two ids rule."""
    assert garbage(([14] * 8 + [11]) * 7) is not None
    assert garbage(([14] * 8 + [11] * 8) * 4) is not None


def test_counter_is_garbage_in_either_direction() -> None:
    """Ids that count up or down by any step are no text."""
    assert garbage(list(range(60))) is not None
    assert garbage(list(range(6000, 0, -100))) is not None


def test_the_prompt_again_is_garbage() -> None:
    """A stream that begins as the prompt does, for 16 ids or more, computed nothing."""
    assert garbage(PROMPT[:60], PROMPT) is not None
    assert garbage((*PROMPT[:15], 7, *PROMPT[16:40]), PROMPT) is None


def test_short_streams_are_left_alone() -> None:
    """Two or three equal ids in a row are ordinary text."""
    assert garbage([5, 5, 5]) is None
    assert garbage([5, 5, 5, 5]) is not None


def test_the_reason_names_what_dominates() -> None:
    """The reason says which rule found it and shows the end of the stream."""
    told = garbage([1, 2, 3, 4] * 15)
    assert told == "got stuck in a loop of 4 ids; it ends in … 1 2 3 4"


def shortest(tail: list[int]) -> int | None:
    """The period that a loop has by its definition: four fifths of the ids are one loop old."""
    for period in range(1, len(tail) // 3 + 1):
        same = [tail[place] == tail[place - period] for place in range(period, len(tail))]
        if sum(same) >= 0.8 * len(same):
            return period
    return None


def loops() -> Iterator[tuple[list[int], int | None]]:
    """Noisy loops of many lengths, from plainly one to plainly none, with what each should be."""
    draw = random.Random(20261201)
    for _ in range(150):
        period, noise = draw.randint(2, 30), draw.uniform(0, 0.25)
        ids = [draw.randint(0, 10**6) for _ in range(period)] * 60
        ids = [draw.randint(0, 10**6) if draw.random() < noise else token for token in ids]
        ids = ids[: draw.randint(32, 240)]
        yield ids, shortest(ids[-(len(ids) // 2) :])


@pytest.mark.parametrize("long_tail", [0, 10**6], ids=["numpy", "plain"])
def test_the_shortest_loop_is_found_in_either_way(
    monkeypatch: pytest.MonkeyPatch, long_tail: int
) -> None:
    """Long tails are searched otherwise than short ones, with the same answer."""
    monkeypatch.setattr(rules, "LONG_TAIL", long_tail)
    found = list(loops())

    for ids, period in found:
        told = garbage(ids) or ""
        assert (f"in a loop of {period} ids" in told) is (period is not None)
    assert 20 < sum(period is None for _, period in found) < 130


def test_a_long_stream_is_not_searched_id_by_id() -> None:
    """A Python call for each pair of ids and each of 5,000 periods took 17 s a run."""
    draw = random.Random(7)
    ids = [draw.randint(0, 10**5) for _ in range(32_000)]
    garbage(ids)  # loads numpy
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        assert garbage(ids) is None
    finally:
        sys.setprofile(None)
    assert calls < 10 * len(ids)
