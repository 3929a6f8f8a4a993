"""What became of a run, from how its process ended and what its log says.

The rules are tried in order and the first that holds decides, so that a cause goes before
what it brings about: a wrong prompt before the odd stream that follows from it.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from hetero_test.session.garbage import garbage
from hetero_test.values.outcome import StopReason
from hetero_test.values.reading import Symptom
from hetero_test.values.run import RunState, StateFinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.values.outcome import Outcome
    from hetero_test.values.reading import Reading, Sign
    from hetero_test.values.run import Probe

ID_LIMIT = 2**31
"""Ids are 32-bit numbers in every engine."""

_REFUSED_EXIT = 2
_SIGNAL_EXIT = 128
# How a server may end that was told to: by itself, or by one of the signals it was sent.
_OURS = frozenset({None, "SIGINT", "SIGTERM", "SIGKILL"})
_LIMITS = {
    StopReason.IDLE: "idle limit: nothing was written for too long",
    StopReason.RUN_LIMIT: "run limit: the run took too long",
    StopReason.TOTAL_LIMIT: "total limit: the matrix took too long",
    StopReason.OUTPUT_CAP: "output cap: more was written than is kept",
    StopReason.INTERRUPTED: "interrupted by the user",
}


def state_of(outcome: Outcome, reading: Reading, probe: Probe) -> StateFinding:
    """The state of one run."""
    found = (
        _ended_badly(outcome, reading)
        or _said_bad(reading)
        or _no_stream(reading, probe)
        or _not_as_asked(reading, probe)
    )
    if found is not None:
        return found
    assert reading.stream is not None  # or there would be a finding
    return (
        _garbage(reading.stream, probe)
        or _too_short(reading.stream, probe, ended=reading.end_of_sequence)
        or StateFinding(state=RunState.OK)
    )


def _ended_badly(outcome: Outcome, reading: Reading) -> StateFinding | None:
    """Runs that did not start, were stopped, or ended with something else than success."""
    if outcome.start_error is not None:
        reason = f"the engine could not be started: {outcome.start_error}"
        return StateFinding(state=RunState.CRASHED, reason=reason)
    stopped = StopReason.OUTPUT_CAP if outcome.output_truncated else outcome.stopped
    if stopped in _LIMITS:
        printed = "" if reading.stream is None else f", having printed {_ids(reading.stream)}"
        reason = f"{_LIMITS[stopped]}; ended after {outcome.elapsed_s:.1f} s{printed}"
        return StateFinding(state=RunState.TIMED_OUT, reason=reason, quote=_last(reading))
    if stopped is None or _signal(outcome) not in _OURS:
        ending = _bad_ending(outcome)
        if ending is not None:
            return _failed(outcome, reading, ending)
    if outcome.dialogue_error is not None or stopped is StopReason.DIALOGUE_FAILED:
        return _broken_dialogue(outcome.dialogue_error or "no reason is known", reading)
    return None


def _bad_ending(outcome: Outcome) -> str | None:
    """How a process failed, in words; None for one that succeeded."""
    name = _signal(outcome)
    if outcome.exit_code is None or outcome.signal is not None:
        return "it ended without an exit code" if name is None else f"it was ended by {name}"
    if outcome.exit_code == 0:
        return None
    return f"exit code {outcome.exit_code}" + ("" if name is None else f" ({name})")


def _signal(outcome: Outcome) -> str | None:
    """The signal that ended a process, also as a wrapper reports it: 128 and its number."""
    if outcome.exit_code is None or outcome.signal is not None:
        return outcome.signal
    try:
        return signal.Signals(outcome.exit_code - _SIGNAL_EXIT).name
    except ValueError:
        return None


def _failed(outcome: Outcome, reading: Reading, ending: str) -> StateFinding:
    """Why a process failed, as far as its log tells."""
    memory = _sign(reading, Symptom.NO_MEMORY)
    if memory is not None:
        reason = f"the engine says that the placement does not fit ({ending})"
        return StateFinding(state=RunState.NO_MEMORY, reason=reason, quote=memory.line)
    refusal = _sign(reading, Symptom.REFUSED)
    fault = _sign(reading, Symptom.ERROR, Symptom.NOT_A_NUMBER)
    said_so = refusal is not None or (outcome.exit_code == _REFUSED_EXIT and fault is None)
    # What printed a stream was not refused: it failed afterwards.
    if said_so and _signal(outcome) is None and reading.stream is None:
        quote = _last(reading) if refusal is None else refusal.line
        reason = f"the engine refused its flags ({ending})"
        return StateFinding(state=RunState.REFUSED, reason=reason, quote=quote)
    quote = _last(reading) if fault is None else fault.line
    printed = "" if reading.stream is None else f", after it had printed {_ids(reading.stream)}"
    reason = f"the engine crashed: {ending}{printed}"
    return StateFinding(state=RunState.CRASHED, reason=reason, quote=quote)


def _broken_dialogue(error: str, reading: Reading) -> StateFinding:
    """A server that lived on but did not answer; its log may tell why."""
    memory, fault = _sign(reading, Symptom.NO_MEMORY), _sign(reading, Symptom.ERROR)
    reason = f"the engine did not answer as it should: {error}"
    if memory is not None:
        return StateFinding(state=RunState.NO_MEMORY, reason=reason, quote=memory.line)
    if fault is not None:
        return StateFinding(state=RunState.CRASHED, reason=reason, quote=fault.line)
    return StateFinding(state=RunState.NO_STREAM, reason=reason, quote=_last(reading))


def _said_bad(reading: Reading) -> StateFinding | None:
    """Runs that ended with success although their log reports a failure."""
    fault = _sign(reading, Symptom.ERROR, Symptom.NO_MEMORY)
    if fault is not None:
        reason = "the log reports a failure, whatever the exit code says"
        return StateFinding(state=RunState.CRASHED, reason=reason, quote=fault.line)
    broken = _sign(reading, Symptom.NOT_A_NUMBER)
    if broken is not None:
        reason = "the engine reports values that are no finite numbers"
        return StateFinding(state=RunState.DEGENERATE, reason=reason, quote=broken.line)
    return None


def _no_stream(reading: Reading, probe: Probe) -> StateFinding | None:
    """Runs without one stream that could be what was asked for."""
    stream = reading.stream
    if stream is None:
        refusal = _sign(reading, Symptom.REFUSED)
        return StateFinding(
            state=RunState.NO_STREAM,
            reason=reading.stream_trouble or "the engine printed no stream",
            quote=_last(reading) if refusal is None else refusal.line,
        )
    reason = _unfit(stream, reading.vocabulary, probe.max_new)
    return None if reason is None else StateFinding(state=RunState.NO_STREAM, reason=reason)


def _unfit(stream: Sequence[int], vocabulary: int | None, asked: int) -> str | None:
    """Why a stream cannot be what was asked for, as a sentence."""
    if not stream:
        return f"the stream is empty, {asked} ids were asked for"
    if len(stream) > asked:
        return f"the stream has {_ids(stream)}, only {asked} were asked for"
    limit = ID_LIMIT if vocabulary is None else vocabulary
    if min(stream) >= 0 and max(stream) < limit:
        return None
    place = next(n for n, token in enumerate(stream) if not 0 <= token < limit)
    size = "a 32-bit number" if vocabulary is None else f"a vocabulary of {vocabulary}"
    return f"id {stream[place]} at index {place} is out of range for {size}"


def _not_as_asked(reading: Reading, probe: Probe) -> StateFinding | None:
    """Runs that read another prompt, or did not decode greedily."""
    if reading.echo_trouble is not None:
        return StateFinding(state=RunState.WRONG_PROMPT, reason=reading.echo_trouble)
    if reading.echo_expected and reading.echo != probe.ids:
        return StateFinding(state=RunState.WRONG_PROMPT, reason=_echo_trouble(reading, probe))
    sampled = _sign(reading, Symptom.NOT_GREEDY)
    if sampled is not None:
        reason = "the engine says that it did not decode greedily"
        return StateFinding(state=RunState.NOT_GREEDY, reason=reason, quote=sampled.line)
    return None


def _echo_trouble(reading: Reading, probe: Probe) -> str:
    echo, asked = reading.echo, probe.ids
    if echo is None:
        return f"the engine did not repeat the prompt of {_ids(asked)} in one well-formed line"
    pairs = enumerate(zip(echo, asked, strict=False))
    place = next((n for n, (one, other) in pairs if one != other), min(len(echo), len(asked)))
    return (
        f"the engine read a prompt of {_ids(echo)} where {len(asked)} were given; "
        f"they differ from index {place} on"
    )


def _garbage(stream: Sequence[int], probe: Probe) -> StateFinding | None:
    """Runs whose stream got stuck: two that got stuck alike are equal and prove nothing."""
    why = garbage(stream, probe.ids)
    if why is None:
        return None
    reason = f"the stream of {_ids(stream)} {why}"
    return StateFinding(state=RunState.DEGENERATE, reason=reason)


def _too_short(stream: Sequence[int], probe: Probe, *, ended: bool) -> StateFinding | None:
    """Runs that stopped early without saying that they had come to an end."""
    if len(stream) >= probe.max_new or ended:
        return None
    reason = f"the stream has {_ids(stream)} of {probe.max_new}, and no end of sequence is reported"
    return StateFinding(state=RunState.TRUNCATED, reason=reason)


def _sign(reading: Reading, *symptoms: Symptom) -> Sign | None:
    return next((sign for sign in reading.signs if sign.symptom in symptoms), None)


def _last(reading: Reading) -> str | None:
    return reading.tail[-1] if reading.tail else None


def _ids(ids: Sequence[int]) -> str:
    return f"{len(ids)} id" if len(ids) == 1 else f"{len(ids)} ids"
