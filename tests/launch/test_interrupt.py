"""The user's wish to stop."""

from __future__ import annotations

import os
import select
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from hetero_test.launch.interrupt import HANDLED, Interrupt, interrupt_on_signals
from hetero_test.launch.process import launch
from hetero_test.values.outcome import StopReason
from tests.launch.conftest import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.launch.conftest import Ask

pytestmark = pytest.mark.process


@pytest.fixture
def interrupt() -> Iterator[Interrupt]:
    """A wish not yet wished."""
    wish = Interrupt()
    yield wish
    wish.close()


def when_ready(ask: Ask, act: Callable[[], None]) -> threading.Thread:
    """Do something as soon as the process says that it is ready."""

    def work() -> None:
        wait_until(lambda: "ready" in ask.output())
        act()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_once_stops_politely(ask: Ask, interrupt: Interrupt) -> None:
    """The first wish gives the engine INT and the time to tidy up."""
    thread = when_ready(ask, interrupt.request)

    outcome = launch(ask.badly("tidy"), interrupt=interrupt)
    thread.join()

    assert (outcome.stopped, outcome.exit_code) == (StopReason.INTERRUPTED, 7)
    assert ask.output() == "ready\ngot SIGINT\n"


def test_twice_kills_at_once(ask: Ask, interrupt: Interrupt) -> None:
    """The second wish does not wait for the grace."""

    def twice() -> None:
        interrupt.request()
        interrupt.request()

    thread = when_ready(ask, twice)

    outcome = launch(ask.badly("deaf", grace_s=1000), interrupt=interrupt)
    thread.join()

    assert (outcome.stopped, outcome.signal) == (StopReason.INTERRUPTED, "SIGKILL")


def test_the_second_wish_may_come_while_the_engine_is_given_time(
    ask: Ask, interrupt: Interrupt
) -> None:
    """A process that is deaf to the first is killed by the second, whenever that comes."""

    def twice() -> None:
        interrupt.request()
        wait_until(lambda: not readable(interrupt))  # the launcher has taken the first one
        interrupt.request()

    thread = when_ready(ask, twice)

    outcome = launch(ask.badly("deaf", grace_s=1000), interrupt=interrupt)
    thread.join()

    assert outcome.signal == "SIGKILL"


def test_a_wish_from_before_ends_the_run_at_once(ask: Ask, interrupt: Interrupt) -> None:
    """Nothing runs on because the wish came between two runs."""
    interrupt.request()
    interrupt.drain()

    outcome = launch(ask("sleep", "1000"), interrupt=interrupt)

    assert (outcome.stopped, outcome.signal) == (StopReason.INTERRUPTED, "SIGINT")


def readable(interrupt: Interrupt) -> bool:
    """Whether someone who polls would be woken."""
    return bool(select.select([interrupt], [], [], 0)[0])


def test_a_wish_wakes_whoever_polls(interrupt: Interrupt) -> None:
    """The descriptor is readable from a request until it is drained; the wish itself stays."""
    assert not readable(interrupt)

    interrupt.request()
    assert readable(interrupt)

    interrupt.drain()
    interrupt.drain()
    assert not readable(interrupt)
    assert (interrupt.requested, interrupt.again) == (True, False)

    interrupt.request()
    assert readable(interrupt)
    assert interrupt.again is True


@pytest.mark.parametrize("signum", HANDLED)
def test_a_signal_is_a_wish(ask: Ask, signum: signal.Signals) -> None:
    """INT, TERM and HUP to the harness stop the engine; the handlers are put back afterwards."""
    before = [signal.getsignal(handled) for handled in HANDLED]

    with interrupt_on_signals() as interrupt:
        thread = when_ready(ask, lambda: os.kill(os.getpid(), signum))
        outcome = launch(ask.badly("tidy"), interrupt=interrupt)
        thread.join()

    assert (outcome.stopped, outcome.exit_code) == (StopReason.INTERRUPTED, 7)
    assert interrupt.signal == signum.name
    assert [signal.getsignal(handled) for handled in HANDLED] == before


def test_one_wish_that_arrives_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`timeout` signals its child and then the group: that is no second wish, a later one is."""
    clock = [100.0]
    monkeypatch.setattr("hetero_test.launch.interrupt.time.monotonic", lambda: clock[0])
    with interrupt_on_signals() as interrupt:
        os.kill(os.getpid(), signal.SIGTERM)
        clock[0] += 0.05
        os.kill(os.getpid(), signal.SIGTERM)
        assert (interrupt.requested, interrupt.again) == (True, False)

        clock[0] += 0.1
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.again is True


def test_an_ignored_signal_stays_ignored() -> None:
    """Under `nohup` a hang-up is no wish."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupt_on_signals() as interrupt:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupt.requested is False
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_wish_that_was_no_signal_names_none(interrupt: Interrupt) -> None:
    """Only a signal has a signal's name."""
    interrupt.request()

    assert interrupt.signal is None
