"""Nothing outlives a run, and what outlives a killed harness is found."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from hetero_test.launch import leftovers
from hetero_test.launch.leftovers import (
    MARK_VARIABLE,
    Leftover,
    adopting_orphans,
    start_of,
    survivors,
    sweep,
)
from hetero_test.launch.process import launch
from hetero_test.values.outcome import StopReason
from tests.launch.conftest import bad_command, bystander, is_gone, wait_until

if TYPE_CHECKING:
    from tests.launch.conftest import Ask

pytestmark = pytest.mark.process


@pytest.mark.parametrize("how", ["daemonize", "daemonize-wiped"])
def test_a_daemon_is_swept(ask: Ask, how: str) -> None:
    """A grandchild in its own session is ended and described, also if it wiped its environment."""
    outcome = launch(ask.badly(how, grace_s=0.1))

    assert (outcome.exit_code, outcome.stopped) == (0, None)
    assert ask.output() == "ready\n"
    assert len(outcome.leftovers) == 1
    pid, _, command = outcome.leftovers[0].removeprefix("pid ").partition(": ")
    assert is_gone(int(pid))
    assert "time.sleep(1000)" in command


def test_a_daemon_of_a_stopped_process_is_swept(ask: Ask) -> None:
    """A limit ends the descendants in other sessions as well."""
    outcome = launch(ask.badly("parent", idle_s=0.5))

    assert (outcome.stopped, outcome.signal) == (StopReason.IDLE, "SIGINT")
    assert len(outcome.leftovers) == 1


def test_a_process_that_runs_away_is_swept(ask: Ask) -> None:
    """Forking into a new session again and again is no escape."""
    outcome = launch(ask.badly("respawn", grace_s=0.1))

    assert outcome.exit_code == 0
    assert outcome.leftovers


def test_a_helper_that_ends_by_itself_is_no_leftover(ask: Ask) -> None:
    """A child that needs a moment longer than its parent may finish, and is not held against it."""
    outcome = launch(ask.badly("linger"))

    assert outcome.leftovers == ()
    assert ask.output() == "last words\n"


def test_a_leftover_is_asked_before_it_is_killed(ask: Ask) -> None:
    """A leftover of a process that ended by itself gets TERM and the grace."""
    script = "(trap 'echo tidied; kill $!; exit' TERM; echo up; sleep 1000 & wait) & sleep 0.2"

    outcome = launch(ask("sh", "-c", script))

    assert "tidied" in ask.output()
    assert outcome.leftovers


def test_orphans_are_adopted_only_while_a_process_runs(ask: Ask) -> None:
    """Afterwards the harness is as it was: orphans of its other children are not its own."""
    launch(ask("true"))
    script = "sleep 1000 >/dev/null & echo $!"
    orphan = int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout)

    try:
        assert psutil.Process(orphan).ppid() != os.getpid()
    finally:
        psutil.Process(orphan).kill()


def test_descendants_of_other_children_are_left_alone(ask: Ask) -> None:
    """A child that was there before, in a session of its own, may go on having children."""
    script = "read line; sleep 1000 & echo $!; wait"
    with bystander(
        "sh",
        "-c",
        script,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        with adopting_orphans() as family:
            other.stdin.write("\n")
            other.stdin.flush()
            pid = int(other.stdout.readline())
            try:
                assert family.members() == ()
                assert family.sweep(polite_s=0) == ()
                assert not is_gone(pid)
            finally:
                os.kill(pid, signal.SIGKILL)


def test_a_look_that_misses_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the kernel knows of a child, an empty look does not prove that there is none."""
    descendants = leftovers._descendants
    looks: list[int] = []

    def miss_once(pid: int) -> tuple[int, ...]:
        looks.append(pid)
        return () if len(looks) == 1 else descendants(pid)

    with adopting_orphans() as family:
        monkeypatch.setattr(leftovers, "_descendants", miss_once)
        with bystander("sleep", "1000", start_new_session=True) as process:
            (found,) = family.members()

    assert found.pid == process.pid


HARNESS = """
    import json, sys
    from pathlib import Path
    from hetero_test.launch.process import launch
    from hetero_test.launch.request import ProcessLimits, Request

    folder, mark, *argv = sys.argv[1:]
    launch(
        Request(
            argv=tuple(argv),
            stdout=Path(folder, "stdout"),
            stderr=Path(folder, "stderr"),
            limits=ProcessLimits(run_s=1000, idle_s=1000),
            mark=mark,
        ),
        on_start=lambda pid, started: print(json.dumps([pid, started]), flush=True),
    )
"""


def killed_harness(ask: Ask, folder: Path, how: str) -> tuple[int, str]:
    """Pid and start of a process whose harness was killed once it was ready."""
    argv = [sys.executable, "-c", textwrap.dedent(HARNESS), str(folder), f"{ask.mark}/V1/default-1"]
    with subprocess.Popen([*argv, *bad_command(how)], stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        pid, started = json.loads(harness.stdout.readline())
        wait_until(lambda: "ready" in ask.output())
        harness.kill()
    return pid, started


@pytest.mark.parametrize("how", ["hang", "deaf", "talk"])
def test_the_engine_dies_with_the_harness(ask: Ask, tmp_path: Path, how: str) -> None:
    """`kill -9` of the harness ends the engine, whatever that ignores, and no sweep is needed."""
    pid, _ = killed_harness(ask, tmp_path, how)

    wait_until(lambda: is_gone(pid))
    assert survivors(ask.mark) == ()


def test_an_engine_whose_harness_died_first_never_starts() -> None:
    """A harness that dies before the child could ask for its signal leaves no engine either."""
    script = """
        import os
        from hetero_test.launch.leftovers import dying_with_parent

        before_start = dying_with_parent()
        if os.fork() == 0:
            if os.fork() == 0:  # a child whose parent is not the one that meant to start it
                before_start()
                os._exit(0)
            _, status = os.wait()
            print(os.waitstatus_to_exitcode(status))
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, check=True
    )

    assert result.stdout == b"-9\n"


def test_what_outlives_a_killed_harness_is_found_by_its_mark(ask: Ask, tmp_path: Path) -> None:
    """A daemon of the engine is found in any session, by any leading part of its mark."""
    pid, started = killed_harness(ask, tmp_path, "parent")
    wait_until(lambda: is_gone(pid))

    (found,) = survivors(ask.mark)
    assert "time.sleep(1000)" in found.command
    assert survivors(f"{ask.mark}/V1/") == survivors(f"{ask.mark}/V1/default-1") == (found,)
    assert survivors(ask.mark[:-1]) == survivors(f"{ask.mark}/V") == ()

    (described,) = sweep(ask.mark, recorded=[(pid, started)], polite_s=0.1)
    assert described.startswith(f"pid {found.pid}: ")
    assert is_gone(found.pid)
    assert sweep(ask.mark) == ()


def test_a_recorded_process_is_found_without_a_mark(ask: Ask) -> None:
    """Pid and start together identify a process whose environment cannot be read."""
    with bystander("sleep", "1000") as process:
        started = start_of(process.pid)
        assert started is not None
        # For a moment after its start a process has no command line yet.
        wait_until(lambda: "1000" in str(Leftover.of(process.pid)))

        described = sweep(ask.mark, recorded=[(process.pid, started)])

        assert described == (f"pid {process.pid}: sleep 1000",)
        assert process.wait() != 0


def test_a_recycled_pid_is_never_touched(ask: Ask) -> None:
    """A process that merely has a recorded pid, but another start, is not ours."""
    with bystander("sleep", "1000") as process:
        started = start_of(process.pid)
        assert started is not None
        boot, _, ticks = started.rpartition(":")

        for other in (f"{boot}:{int(ticks) - 1}", f"another boot:{ticks}", ""):
            assert sweep(ask.mark, recorded=[(process.pid, other)], polite_s=0) == ()
        assert process.poll() is None


def test_a_harness_under_a_harness_does_not_end_itself(ask: Ask) -> None:
    """Neither the harness nor its parents are survivors, even if they carry the mark."""
    script = (
        "import sys; from hetero_test.launch.leftovers import survivors\n"
        "print(len(survivors(sys.argv[1])))"
    )
    result = subprocess.run(
        ["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", script, ask.mark],
        env={**os.environ, MARK_VARIABLE: f"{ask.mark}/outer"},
        stdout=subprocess.PIPE,
        check=True,
    )

    assert result.stdout == b"0\n"


@pytest.mark.parametrize("mark", ["", "/"])
def test_an_empty_mark_is_refused(mark: str) -> None:
    """It would name the processes of every run of every user's harness."""
    with pytest.raises(ValueError, match="empty mark"):
        survivors(mark)


def test_a_process_that_does_not_exist_has_no_start() -> None:
    """A pid beyond the kernel's largest is nobody's."""
    assert start_of(2**22 + 1) is None


def test_a_signal_reaches_only_the_process_it_was_meant_for() -> None:
    """Between the look and the signal a pid may pass to another process."""
    with bystander("sleep", "1000") as process:
        seen = Leftover.of(process.pid)
        assert seen is not None

        replace(seen, started="earlier").send(signal.SIGKILL)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)

        seen.send(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        seen.send(signal.SIGKILL)  # nobody has the pid now, and that is no error


def test_a_name_with_parentheses_and_blanks_is_read_right(tmp_path: Path) -> None:
    """The name of a program cannot shift the fields that follow it in the kernel's table."""
    program = tmp_path / ") Z 1 2 3 ("
    program.symlink_to(shutil.which("sleep") or "")
    with bystander(str(program), "1000") as process:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == f"{program.name}\n")
        leftover = Leftover.of(process.pid)

    assert leftover is not None
    assert leftover.pid == process.pid
