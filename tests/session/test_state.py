"""What became of a run, by how its process ended and what its log says of it."""

from __future__ import annotations

from typing import Any

import pytest

from hetero_test.values.outcome import StopReason
from hetero_test.values.reading import Sign, Symptom
from hetero_test.values.run import RunState, StateFinding
from tests.session.states import NONE, outcome, reading, sign, state


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
