"""Every way in which the program itself can end badly, one exit code a class.

::

    HeteroTestError                 5  the harness could not finish
    ├── UsageError                  2  the command line is wrong
    │   └── MatrixError             2  a matrix, rig or model-facts file is wrong
    ├── NothingToCompareError       3  known before any launch: something is missing
    │   └── EngineNotFoundError     3  no engine binary where one was named
    └── StoreError                  5  the run directory cannot be read or written

A verdict is no error: PASS, FAIL and INCONCLUSIVE have exit codes of their own in
:class:`ExitCode`. Only :func:`hetero_test.cli.main.main` catches the base class; anything else
that reaches it is a bug of ours and ends with 5.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What the process tells its caller; stable, documented in the README."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    NOTHING_TO_COMPARE = 3
    INCONCLUSIVE = 4
    COULD_NOT_FINISH = 5
    TOTAL_TIMEOUT = 124
    INTERRUPTED = 130


class HeteroTestError(Exception):
    """The harness could not finish; the message says what, where and what to do.

    Args:
        what: what is wrong, in one sentence without a prefix.
        hint: what the reader can do about it, if anything.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.COULD_NOT_FINISH

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return self.what if self.hint is None else f"{self.what}\n  {self.hint}"


class UsageError(HeteroTestError):
    """The command line asks for something that cannot be done as written."""

    exit_code = ExitCode.USAGE


class MatrixError(UsageError):
    """A file that the user wrote (matrix, rig, model facts) does not hold together.

    Args:
        complaints: every complaint, each as ``file:line: key: what is wrong``.
    """

    def __init__(self, complaints: tuple[str, ...], *, hint: str | None = None) -> None:
        super().__init__("\n".join(complaints), hint=hint)
        self.complaints = complaints


class NothingToCompareError(HeteroTestError):
    """Known before the first launch: no comparison could come of it."""

    exit_code = ExitCode.NOTHING_TO_COMPARE


class EngineNotFoundError(NothingToCompareError):
    """The build directory holds no binary of the engine that the matrix is for."""


class StoreError(HeteroTestError):
    """The run directory cannot be used, or what it holds cannot be read."""
