"""The demo's streams: the same on every machine, and neither cyclic nor degenerate."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.bundled.engine import NEW_TOKENS, Engine
from tests.bundled.test_placement import ONE_ZERO, ZERO_ONE

if TYPE_CHECKING:
    from tests.bundled.conftest import Make

MOST_REPEATED = 3


def md5(stream: tuple[int, ...]) -> str:
    """The hash that reports show."""
    return hashlib.md5(",".join(map(str, stream)).encode()).hexdigest()[:12]


def test_the_demos_two_streams_are_these(equal: Engine) -> None:
    """No step depends on the machine, so the streams, and that they differ, are facts."""
    assert md5(equal().stream) == "a3ba9f98e8b4"
    assert md5(equal(*ZERO_ONE).stream) == "2515e7304bf4"


def test_the_demos_streams_split_early_enough(equal: Engine) -> None:
    """The two residencies agree for some tokens and part well before the end."""
    pairs = zip(equal().stream, equal(*ZERO_ONE).stream, strict=True)
    first = next(place for place, (a, b) in enumerate(pairs) if a != b)
    assert 3 <= first <= NEW_TOKENS - 20


@pytest.mark.parametrize("rig", ["two_equal", "two_unequal"])
@pytest.mark.parametrize("pack", ["canonical", "native"])
def test_streams_are_not_degenerate(make: Make, rig: str, pack: str) -> None:
    """No id or cycle of up to three fills the last max(16, half); few ids come twice."""
    engine = make(rig, pack)
    for flags in ((), ZERO_ONE, ONE_ZERO):
        stream = engine(*flags).stream
        assert len(stream) == NEW_TOKENS
        tail = stream[-max(16, NEW_TOKENS // 2) :]
        for period in (1, 2, 3):
            assert tail[period:] != tail[:-period]
        assert len(set(stream)) > NEW_TOKENS * 0.8
        assert max(stream.count(token) for token in stream) <= MOST_REPEATED


@pytest.mark.parametrize("rig", ["two_equal", "two_unequal"])
def test_the_drafter_is_right_about_half_the_time(make: Make, rig: str) -> None:
    """Between 0.3 and 0.7 of the drafts are accepted, in every placement."""
    engine = make(rig)
    for flags in ((), ZERO_ONE, ONE_ZERO):
        accepted, offered = engine(*flags).drafts
        assert 0.3 <= accepted / offered <= 0.7


def test_other_prompts_have_other_streams(equal: Engine) -> None:
    """The stream hangs on the prompt: one id changed in the middle changes it."""
    ids = list(equal.probe)
    ids[47] += 1
    tokens = ("--tokens", ",".join(map(str, ids)))
    changed = equal(*tokens)
    assert changed.prompt == tuple(ids)
    assert changed.stream != equal().stream
