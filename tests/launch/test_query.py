"""Running the machine's small tools."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hetero_test.launch.query import OUTPUT_LIMIT_BYTES, ToolState, ask, run_tool

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


def test_bytes_that_are_no_text_do_no_harm() -> None:
    """Output up to the bound is kept whole; what is no UTF-8 is replaced, byte by byte."""
    code = f"import sys; sys.stdout.buffer.write(b'\\xff' * {OUTPUT_LIMIT_BYTES})"
    assert run_tool(python(code)).stdout == "\ufffd" * OUTPUT_LIMIT_BYTES


def test_tools_get_no_input() -> None:
    """A tool that asks a question reads the end of its input and not the terminal."""
    assert run_tool(python("import sys; print(repr(sys.stdin.read()))")).stdout == "''\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("deaf", [True, False])
def test_a_tool_that_talks_without_end_is_ended_at_once(stream: str, *, deaf: bool) -> None:
    """What it printed counts for nothing and fills no disk, though it ignores the signal for it."""
    signals = f"signal.signal(signal.SIGXFSZ, signal.SIG_{'IGN' if deaf else 'DFL'})"
    code = f"import sys, signal\n{signals}\nwhile 1: sys.{stream}.write('junk, ' * 9999)"
    began = time.monotonic()
    result = run_tool(python(code), time_limit_s=30)
    assert time.monotonic() - began < 10
    assert result.state is ToolState.ENDLESS
    assert result.stdout == result.stderr == ""
    assert result.trouble.endswith("printed more than any answer has")


def test_a_question_leaves_no_file_whatever_ends_the_asker(tmp_path: Path) -> None:
    """A survey that is ended by kill -9 leaves nothing in the temporary folder."""
    words = "import sys\nfrom hetero_test.launch.query import ask\nask(sys.argv[1:], limit_s=60)"
    waits = python("import time; print(1, flush=True); time.sleep(60)")
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    asker = subprocess.Popen([sys.executable, "-c", words, *waits], env=env)
    while not psutil.Process(asker.pid).children():
        time.sleep(0.01)
    time.sleep(0.2)
    left = psutil.Process(asker.pid).children()
    asker.kill()
    asker.wait()
    for process in left:
        process.kill()
    assert not list(tmp_path.iterdir())
    assert ask(python("print('said')"), limit_s=60).stdout == "said\n"
