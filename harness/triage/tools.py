"""Runs the small tools of the machine, such as ``nvidia-smi``, ``rocm-smi`` and ``lspci``.

A tool may be missing, fail, talk without end or hang in the driver: each is a result, and the
caller says so in a note. Nothing here waits longer than the limit, not even for a process that
cannot be killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO

TIME_LIMIT_S = 10.0
"""A healthy tool answers in a second; ``nvidia-smi`` without persistence takes a few."""
LAST_WAIT_S = 1.0
OUTPUT_LIMIT_BYTES = 4 * 2**20


class ToolState(StrEnum):
    """How a tool ended."""

    ANSWERED = "answered"
    """Exit code 0."""
    FAILED = "failed"
    MISSING = "missing"
    """There is no such program, or it may not be run."""
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool said. Output is cut at `OUTPUT_LIMIT_BYTES`."""

    argv: tuple[str, ...]
    state: ToolState
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None

    @property
    def command(self) -> str:
        """The command line, as a source or a note names it."""
        return " ".join(self.argv)

    @property
    def trouble(self) -> str:
        """Why there is no answer, in a sentence for a note."""
        match self.state:
            case ToolState.ANSWERED:
                return f"{self.command} answered"
            case ToolState.MISSING:
                return f"{self.argv[0]} is not installed"
            case ToolState.TIMED_OUT:
                return f"{self.command} did not answer in time"
            case ToolState.FAILED:
                words = " ".join((self.stderr.strip() or self.stdout.strip()).split())
                said = f": {words[:200]}" if words else ""
                return f"{self.command} failed with {self.exit_code}{said}"


Runner = Callable[[Sequence[str]], ToolResult]
"""How probes run tools; tests pass their own."""


def run_tool(argv: Sequence[str], *, time_limit_s: float = TIME_LIMIT_S) -> ToolResult:
    """Run a tool in the C locale, without input, for so long at most."""
    # Files, not pipes: a child of the tool that lives on would hold a pipe open.
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, "LC_ALL": "C", "LANGUAGE": ""},
                start_new_session=True,
            )
        except (OSError, ValueError):
            return ToolResult(argv=tuple(argv), state=ToolState.MISSING)
        state = _wait(process, time_limit_s)
        return ToolResult(
            argv=tuple(argv),
            state=state,
            stdout=_text(stdout),
            stderr=_text(stderr),
            exit_code=process.returncode,
        )


def _wait(process: subprocess.Popen[bytes], time_limit_s: float) -> ToolState:
    try:
        code = process.wait(time_limit_s)
    except subprocess.TimeoutExpired:
        _end(process)
        return ToolState.TIMED_OUT
    except BaseException:
        _end(process)
        raise
    return ToolState.ANSWERED if code == 0 else ToolState.FAILED


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # it hangs in the kernel: leave it there
        process.wait(LAST_WAIT_S)


def _text(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read(OUTPUT_LIMIT_BYTES).decode("utf-8", errors="replace")
