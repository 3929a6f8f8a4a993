"""What became of a run: each rule, its evidence, and which rule goes first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.session.state import state_of
from hetero_test.values.outcome import Outcome, StopReason
from hetero_test.values.reading import Reading, Sign, Symptom
from hetero_test.values.run import Probe, RunState, StateFinding

IDS = tuple(3059 - (59 - place) * 37 % 60 for place in range(60))
PROBE = Probe(name="default", ids=(220, 5, 17), max_new=60)
TAIL = ("first words", "last words")


def outcome(**changes: Any) -> Outcome:
    """The outcome of a process that ended well, with changes."""
    values: dict[str, Any] = {
        "argv": ("strata",),
        "env_delta": {},
        "cwd": Path("/"),
        "pid": 1,
        "pid_started": None,
        "started": "2026-11-29T12:00:00.000+00:00",
        "elapsed_s": 12.34,
        "exit_code": 0,
        "signal": None,
        "stopped": None,
        "start_error": None,
        "major_faults": 0,
        "blocks_read": 0,
        "max_rss_bytes": 0,
    }
    return Outcome(**{**values, **changes})


def reading(**changes: Any) -> Reading:
    """The reading of a run that went well, with changes."""
    values: dict[str, Any] = {"stream": IDS, "echo": PROBE.ids, "tail": TAIL}
    return Reading(**{**values, **changes})


def sign(symptom: Symptom, line: str = "the line that shows it") -> Sign:
    """A sign."""
    return Sign(symptom=symptom, line=line)


def state(
    ended: Outcome | None = None, read: Reading | None = None, probe: Probe = PROBE
) -> StateFinding:
    """The state of a run that went well, but for what is given."""
    return state_of(ended or outcome(), read or reading(), probe)


NONE = reading(stream=None, stream_trouble="there is none", echo=None)


def test_a_run_that_went_well_is_ok() -> None:
    """Exit code 0, a whole stream, the right prompt, nothing odd."""
    assert state() == StateFinding(state=RunState.OK)


# ---- the process


def test_a_process_that_did_not_start_crashed() -> None:
    """The reason is the system's."""
    found = state(outcome(exit_code=None, start_error="strata: Permission denied"), NONE)

    assert found == StateFinding(
        state=RunState.CRASHED,
        reason="the engine could not be started: strata: Permission denied",
    )


@pytest.mark.parametrize(
    ("stopped", "said"),
    [
        (StopReason.IDLE, "idle limit"),
        (StopReason.RUN_LIMIT, "run limit"),
        (StopReason.TOTAL_LIMIT, "total limit"),
        (StopReason.OUTPUT_CAP, "output cap"),
        (StopReason.INTERRUPTED, "interrupted"),
    ],
)
@pytest.mark.parametrize("ending", [{"exit_code": 0}, {"exit_code": None, "signal": "SIGKILL"}])
def test_a_run_that_was_stopped_timed_out(
    stopped: StopReason, said: str, ending: dict[str, Any]
) -> None:
    """A stopped run timed out; the limit is named, and a stream printed before is no excuse."""
    found = state(outcome(stopped=stopped, **ending))

    assert found.state is RunState.TIMED_OUT
    assert found.quote == "last words"
    assert said in (found.reason or "")
    assert "12.3 s, having printed 60 ids" in (found.reason or "")


def test_a_stopped_run_without_a_stream_says_nothing_of_one() -> None:
    """What was not printed is not counted."""
    reason = state(outcome(stopped=StopReason.IDLE), NONE).reason

    assert reason == "idle limit: nothing was written for too long; ended after 12.3 s"


def test_signs_do_not_excuse_a_hang() -> None:
    """A run that was stopped timed out, whatever its log says besides."""
    signs = tuple(sign(symptom) for symptom in Symptom)

    assert state(outcome(stopped=StopReason.IDLE), reading(signs=signs)).state is RunState.TIMED_OUT


def test_output_that_was_cut_is_not_judged() -> None:
    """A process that ends by itself just above the cap leaves half of its output."""
    found = state(outcome(output_truncated=True))

    assert found.state is RunState.TIMED_OUT
    assert "output cap" in (found.reason or "")


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ({"exit_code": 1}, "exit code 1,"),
        ({"exit_code": 250}, "exit code 250,"),
        ({"exit_code": 128}, "exit code 128,"),
        ({"exit_code": 139}, "exit code 139 (SIGSEGV),"),
        ({"exit_code": 134}, "exit code 134 (SIGABRT),"),
        ({"exit_code": 137}, "exit code 137 (SIGKILL),"),
        ({"exit_code": None, "signal": "SIGSEGV"}, "it was ended by SIGSEGV,"),
        ({"exit_code": None, "signal": "SIGKILL"}, "it was ended by SIGKILL,"),
        ({"exit_code": None}, "it ended without an exit code,"),
    ],
)
def test_any_other_end_is_a_crash(ending: dict[str, Any], said: str) -> None:
    """A crash names its exit code or signal; a stream that was printed before does not count."""
    found = state(outcome(**ending))

    assert found.state is RunState.CRASHED
    assert f"the engine crashed: {said} after it had printed 60 ids" == found.reason
    assert found.quote == "last words"


def test_a_crash_without_a_stream_says_nothing_of_one() -> None:
    """A dead run has nothing to compare."""
    assert state(outcome(exit_code=1), NONE).reason == "the engine crashed: exit code 1"


@pytest.mark.parametrize("symptom", [Symptom.ERROR, Symptom.NOT_A_NUMBER])
def test_a_crash_quotes_the_error(symptom: Symptom) -> None:
    """The line that shows the failure says more than the last one."""
    found = state(outcome(exit_code=1), reading(signs=(sign(symptom, "CUDA error"),)))

    assert (found.state, found.quote) == (RunState.CRASHED, "CUDA error")


def test_a_log_without_lines_has_none_to_quote() -> None:
    """An empty log is no obstacle."""
    found = state(outcome(exit_code=1), reading(tail=(), stream=None))

    assert (found.state, found.quote) == (RunState.CRASHED, None)


# ---- does not fit, refused


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ({"exit_code": 1}, "(exit code 1)"),
        ({"exit_code": 2}, "(exit code 2)"),
        ({"exit_code": None, "signal": "SIGABRT"}, "(it was ended by SIGABRT)"),
    ],
)
def test_a_placement_that_does_not_fit_is_no_crash(ending: dict[str, Any], said: str) -> None:
    """The engine's words for it count wherever the process ended badly, and go first."""
    signs = (sign(Symptom.ERROR), sign(Symptom.REFUSED), sign(Symptom.NO_MEMORY, "only 5.90 GiB"))
    found = state(outcome(**ending), reading(stream=None, signs=signs))

    assert found.state is RunState.NO_MEMORY
    assert found.quote == "only 5.90 GiB"
    assert found.reason == f"the engine says that the placement does not fit {said}"


def test_exit_code_2_is_a_refusal() -> None:
    """Early or after minutes of loading, with or without words that are known."""
    found = state(outcome(exit_code=2), NONE)

    assert found == StateFinding(
        state=RunState.REFUSED,
        reason="the engine refused its flags (exit code 2)",
        quote="last words",
    )


@pytest.mark.parametrize("code", [1, 2, 3, 255])
def test_a_refusal_in_words_is_one(code: int) -> None:
    """The line is quoted; an error beside it does not matter."""
    signs = (sign(Symptom.ERROR), sign(Symptom.REFUSED, "unknown argument: --foo"))
    found = state(outcome(exit_code=code), reading(stream=None, signs=signs))

    assert (found.state, found.quote) == (RunState.REFUSED, "unknown argument: --foo")


@pytest.mark.parametrize("symptom", [Symptom.ERROR, Symptom.NOT_A_NUMBER])
def test_exit_code_2_beside_an_error_is_a_crash(symptom: Symptom) -> None:
    """Without words of a refusal the error explains the code."""
    found = state(outcome(exit_code=2), reading(stream=None, signs=(sign(symptom),)))

    assert found.state is RunState.CRASHED


@pytest.mark.parametrize("code", [0, 2])
def test_a_signal_counts_whatever_code_is_told_beside_it(code: int) -> None:
    """What is recorded of an end may contradict itself; the worse of it is believed."""
    found = state(outcome(exit_code=code, signal="SIGSEGV"), reading(stream=None))

    assert (found.state, found.reason) == (
        RunState.CRASHED,
        "the engine crashed: it was ended by SIGSEGV",
    )


@pytest.mark.parametrize("signs", [(), (sign(Symptom.REFUSED, "cannot"),)])
def test_what_printed_a_stream_was_not_refused(signs: tuple[Sign, ...]) -> None:
    """It failed afterwards, so that it may not be left out as if it could not run here."""
    found = state(outcome(exit_code=2), reading(signs=signs))

    assert found.state is RunState.CRASHED
    assert found.reason == "the engine crashed: exit code 2, after it had printed 60 ids"


@pytest.mark.parametrize("ending", [{"exit_code": None, "signal": "SIGSEGV"}, {"exit_code": 139}])
def test_a_signal_is_no_refusal(ending: dict[str, Any]) -> None:
    """An engine that refuses ends by itself; the last line is quoted."""
    signs = (sign(Symptom.REFUSED, "cannot"),)
    found = state(outcome(**ending), reading(stream=None, signs=signs))

    assert (found.state, found.quote) == (RunState.CRASHED, "last words")


# ---- servers


@pytest.mark.parametrize(
    "ending",
    [
        {"exit_code": 0},
        {"exit_code": 1},
        {"exit_code": 130},
        {"exit_code": None, "signal": "SIGINT"},
        {"exit_code": None, "signal": "SIGTERM"},
        {"exit_code": None, "signal": "SIGKILL"},
    ],
)
def test_how_a_server_ends_when_told_to_does_not_matter(ending: dict[str, Any]) -> None:
    """It had answered before it was stopped."""
    ended = outcome(stopped=StopReason.DIALOGUE_DONE, **ending)

    assert state(ended, reading(echo=None, echo_expected=False)).state is RunState.OK


@pytest.mark.parametrize("ending", [{"exit_code": None, "signal": "SIGSEGV"}, {"exit_code": 134}])
def test_a_server_that_falls_over_when_told_to_stop_crashed(ending: dict[str, Any]) -> None:
    """Nobody sent it that signal."""
    assert state(outcome(stopped=StopReason.DIALOGUE_DONE, **ending)).state is RunState.CRASHED


@pytest.mark.parametrize(
    ("signs", "expected", "quote"),
    [
        ((), RunState.NO_STREAM, "last words"),
        ((sign(Symptom.NOT_GREEDY),), RunState.NO_STREAM, "last words"),
        ((sign(Symptom.ERROR, "x"),), RunState.CRASHED, "x"),
        ((sign(Symptom.ERROR), sign(Symptom.NO_MEMORY, "y")), RunState.NO_MEMORY, "y"),
    ],
)
@pytest.mark.parametrize("stopped", [StopReason.DIALOGUE_FAILED, StopReason.DIALOGUE_DONE])
def test_a_server_that_does_not_answer_has_no_stream(
    stopped: StopReason, signs: tuple[Sign, ...], expected: RunState, quote: str
) -> None:
    """Its log may tell why; the error of the dialogue is the reason."""
    ended = outcome(exit_code=None, signal="SIGINT", stopped=stopped, dialogue_error="HTTP 500")
    found = state(ended, reading(signs=signs))

    assert (found.state, found.quote) == (expected, quote)
    assert found.reason == "the engine did not answer as it should: HTTP 500"


def test_a_dialogue_that_failed_without_words_failed_all_the_same() -> None:
    """The reason to stop says it."""
    found = state(outcome(stopped=StopReason.DIALOGUE_FAILED))

    assert found.state is RunState.NO_STREAM
    assert found.reason == "the engine did not answer as it should: no reason is known"


def test_a_server_that_crashed_is_not_blamed_for_its_silence() -> None:
    """The cause goes before what it brings about."""
    ended = outcome(exit_code=None, signal="SIGSEGV", dialogue_error="connection reset")

    assert state(ended).state is RunState.CRASHED


# ---- what the log says of a run that ended well


@pytest.mark.parametrize("symptom", [Symptom.ERROR, Symptom.NO_MEMORY])
def test_an_error_line_with_exit_code_0_is_a_crash(symptom: Symptom) -> None:
    """Exit code 0 is necessary, not sufficient."""
    found = state(read=reading(signs=(sign(Symptom.NOT_A_NUMBER), sign(symptom, "CUDA error"))))

    assert (found.state, found.quote) == (RunState.CRASHED, "CUDA error")
    assert "whatever the exit code says" in (found.reason or "")


def test_reported_nan_is_degenerate() -> None:
    """Whatever was decoded from NaN proves nothing, even if both sides have it."""
    found = state(read=reading(signs=(sign(Symptom.NOT_A_NUMBER, "not finite"),)))

    assert (found.state, found.quote) == (RunState.DEGENERATE, "not finite")


def test_a_refusal_that_did_not_stop_the_run_is_none() -> None:
    """With a whole stream and exit code 0 the words were no refusal."""
    assert state(read=reading(signs=(sign(Symptom.REFUSED),))).state is RunState.OK


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
