"""A server, and whoever talks to it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from hetero_test.launch.process import launch
from hetero_test.values.outcome import StopReason
from tests.launch.conftest import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from hetero_test.launch.dialogue import Alive
    from tests.launch.conftest import Ask

pytestmark = pytest.mark.process


def until_ready(alive: Alive) -> None:
    """Wait for the server to say so."""
    wait_until(lambda: "ready" in alive.stdout.read_text())


def test_a_dialogue_that_is_done_ends_the_server(ask: Ask) -> None:
    """The server is stopped politely, and that it was is no crash of its own."""
    seen: list[Alive] = []

    def dialogue(alive: Alive) -> None:
        until_ready(alive)
        assert alive.is_running()
        assert not alive.stop_requested.is_set()
        assert psutil.pid_exists(alive.pid)
        assert alive.stderr == ask.stderr
        seen.append(alive)

    outcome = launch(ask.badly("tidy", dialogue=dialogue))

    assert (outcome.stopped, outcome.exit_code) == (StopReason.DIALOGUE_DONE, 7)
    assert outcome.dialogue_error is None
    assert ask.output() == "ready\ngot SIGINT\n"
    assert seen[0].pid == outcome.pid
    assert not seen[0].is_running()


def test_a_dialogue_that_fails_ends_the_server(ask: Ask) -> None:
    """What it raised is the reason."""

    def dialogue(alive: Alive) -> None:
        until_ready(alive)
        raise LookupError("no tokens in the answer")

    outcome = launch(ask.badly("tidy", dialogue=dialogue))

    assert (outcome.stopped, outcome.exit_code) == (StopReason.DIALOGUE_FAILED, 7)
    assert outcome.dialogue_error == "LookupError: no tokens in the answer"


def test_a_dialogue_runs_in_a_thread_of_its_own(ask: Ask) -> None:
    """The limits hold whatever the dialogue does."""
    threads: list[threading.Thread] = []

    launch(ask.badly("tidy", dialogue=lambda _: threads.append(threading.current_thread())))

    assert threads[0] is not threading.main_thread()
    assert not threads[0].is_alive()


def test_a_server_that_dies_is_noticed_at_once(ask: Ask) -> None:
    """The dialogue is told, and that the server died is not taken for an end of the dialogue."""

    def dialogue(alive: Alive) -> None:
        assert alive.stop_requested.wait(PATIENCE_S)
        wait_until(lambda: not alive.is_running())
        raise ConnectionError("connection refused")

    outcome = launch(ask("sh", "-c", "exit 3", dialogue=dialogue))

    assert (outcome.stopped, outcome.exit_code) == (None, 3)
    assert outcome.dialogue_error == (
        "the process ended before the dialogue was done (ConnectionError: connection refused)"
    )


def test_returning_after_the_server_died_is_not_being_done(ask: Ask) -> None:
    """A dialogue that merely gives up when told to has not had what it wanted."""

    def dialogue(alive: Alive) -> None:
        assert alive.stop_requested.wait(PATIENCE_S)

    outcome = launch(ask("true", dialogue=dialogue))

    assert (outcome.stopped, outcome.exit_code) == (None, 0)
    assert outcome.dialogue_error is not None


def test_a_dialogue_that_hangs_meets_the_run_limit(ask: Ask) -> None:
    """A dialogue deaf to the request to stop is left behind, and the outcome says so."""
    let_go = threading.Event()

    def dialogue(alive: Alive) -> None:
        while not let_go.wait(0.05):
            alive.progress()

    outcome = launch(ask.badly("hang", dialogue=dialogue, run_s=0.5, idle_s=0.3, grace_s=0.2))
    let_go.set()
    wait_until(lambda: all(thread.name != "dialogue" for thread in threading.enumerate()))

    assert outcome.stopped is StopReason.RUN_LIMIT
    assert outcome.dialogue_error is not None
    assert "did not return" in outcome.dialogue_error


def test_progress_of_the_dialogue_counts_as_life(ask: Ask) -> None:
    """A quiet server is not idle while the dialogue gets on."""

    def dialogue(alive: Alive) -> None:
        end = time.monotonic() + 0.9
        while time.monotonic() < end:
            alive.progress()
            assert not alive.stop_requested.wait(0.05)

    outcome = launch(ask.badly("hang", dialogue=dialogue, idle_s=0.6))

    assert outcome.stopped is StopReason.DIALOGUE_DONE


def test_without_progress_a_quiet_server_is_idle(ask: Ask) -> None:
    """A dialogue by itself does not lift the idle limit."""

    def dialogue(alive: Alive) -> None:
        alive.stop_requested.wait(PATIENCE_S)

    outcome = launch(ask.badly("hang", dialogue=dialogue, idle_s=0.3))

    assert outcome.stopped is StopReason.IDLE
    assert outcome.dialogue_error == (
        "the process ended before the dialogue was done (it returned)"
    )


def test_a_dialogue_is_not_begun_with_a_process_that_cannot_start(ask: Ask) -> None:
    """There is nobody to talk to."""
    held: list[Alive] = []

    outcome = launch(ask("/no/such/server", dialogue=held.append))

    assert outcome.start_error is not None
    assert held == []
