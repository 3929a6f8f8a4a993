"""Running the machine's small tools."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from hetero_test.launch.query import OUTPUT_LIMIT_BYTES, ToolState, run_tool

pytestmark = pytest.mark.process


def python(code: str) -> tuple[str, ...]:
    """A command line that runs the code."""
    return (sys.executable, "-S", "-c", code)


def test_an_answer_is_passed_on() -> None:
    """Output, exit code and command line."""
    result = run_tool(python("print('hello')"))
    assert result.state is ToolState.ANSWERED
    assert result.stdout == "hello\n"
    assert result.exit_code == 0
    assert result.argv[0] == sys.executable


def test_tools_speak_the_c_locale() -> None:
    """So that numbers and words are those that the parsers know."""
    assert run_tool(python("import os; print(os.environ['LC_ALL'])")).stdout == "C\n"


def test_a_failure_quotes_its_words() -> None:
    """The note has the exit code and what the tool said, on one line."""
    result = run_tool(python("import sys; print('no\\ndevice', file=sys.stderr); sys.exit(9)"))
    assert result.state is ToolState.FAILED
    assert result.trouble.endswith("failed with 9: no device")


@pytest.mark.parametrize("name", ["no-such-tool-anywhere", "", "a\0b", "/"])
def test_what_cannot_be_run_is_missing(name: str) -> None:
    """Not on the path, no name, a folder."""
    result = run_tool((name,))
    assert result.state is ToolState.MISSING
    assert "is not installed" in result.trouble


def ended(pid: int) -> bool:
    """Whether the process is gone, or only its exit code is left."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_tool_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """The time limit holds for the whole family, and nobody is left."""
    script = f"sleep 600 & echo $! > {shlex.quote(str(tmp_path / 'pid'))}; wait"
    result = run_tool(("sh", "-c", script), time_limit_s=2)
    assert result.state is ToolState.TIMED_OUT
    assert "did not answer in time" in result.trouble
    pid = int((tmp_path / "pid").read_text())
    while not ended(pid):  # the signal is sent; pytest's limit ends a wait in vain
        time.sleep(0.02)


def test_a_child_that_lives_on_does_not_hold_the_answer() -> None:
    """A daemon with our output open is not waited for."""
    result = run_tool(("sh", "-c", "sleep 600 & echo $!"), time_limit_s=60)
    assert result.state is ToolState.ANSWERED
    pid = int(result.stdout)
    assert not ended(pid)
    os.kill(pid, signal.SIGKILL)


def test_endless_output_is_cut() -> None:
    """No more than the limit is kept, and bytes that are no text do no harm."""
    code = "import sys; sys.stdout.buffer.write(b'\\xff' * (5 * 2**20))"
    assert len(run_tool(python(code)).stdout) == OUTPUT_LIMIT_BYTES


def test_tools_get_no_input() -> None:
    """A tool that asks a question reads the end of its input and not the terminal."""
    assert run_tool(python("import sys; print(repr(sys.stdin.read()))")).stdout == "''\n"
