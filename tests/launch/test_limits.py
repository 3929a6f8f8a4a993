"""When a process is stopped, and how."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hetero_test.launch import process
from hetero_test.launch.process import launch
from hetero_test.values.outcome import StopReason
from tests.launch.conftest import is_gone, wait_until

if TYPE_CHECKING:
    from tests.launch.conftest import Ask

pytestmark = pytest.mark.process


def test_a_silent_process_is_idle(ask: Ask) -> None:
    """Without growth of either file for `idle_s` the process is ended."""
    outcome = launch(ask.badly("hang", idle_s=0.5))

    assert (outcome.stopped, outcome.signal) == (StopReason.IDLE, "SIGINT")
    assert outcome.elapsed_s >= 0.5


def test_a_process_that_closes_its_output_is_idle(ask: Ask) -> None:
    """Closing stdout is neither an end nor a way around the limit."""
    outcome = launch(ask.badly("mute", idle_s=0.3, grace_s=1))

    assert outcome.stopped is StopReason.IDLE
    assert ask.output() == "ready\n"


@pytest.mark.parametrize("stream", ["1", "2"])
def test_output_on_either_stream_is_life(ask: Ask, stream: str) -> None:
    """A process that writes to one of the two files within the limit is not idle."""
    script = f"for i in 1 2 3 4 5 6 7 8; do sleep 0.1; echo $i >&{stream}; done"

    outcome = launch(ask("sh", "-c", script, idle_s=0.6))

    assert (outcome.stopped, outcome.exit_code) == (None, 0)
    assert outcome.elapsed_s > 0.6


def test_a_talking_process_meets_the_run_limit(ask: Ask) -> None:
    """Output does not prolong a run."""
    outcome = launch(ask.badly("talk", run_s=0.4))

    assert outcome.stopped is StopReason.RUN_LIMIT
    assert "still here" in ask.output()
    assert outcome.output_truncated is False


def test_the_total_limit_ends_a_run(ask: Ask) -> None:
    """The deadline of the whole matrix also holds within a run."""
    outcome = launch(ask.badly("talk", deadline=time.monotonic() + 0.3))

    assert outcome.stopped is StopReason.TOTAL_LIMIT


def test_limits_may_be_infinite(ask: Ask) -> None:
    """No limit is a limit too."""
    infinite = float("inf")

    outcome = launch(ask("sh", "-c", "sleep 0.1", run_s=infinite, idle_s=infinite))

    assert (outcome.exit_code, outcome.stopped) == (0, None)


def test_interrupt_comes_first(ask: Ask) -> None:
    """A process that tidies up on INT gets the time to do so, and its own exit code."""
    outcome = launch(ask.badly("tidy", idle_s=0.5))

    assert ask.output() == "ready\ngot SIGINT\n"
    assert (outcome.stopped, outcome.exit_code) == (StopReason.IDLE, 7)


def test_terminate_comes_second(ask: Ask) -> None:
    """A process that ignores INT gets TERM after the grace."""
    outcome = launch(ask.badly("deaf-to-interrupt", idle_s=0.5, grace_s=0.2))

    assert (outcome.stopped, outcome.signal) == (StopReason.IDLE, "SIGTERM")
    assert outcome.elapsed_s >= 0.7


def test_kill_comes_last(ask: Ask) -> None:
    """A process that ignores INT and TERM is killed after twice the grace."""
    outcome = launch(ask.badly("deaf", idle_s=0.5, grace_s=0.2))

    assert (outcome.stopped, outcome.signal) == (StopReason.IDLE, "SIGKILL")
    assert outcome.elapsed_s >= 0.9


@pytest.mark.parametrize("stream", [1, 2])
def test_a_flood_is_stopped_and_cut_to_the_cap(ask: Ask, stream: int) -> None:
    """Output beyond the cap ends the run; the file keeps the first bytes, as many as the cap."""
    request = ask.badly("flood", str(stream), output_bytes=3_000_001, grace_s=0.3)
    outcome = launch(request)

    path = request.stdout if stream == 1 else request.stderr
    assert outcome.stopped is StopReason.OUTPUT_CAP
    assert outcome.output_truncated is True
    assert path.stat().st_size == 3_000_001
    assert set(path.read_bytes()) == {ord("x")}


def test_a_flood_that_ends_by_itself_is_cut_too(ask: Ask) -> None:
    """What was written between two looks is cut, and the outcome says so."""
    outcome = launch(ask("sh", "-c", "head -c 200000 /dev/zero", output_bytes=1000))

    assert outcome.output_truncated is True
    assert ask.stdout.stat().st_size == 1000


def test_last_words_are_cut_too(ask: Ask) -> None:
    """What a child writes after the end of its parent is held to the cap as well."""
    # The child is deaf to what asks it to end, so it has all of the grace for its words.
    child = "(trap '' INT TERM; sleep 0.1; head -c 200000 /dev/zero) &"
    outcome = launch(ask("sh", "-c", child, output_bytes=1000, grace_s=20))

    assert outcome.output_truncated is True
    assert ask.stdout.stat().st_size == 1000


def test_output_of_exactly_the_cap_is_whole(ask: Ask) -> None:
    """The cap itself may be reached."""
    outcome = launch(ask("head", "-c", "1000", "/dev/zero", output_bytes=1000))

    assert (outcome.output_truncated, outcome.stopped, outcome.exit_code) == (False, None, 0)
    assert ask.stdout.stat().st_size == 1000


def test_the_whole_group_is_stopped(ask: Ask) -> None:
    """A shell's children end with the shell."""
    outcome = launch(
        ask("sh", "-c", "sleep 1000 & sleep 1000 & echo $!; wait", idle_s=0.3, grace_s=1)
    )

    assert outcome.stopped is StopReason.IDLE
    assert is_gone(int(ask.output()))


def test_a_process_that_cannot_be_ended_does_not_hang_the_harness(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After KILL in vain (a driver that hangs) the run has an outcome without an exit code."""
    monkeypatch.setattr(process, "signal_group", lambda _leader, _signum: None)
    monkeypatch.setattr(process, "_UNKILLABLE_S", 0.1)

    outcome = launch(ask.badly("hang", idle_s=0.3, grace_s=0.05))

    assert (outcome.stopped, outcome.exit_code, outcome.signal) == (StopReason.IDLE, None, None)
    assert len(outcome.leftovers) == 1
    assert f"pid {outcome.pid}: " in outcome.leftovers[0]


def test_an_error_of_the_harness_leaves_nothing_running(ask: Ask) -> None:
    """Whatever is raised while a process runs, the process is ended before it is passed on."""
    started: list[int] = []

    def fail(pid: int, _started: str | None) -> None:
        started.append(pid)
        wait_until(lambda: "ready" in ask.output())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(ask.badly("parent"), on_start=fail)

    assert is_gone(started[0])


def test_a_full_disk_is_the_engines_to_find(ask: Ask) -> None:
    """The engine gets the error of its own write; the harness reports how that ended."""
    outcome = launch(ask("head", "-c", "10", "/dev/zero", stdout=Path("/dev/full")))

    assert outcome.exit_code not in {None, 0}
    assert "No space left on device" in ask.stderr.read_text()


def test_a_stopped_process_is_killed(ask: Ask) -> None:
    """A process that is suspended gets the polite signals never, and the last one always."""
    outcome = launch(ask("sh", "-c", f"kill -{signal.SIGSTOP} $$", idle_s=0.3, grace_s=0.1))

    assert (outcome.stopped, outcome.signal) == (StopReason.IDLE, "SIGKILL")
