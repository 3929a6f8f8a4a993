"""Standard streams that may be missing, full, gone, or of an encoding that lacks characters.

An exit code is what a CI job gates on: no state of a stream may turn one into another, above all
not into 1, which the interpreter itself uses for an error that nobody caught.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress

from hetero_test.errors import ExitCode, HeteroTestError

AS_IT_IS = "hetero-test-as-it-is"
"""How characters are written that an encoding lacks; see :func:`_as_it_is`."""

_STDOUT, _STDERR = 1, 2


class _Talk(io.FileIO):
    """Standard error: whoever read it may have gone, and the matrix runs on without him."""

    def write(self, data: object, /) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError:
            return memoryview(data).nbytes  # type: ignore[arg-type]


class _Product(io.FileIO):
    """Standard output: what cannot be written there is an error of its own."""

    def write(self, data: object, /) -> int:
        """Write.

        Raises:
            BrokenPipeError: whoever read it has gone.
            HeteroTestError: anything else that is no bug of ours, such as a full disk.
        """
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            raise
        except OSError as error:
            raise HeteroTestError(
                f"standard output cannot be written: {error.strerror}",
                hint="what was measured is in the run directory",
            ) from error


def prepare() -> None:
    """Make the three standard streams usable. Call it before any file is opened.

    A number of theirs that is free would be given to the next file that is opened, and what is
    told would be written into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    codecs.register_error(AS_IT_IS, _as_it_is)
    sys.stdout = _text(_Product(_STDOUT, "w", closefd=False), sys.stdout, AS_IT_IS)
    sys.stderr = _text(_Talk(_STDERR, "w", closefd=False), sys.stderr, "backslashreplace")


def finish(code: int) -> int:
    """Write what is left; the exit code, or 5 where standard output could not be written."""
    try:
        sys.stdout.flush()
    except (OSError, HeteroTestError) as error:
        if code != ExitCode.COULD_NOT_FINISH and not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"hetero-test: error: {error}\n")
        code = ExitCode.COULD_NOT_FINISH
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
    r"""Bytes of a path that are no text as those bytes, any other character as an escape.

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
