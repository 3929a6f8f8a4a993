"""Standard streams that may be missing, full, gone, or of an encoding that lacks characters.

An exit code is what a CI job gates on: no state of a stream may turn one into another, above all
not into 1, which the interpreter itself uses for an error that nobody caught.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import signal
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from hetero_test.errors import ExitCode, HeteroTestError
from hetero_test.publish.printable import visible_lines

AS_IT_IS = "hetero-test-as-it-is"
"""How characters are written that an encoding lacks; see :func:`_as_it_is`."""

if TYPE_CHECKING:
    from types import FrameType

_STDOUT, _STDERR = 1, 2


class TerminalGoneError(HeteroTestError):
    """The terminal was closed, which is a wish to stop."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERRUPTED


class _Stream(io.FileIO):
    """A standard stream that knows whether a terminal may be behind it."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        # A terminal that is gone already does not tell any more that it is one.
        self._terminal = stat.S_ISCHR(os.fstat(number).st_mode)

    def hung_up(self, error: OSError) -> bool:
        """Whether an error says that the terminal is gone."""
        return self._terminal and error.errno == errno.EIO


class _Talk(_Stream):
    """Standard error: its reader may have gone, and the matrix goes on all the same."""

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            if self.hung_up(error):
                self._terminal = False  # once: what follows is written to nobody
                # The signal that a closed terminal sends, to those who were given none.
                os.kill(os.getpid(), signal.SIGHUP)
            return memoryview(data).nbytes  # type: ignore[arg-type]


class _Product(_Stream):
    """Standard output: what cannot be written there is an error of its own."""

    def write(self, data: object, /) -> int:
        """Write.

        Raises:
            BrokenPipeError: its reader has gone.
            TerminalGoneError: it was a terminal that has gone.
            HeteroTestError: anything else that is not a bug of ours, such as a full disk.
        """
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            raise
        except OSError as error:
            if self.hung_up(error):
                raise TerminalGoneError(
                    "the terminal was closed",
                    hint="what was measured is in the run directory",
                ) from error
            raise HeteroTestError(
                f"standard output cannot be written: {error.strerror}",
                hint="what was measured is in the run directory",
            ) from error


def prepare() -> None:
    """Make the three standard streams usable. Call it before any file is opened.

    A descriptor of theirs that is free would be given to the next file that is opened, and
    messages would be written into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    codecs.register_error(AS_IT_IS, _as_it_is)
    sys.stdout = _text(_Product(_STDOUT), sys.stdout, AS_IT_IS)
    sys.stderr = _text(_Talk(_STDERR), sys.stderr, "backslashreplace")
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupted)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """Outside of a matrix, too, a closed terminal ends what runs, and nothing is left behind."""
    raise KeyboardInterrupt


def finish(code: int) -> int:
    """Write what is left; the exit code, or that of what went wrong with standard output."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the end has come already
    try:
        sys.stdout.flush()
    except (OSError, HeteroTestError) as error:
        ends_as = (
            error.exit_code if isinstance(error, HeteroTestError) else ExitCode.COULD_NOT_FINISH
        )
        if code != ends_as and not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"hetero-test: error: {visible_lines(str(error))}\n")
        code = ends_as
        discard()
    with suppress(OSError):
        sys.stderr.flush()
    return code


def discard() -> None:
    """Let whatever else is written to standard output, at exit too, go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, _STDOUT)
    os.close(null)


def _text(raw: io.FileIO, before: object, errors: str) -> io.TextIOWrapper:
    encoding = getattr(before, "encoding", None) or "utf-8"
    talk = isinstance(raw, _Talk) or raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=talk
    )


def _as_it_is(error: UnicodeError) -> tuple[str | bytes, int]:
    r"""Bytes of a path that are not text as those bytes, any other character as an escape.

    The first is what ``surrogateescape`` does, so that a path can be used as it was printed;
    the second is what ``backslashreplace`` does, where an encoding has no ``—``.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    out = b"".join(map(_bytes, error.object[error.start : error.end]))
    return out, error.end


def _bytes(char: str) -> bytes:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return bytes([code - 0xDC00])
    return char.encode("ascii", "backslashreplace")
