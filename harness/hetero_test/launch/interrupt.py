"""The wish to stop, as a signal brings it, and how it reaches whoever is waiting."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# `timeout(1)` signals its child and then its whole group: one wish that arrives twice.
_ONE_WISH_S = 0.1


class Interrupt:
    """Whether the user wants to stop: `requested` after the first time, `again` after the second.

    It can be polled: its file descriptor becomes readable at each request.
    """

    def __init__(self) -> None:
        self.requested = False
        self.again = False
        self.signal: str | None = None
        """Name of the first signal that asked for it, if it was a signal."""
        self._first_at = 0.0
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def request(self, signum: int | None = None) -> None:
        """Ask to stop; a second time to stop at once.

        A signal within a tenth of a second of the first one is the same wish.
        """
        now = time.monotonic()
        if not self.requested:
            self.requested = True
            self._first_at = now
            self.signal = None if signum is None else signal.Signals(signum).name
        elif signum is None or now - self._first_at > _ONE_WISH_S:
            self.again = True
        os.eventfd_write(self._wake, 1)

    def fileno(self) -> int:
        """File descriptor that is readable from a request until :meth:`drain`."""
        return self._wake

    def drain(self) -> None:
        """Make the descriptor wait for the next request; what was requested stays so."""
        try:
            os.eventfd_read(self._wake)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Give the file descriptor back."""
        os.close(self._wake)


@contextmanager
def interrupt_on_signals() -> Iterator[Interrupt]:
    """Turn INT, TERM and HUP into requests while the block runs; main thread only.

    A signal that is ignored on entry (``nohup``, a background job) stays ignored.
    """
    interrupt = Interrupt()

    def handle(signum: int, _frame: FrameType | None) -> None:
        interrupt.request(signum)

    before = {
        signum: signal.getsignal(signum)
        for signum in HANDLED
        if signal.getsignal(signum) is not signal.SIG_IGN
    }
    try:
        for signum in before:
            signal.signal(signum, handle)
        yield interrupt
    finally:
        for signum, handler in before.items():
            # None: a handler that was not installed from Python and cannot be put back.
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)
        interrupt.close()
