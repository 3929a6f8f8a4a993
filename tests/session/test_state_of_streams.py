"""What became of a run that ended well, by its stream; and which rule goes first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.values.outcome import StopReason
from hetero_test.values.reading import Sign, Symptom
from hetero_test.values.run import RunState, StateFinding
from tests.session.states import IDS, NONE, PROBE, outcome, reading, sign, state

# ---- the stream


def test_without_a_stream_there_is_none() -> None:
    """The reason why there is no stream is the one that the log's reader gave."""
    found = state(read=NONE)

    assert found == StateFinding(
        state=RunState.NO_STREAM, reason="there is none", quote="last words"
    )
    assert state(read=reading(stream=None)).reason == "the engine printed no stream"


def test_a_refusal_with_exit_code_0_explains_a_missing_stream() -> None:
    """A refusal explains a missing stream whatever the exit code, and its line is quoted."""
    found = state(read=reading(stream=None, signs=(sign(Symptom.REFUSED, "cannot"),)))

    assert (found.state, found.quote) == (RunState.NO_STREAM, "cannot")


@pytest.mark.parametrize(
    ("stream", "vocabulary", "said"),
    [
        ((), None, "the stream is empty, 60 ids were asked for"),
        ((*IDS, 1), None, "the stream has 61 ids, only 60 were asked for"),
        ((-1, *IDS[1:]), None, "id -1 at index 0 is out of range for a 32-bit number"),
        ((*IDS[1:], 2**31), None, "at index 59 is out of range for a 32-bit number"),
        (IDS, 3059, "id 3059 at index 59 is out of range for a vocabulary of 3059"),
        ((*IDS[1:], -1), 5000, "id -1 at index 59 is out of range for a vocabulary of 5000"),
    ],
)
def test_a_stream_that_cannot_be_the_answer_is_none(
    stream: tuple[int, ...], vocabulary: int | None, said: str
) -> None:
    """Empty, too long, or with ids that no vocabulary holds."""
    found = state(read=reading(stream=stream, vocabulary=vocabulary))

    assert found.state is RunState.NO_STREAM
    assert said in (found.reason or "")


@pytest.mark.parametrize(("first", "vocabulary"), [(0, 3060), (2**31 - 1, None), (0, None)])
def test_ids_at_the_limits_are_fine(first: int, vocabulary: int | None) -> None:
    """0 is an id, and so is the last one of the vocabulary."""
    stream = (first, *IDS[1:])

    assert state(read=reading(stream=stream, vocabulary=vocabulary)).state is RunState.OK


def test_an_empty_stream_is_none_even_at_an_end_of_sequence() -> None:
    """Nothing was decoded, so nothing can be compared."""
    assert state(read=reading(stream=(), end_of_sequence=True)).state is RunState.NO_STREAM


# ---- not what was asked


@pytest.mark.parametrize(
    ("echo", "said"),
    [
        (None, "did not repeat the prompt of 3 ids"),
        ((220, 5), "a prompt of 2 ids where 3 were given; they differ from index 2 on"),
        ((220, 6, 17), "they differ from index 1 on"),
        ((220, 5, 17, 9), "a prompt of 4 ids where 3 were given; they differ from index 3 on"),
        ((), "a prompt of 0 ids where 3 were given; they differ from index 0 on"),
        ((7,), "a prompt of 1 id where"),
    ],
)
def test_another_prompt_is_another_question(echo: tuple[int, ...] | None, said: str) -> None:
    """A prompt that was echoed differently, or not at all, is another question."""
    found = state(read=reading(echo=echo))

    assert found.state is RunState.WRONG_PROMPT
    assert said in (found.reason or "")


@pytest.mark.parametrize("expected", [True, False])
def test_what_an_engine_says_of_its_prompt_is_believed(*, expected: bool) -> None:
    """A prompt that was cut, or found in a cache, is not the one that was asked for."""
    found = state(read=reading(echo_trouble="it was cut", echo_expected=expected))

    assert found == StateFinding(state=RunState.WRONG_PROMPT, reason="it was cut")


def test_an_engine_that_never_echoes_is_believed() -> None:
    """Only where an echo is expected can it be missed."""
    assert state(read=reading(echo=None, echo_expected=False)).state is RunState.OK


def test_sampling_is_not_greedy() -> None:
    """The engine's own line says so."""
    found = state(read=reading(signs=(sign(Symptom.NOT_GREEDY, "temperature=1"),)))

    assert (found.state, found.quote) == (RunState.NOT_GREEDY, "temperature=1")
    assert "did not decode greedily" in (found.reason or "")


# ---- garbage, and streams that are too short

LIVELY = IDS[:30]


@pytest.mark.parametrize(
    ("stream", "stuck"),
    [
        ((0,) * 60, True),
        (LIVELY + (7,) * 30, True),
        (LIVELY + (7, 8) * 15, True),
        (LIVELY + (7, 8, 9) * 10, True),
        (LIVELY + (7, 8, 9, 10) * 8, True),
        ((*LIVELY, 1) + (7,) * 29, True),
        (LIVELY + (7,) * 29 + (8,), True),
        ((7,) * 16, True),
        (IDS[:16], False),
        (IDS[:20] + (7,) * 10, False),
        ((7, 7, 8) * 20, True),
        ((), False),
        ((7,), False),
        ((7, 7, 7), False),
        ((7, 7, 7, 7), True),
        ((1,) + (7,) * 14, True),
        ((7, 8) * 4, True),
        ((7, 8, 9) * 4, True),
        (LIVELY + tuple(range(30)), True),
    ],
)
def test_a_stream_that_is_garbage_is_degenerate(stream: tuple[int, ...], stuck: bool) -> None:
    """What dominates the tail decides: one id, few ids, a loop, a counter."""
    found = state(read=reading(stream=stream), probe=replace(PROBE, max_new=max(1, len(stream))))

    assert (found.state is RunState.DEGENERATE) is stuck


def test_garbage_has_a_state_of_its_own() -> None:
    """Two variants that print one id over and over are equal, and prove nothing."""
    found = state(read=reading(stream=LIVELY + (7, 8, 9) * 10))

    assert found.state is RunState.DEGENERATE
    assert found.reason == "the stream of 60 ids got stuck in a loop of 3 ids; it ends in … 9 7 8 9"


def test_fewer_ids_than_asked_are_truncated() -> None:
    """One token everywhere is no agreement: fewer ids than asked are TRUNCATED."""
    found = state(read=reading(stream=IDS[:59]))

    assert found.state is RunState.TRUNCATED
    assert found.reason == "the stream has 59 ids of 60, and no end of sequence is reported"
    one = state(read=reading(stream=(5,)))
    assert one.reason == "the stream has 1 id of 60, and no end of sequence is reported"


def test_an_end_of_sequence_is_no_truncation() -> None:
    """An engine that says that it came to an end is done."""
    assert state(read=reading(stream=IDS[:9], end_of_sequence=True)).state is RunState.OK


# ---- the order: a cause goes before what it brings about

BY_ORDER = (
    (RunState.CRASHED, {"signs": (sign(Symptom.ERROR),)}),
    (RunState.DEGENERATE, {"signs": (sign(Symptom.NOT_A_NUMBER),)}),
    (RunState.NO_STREAM, {"stream": (7,) * 61}),
    (RunState.WRONG_PROMPT, {"echo": (1,)}),
    (RunState.NOT_GREEDY, {"signs": (sign(Symptom.NOT_GREEDY),)}),
    (RunState.DEGENERATE, {"stream": (7,) * 59}),
    (RunState.TRUNCATED, {"stream": IDS[:59]}),
)


@pytest.mark.parametrize("place", range(len(BY_ORDER)))
def test_the_first_cause_decides(place: int) -> None:
    """Each rule goes before all that follow it."""
    changes: dict[str, Any] = {}
    for _, change in reversed(BY_ORDER[place:]):
        for name, value in change.items():
            changes[name] = changes.get(name, ()) + value if name == "signs" else value

    assert state(read=reading(**changes)).state is BY_ORDER[place][0]


signs = st.lists(st.sampled_from(Symptom).map(sign), max_size=3).map(tuple)
streams = st.one_of(
    st.none(), st.lists(st.integers(-1, 5000), max_size=70).map(tuple), st.just(IDS)
)


@given(
    exit_code=st.one_of(st.none(), st.integers(0, 255)),
    killed=st.sampled_from([None, "SIGSEGV", "SIGKILL"]),
    stopped=st.one_of(st.none(), st.sampled_from(StopReason)),
    error=st.one_of(st.none(), st.just("broken")),
    found=signs,
    stream=streams,
    echo=st.sampled_from([None, PROBE.ids, (1,)]),
)
def test_ok_is_earned(
    exit_code: int | None,
    killed: str | None,
    stopped: StopReason | None,
    error: str | None,
    found: tuple[Sign, ...],
    stream: tuple[int, ...] | None,
    echo: tuple[int, ...] | None,
) -> None:
    """Only a run that ended well, with the right prompt and a whole stream, is OK."""
    ended = outcome(exit_code=exit_code, signal=killed, stopped=stopped, dialogue_error=error)
    result = state(ended, reading(stream=stream, echo=echo, signs=found))

    assert (result.reason is None) == (result.state is RunState.OK)
    if result.state is RunState.OK:
        ended_well = (stopped, exit_code, killed) == (None, 0, None)
        assert ended_well or stopped is StopReason.DIALOGUE_DONE
        assert stream is not None
        assert len(stream) == PROBE.max_new
        assert echo == PROBE.ids
        assert error is None
        assert not {s.symptom for s in found} - {Symptom.REFUSED}
