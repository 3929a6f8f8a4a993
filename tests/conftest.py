"""How thoroughly properties are tried, and what a test's markers allow it to do.

``HYPOTHESIS_PROFILE`` names a profile: ``quick`` while working, ``ci``, ``nightly``; the tests
marked ``nightly`` run with the last. No example has a deadline, since no test is timed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator

import pytest
from hypothesis import settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")

settings.register_profile("quick", deadline=None, max_examples=100)
# A gate answers the same for the same code; the nightly profile looks further.
settings.register_profile("ci", deadline=None, max_examples=500, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=10_000)
settings.load_profile(PROFILE)

# A shell that starts this in the background has it ignore the signals that some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

MAY_START = ("process", "real", "browser")
"""Markers of tests that may start a process; the fast tier leaves them out."""
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
"""Audit events of a process that is started."""

_started: list[str] | None = None
"""What the running test has started; None while it may."""


def _note(event: str, args: tuple[object, ...]) -> None:
    if _started is not None and event in STARTS:
        _started.append(f"{event}{args[:1]}")


sys.addaudithook(_note)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """A test that starts a process has to be marked, or the fast tier would grow slow."""
    global _started  # noqa: PLW0603 - an audit hook cannot be removed again
    _started = None if any(map(item.get_closest_marker, MAY_START)) else []
    try:
        yield
        if _started:
            pytest.fail(f"it starts a process and is not marked: {_started[0]}", pytrace=False)
    finally:
        _started = None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longer than the gate allows waits for the nightly profile."""
    if PROFILE != "nightly" and (late := [i for i in items if i.get_closest_marker("nightly")]):
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
