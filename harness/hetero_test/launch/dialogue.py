"""Talking to a server while it lives: the thread in which a dialogue runs."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from pathlib import Path


class Alive:
    """What a dialogue may know of the process it talks to.

    Attributes:
        pid: process id.
        stdout: file that receives its standard output.
        stderr: file that receives its standard error.
        stop_requested: set once the dialogue should return: the process ended or is being
            stopped. Waiting on it is how a dialogue sleeps.
    """

    def __init__(self, *, pid: int, stdout: Path, stderr: Path) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.stop_requested = threading.Event()
        self.ended = threading.Event()
        """Set by the launcher when the process has ended."""
        self.progressed_at = time.monotonic()
        """When the dialogue last got on, on the monotonic clock."""

    def is_running(self) -> bool:
        """Whether the process has not ended yet."""
        return not self.ended.is_set()

    def progress(self) -> None:
        """Tell that the dialogue got on, so that a quiet server does not count as idle."""
        self.progressed_at = time.monotonic()


class Dialogue(Protocol):
    """Runs in a thread of its own while the process lives.

    Returning means that everything wanted was had; the process is then stopped. Whatever
    it raises is recorded as the reason why it was not. It should return soon once
    ``alive.stop_requested`` is set, and need not stop the process itself.
    """

    def __call__(self, alive: Alive) -> None:
        """Hold the dialogue."""


class Conversation:
    """A dialogue under way, whose end can be polled for."""

    def __init__(self, dialogue: Dialogue, alive: Alive) -> None:
        self.alive = alive
        self._dialogue = dialogue
        self._error: str | None = None
        self._returned = False
        self._wake: int | None = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        # A dialogue that hangs must not keep the program from ending.
        self._thread = threading.Thread(target=self._hold, name="dialogue", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.alive.stop_requested.set()
        with self._lock:  # a dialogue that still hangs must find no recycled descriptor
            if self._wake is not None:
                os.close(self._wake)
                self._wake = None

    def _hold(self) -> None:
        error: str | None = None
        try:
            self._dialogue(self.alive)
        except BaseException as raised:  # noqa: BLE001 - even SystemExit is only its own failure
            error = f"{type(raised).__name__}: {raised}"
        with self._lock:
            self._error = error
            self._returned = True
            if self._wake is not None:
                os.eventfd_write(self._wake, 1)

    def fileno(self) -> int:
        """File descriptor that is readable once the dialogue is over."""
        assert self._wake is not None
        return self._wake

    def is_over(self) -> bool:
        """Whether the dialogue returned or raised."""
        with self._lock:
            return self._returned

    @property
    def error(self) -> str | None:
        """What a dialogue that is over raised."""
        return self._error

    def settle(self, *, was_over: bool, patience_s: float) -> str | None:
        """Wait for a dialogue that was asked to stop; return what kept it from its end.

        Args:
            was_over: whether it was over before the process ended or was stopped. Only
                then does returning mean that everything wanted was had.
            patience_s: how long to wait for it to return.
        """
        self._thread.join(patience_s)
        if self._thread.is_alive():
            return f"the dialogue did not return within {patience_s:g} s of the process's end"
        if was_over:
            return self._error
        return f"the process ended before the dialogue was done ({self._error or 'it returned'})"
