"""A question to a program that answers and ends: an argument vector in, its answer out.

:func:`ask` asks an engine's binary for help, devices and version; :func:`run_tool` asks the small
tools of the machine, such as ``nvidia-smi``, ``rocm-smi`` and ``lspci``.

A program may be missing, fail, talk without end or hang in the driver: each is a result, and the
caller says so in a note. Nothing here waits longer than the limit, not even for a process that
cannot be killed.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from hetero_test.launch.process import launch
from hetero_test.launch.request import ProcessLimits, Request
from hetero_test.values.outcome import Outcome, StopReason

ANSWER_BYTES = 1 << 20
"""What a help text or a list of devices may have at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a binary said to a question.

    Attributes:
        trouble: why the answer counts for nothing; None if it counts.
        outcome: how its process ended; None if there was no binary to ask.
    """

    stdout: str
    stderr: str
    trouble: str | None
    outcome: Outcome | None = None


def ask(argv: Sequence[str], *, limit_s: float) -> Answer:
    """Run a binary for its answer, within limits, and leave nothing of it running.

    Args:
        argv: the binary and its arguments; no shell is involved.
        limit_s: seconds after which it is ended, and :data:`ANSWER_BYTES` of output likewise.
    """
    # In memory, which no end of this process leaves behind.
    with _memory("stdout") as stdout, _memory("stderr") as stderr:
        limits = ProcessLimits(
            run_s=limit_s, idle_s=limit_s, output_bytes=ANSWER_BYTES, grace_s=1.0
        )
        request = Request(
            argv=tuple(argv), stdout=stdout, stderr=stderr, limits=limits, mark="survey"
        )
        outcome = launch(request)
        said = _text(stderr)
        return Answer(
            stdout=_text(stdout), stderr=said, trouble=_trouble(outcome, said), outcome=outcome
        )


@contextmanager
def _memory(name: str) -> Iterator[Path]:
    """A file without a name in any folder, by a path under which it can be opened."""
    descriptor = os.memfd_create(f"hetero-test-{name}")
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(ANSWER_BYTES).decode("utf-8", "replace").replace("\0", "")


def _trouble(outcome: Outcome, stderr: str) -> str | None:
    said = next((f": {line.strip()[:200]}" for line in stderr.splitlines() if line.strip()), "")
    if outcome.start_error is not None:
        return f"it could not be started: {outcome.start_error}"
    if outcome.stopped is not None or outcome.output_truncated:
        why = (outcome.stopped or StopReason.OUTPUT_CAP).value
        return f"it was stopped ({why}) after {outcome.elapsed_s:.0f} s"
    if outcome.signal is not None:
        return f"it ended by {outcome.signal}{said}"
    if outcome.exit_code != 0:
        return f"exit code {outcome.exit_code}{said}"
    return None


TIME_LIMIT_S = 10.0
"""A healthy tool answers in a second; ``nvidia-smi`` without persistence takes a few."""
LAST_WAIT_S = 1.0
OUTPUT_LIMIT_BYTES = 2**20
"""What a tool may print: a machine of eight cards makes some hundred kilobytes."""


class ToolState(StrEnum):
    """How a tool ended."""

    ANSWERED = "answered"
    """Exit code 0."""
    FAILED = "failed"
    MISSING = "missing"
    """There is no such program, or it may not be run."""
    TIMED_OUT = "timed out"
    ENDLESS = "endless"
    """It printed more than any answer has, so that what it printed is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool said. One that is ENDLESS has no output."""

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
            case ToolState.ENDLESS:
                return f"{self.command} printed more than any answer has"
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
        with suppress(OSError):  # it has ended already, so that its output has an end
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (_MOST_BYTES, _MOST_BYTES))
        state = _wait(process, time_limit_s)
        if max(os.fstat(file.fileno()).st_size for file in (stdout, stderr)) > OUTPUT_LIMIT_BYTES:
            return ToolResult(argv=tuple(argv), state=ToolState.ENDLESS)
        return ToolResult(
            argv=tuple(argv),
            state=state,
            stdout=_stream_text(stdout),
            stderr=_stream_text(stderr),
            exit_code=process.returncode,
        )


_MOST_BYTES = OUTPUT_LIMIT_BYTES + 1
"""The kernel ends a tool that writes a longer file (SIGXFSZ), whatever its output fills."""


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


def _stream_text(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read(OUTPUT_LIMIT_BYTES).decode("utf-8", errors="replace")
