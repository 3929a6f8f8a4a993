"""How a process is started, and what it is given."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hetero_test.errors import StoreError
from hetero_test.launch.leftovers import MARK_VARIABLE, start_of
from hetero_test.launch.process import launch
from tests.launch.conftest import bystander, open_descriptors

if TYPE_CHECKING:
    from tests.launch.conftest import Ask

pytestmark = pytest.mark.process

AWKWARD = (
    "two words",
    "",
    "*",
    "[a-z]?",
    r"blk\..*=CPU",
    'it\'s "quoted"',
    "$HOME `id` $(id)",
    "--",
    "é",
    "a\nb",
    "\udcff",
    "{device}",
    "%s",
    "~",
)


def described(ask: Ask, *arguments: str, **fields: Any) -> dict[str, Any]:
    """What a launched process says it was given."""
    outcome = launch(ask.badly("describe", *arguments, **fields))
    assert outcome.exit_code == 0, ask.stderr.read_text()
    values = json.loads(ask.output())
    assert isinstance(values, dict)
    return values


def test_arguments_arrive_unchanged(ask: Ask) -> None:
    """Blanks, globs, quotes, `--`, newlines and undecodable bytes reach the process as given."""
    assert tuple(described(ask, *AWKWARD)["argv"]) == AWKWARD


def test_stdin_is_the_null_device(ask: Ask) -> None:
    """A process that reads its input finds its end at once, so that none waits for a user."""
    given = described(ask)

    assert given["stdin"] == ""
    assert given["stdin_path"] == os.devnull


def test_environment_is_a_delta(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness's environment is inherited, less what is unset, plus what is set."""
    monkeypatch.setenv("KEPT", "1")
    monkeypatch.setenv("REMOVED", "1")
    monkeypatch.setenv("REPLACED", "1")

    env = described(ask, env={"REPLACED": "2", "ADDED": "3"}, unset=("REMOVED", "NEVER_SET"))["env"]

    assert (env["KEPT"], env["REPLACED"], env["ADDED"]) == ("1", "2", "3")
    assert "REMOVED" not in env


def test_a_name_both_unset_and_set_is_set(ask: Ask) -> None:
    """Unsetting comes first."""
    assert described(ask, env={"NAME": "1"}, unset=("NAME",))["env"]["NAME"] == "1"


def test_locale_is_always_plain(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are printed with a dot, whatever the user's locale or the matrix says."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")

    outcome = launch(ask.badly("describe", env={"LC_ALL": "de_DE.UTF-8"}))

    assert json.loads(ask.output())["env"]["LC_ALL"] == "C"
    assert outcome.env_delta == {"LC_ALL": "C"}


def test_mark_is_in_the_environment_but_not_in_the_delta(ask: Ask) -> None:
    """The mark is how the harness finds its own, no part of what was asked of the engine."""
    outcome = launch(ask.badly("describe"))

    assert json.loads(ask.output())["env"][MARK_VARIABLE] == ask.mark
    assert MARK_VARIABLE not in outcome.env_delta


def test_process_leads_its_own_session_and_group(ask: Ask) -> None:
    """A Ctrl-C on the terminal reaches the harness alone, and the group can be ended as a whole."""
    given = described(ask)

    assert given["session"] is True
    assert given["group"] is True


def test_process_inherits_no_descriptor(ask: Ask) -> None:
    """Only the three standard streams are open (and the one that lists them)."""
    with Path(os.devnull).open() as inheritable:
        os.set_inheritable(inheritable.fileno(), True)
        assert described(ask)["fds"] == [0, 1, 2, 3]


def test_signals_are_default_whatever_the_harness_ignores(ask: Ask) -> None:
    """An engine started by a harness under `nohup` or in the background can still be stopped."""
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        for signum in before:
            signal.signal(signum, signal.SIG_IGN)
        given = described(ask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for signum, handler in before.items():
            signal.signal(signum, handler)

    assert given["interruptible"] is True
    assert given["terminable"] is True
    assert given["blocked"] == 0


def test_working_directory_is_used(ask: Ask, tmp_path: Path) -> None:
    """The process runs where it is asked to."""
    (tmp_path / "my dir").mkdir()

    assert described(ask, cwd=tmp_path / "my dir")["cwd"] == str(tmp_path / "my dir")


def test_the_two_streams_are_kept_apart(ask: Ask) -> None:
    """Standard output and standard error never share a file, and every byte is kept."""
    launch(ask("sh", "-c", r"printf 'out\r\n\0\377'; printf err >&2"))

    assert ask.stdout.read_bytes() == b"out\r\n\0\xff"
    assert ask.stderr.read_bytes() == b"err"


def test_old_output_is_overwritten(ask: Ask) -> None:
    """Yesterday's log is never read as today's."""
    ask.stdout.write_text("output  : 1 2 3\n" * 100)
    ask.stderr.write_text("old")

    launch(ask("true"))

    assert ask.stdout.read_bytes() == ask.stderr.read_bytes() == b""


@pytest.mark.parametrize("code", [0, 1, 2, 139, 255])
def test_exit_code_is_reported(ask: Ask, code: int) -> None:
    """An exit code is a number and no signal, also where a shell would mean a signal by it."""
    outcome = launch(ask("sh", "-c", f"exit {code}"))

    assert (outcome.exit_code, outcome.signal, outcome.stopped) == (code, None, None)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (signal.SIGSEGV, "SIGSEGV"),
        (signal.SIGABRT, "SIGABRT"),
        (signal.SIGKILL, "SIGKILL"),
        (signal.SIGRTMIN, "SIGRTMIN"),
        (signal.SIGRTMIN + 2, "SIGRTMIN+2"),
    ],
)
def test_signal_is_named(ask: Ask, number: int, name: str) -> None:
    """A process that a signal ended has its name and no exit code."""
    outcome = launch(ask("sh", "-c", f"ulimit -c 0; kill -{number} $$"))

    assert (outcome.exit_code, outcome.signal, outcome.stopped) == (None, name, None)


def test_outcome_tells_what_the_kernel_knows(ask: Ask) -> None:
    """Page faults, blocks read, memory, pid, start and duration come with every run."""
    known: list[tuple[int, str | None]] = []

    def note(pid: int, started: str | None) -> None:
        known.append((pid, start_of(pid)))
        assert started == start_of(pid)

    before = datetime.now(UTC)
    request = ask("sh", "-c", "sleep 0.05")
    outcome = launch(request, on_start=note)

    assert isinstance(outcome.major_faults, int)
    assert isinstance(outcome.blocks_read, int)
    assert outcome.max_rss_bytes is not None
    assert outcome.max_rss_bytes > 2**18
    assert known == [(outcome.pid, outcome.pid_started)]
    assert outcome.argv == request.argv
    assert outcome.elapsed_s >= 0.05
    started = datetime.fromisoformat(outcome.started)
    assert started.utcoffset() == UTC.utcoffset(None)
    assert abs((started - before).total_seconds()) < 5


def foreign_binary(folder: Path) -> Path:
    """A program for a machine that this one is not (a VAX)."""
    source = shutil.which("true")
    assert source is not None
    image = bytearray(Path(source).read_bytes())
    image[18:20] = (75).to_bytes(2, sys.byteorder)  # e_machine
    path = folder / "strata"
    path.write_bytes(image)
    path.chmod(0o755)
    return path


def test_a_missing_program_is_an_outcome(ask: Ask, tmp_path: Path) -> None:
    """A program that does not exist is told as such, with its path."""
    outcome = launch(ask(str(tmp_path / "strata")))

    assert outcome.start_error == f"{tmp_path / 'strata'}: No such file or directory"
    assert (outcome.pid, outcome.exit_code, outcome.signal, outcome.stopped) == (None,) * 4
    assert outcome.major_faults is None


def test_a_program_not_on_path_is_an_outcome(ask: Ask) -> None:
    """A bare name is looked for on PATH, and the message says so."""
    outcome = launch(ask("no-such-engine"))

    expected = "no-such-engine: No such file or directory (looked for on PATH)"
    assert outcome.start_error == expected


def test_a_program_without_permission_is_an_outcome(ask: Ask, tmp_path: Path) -> None:
    """A file that is not executable is told as such."""
    path = tmp_path / "strata"
    path.write_text("#!/bin/sh\n")

    assert launch(ask(str(path))).start_error == f"{path}: Permission denied"


def test_a_directory_is_an_outcome(ask: Ask, tmp_path: Path) -> None:
    """A directory in place of the program is told as such, not as a lack of permission."""
    assert launch(ask(str(tmp_path))).start_error == f"{tmp_path}: is a directory"


def test_a_program_for_another_machine_is_an_outcome(ask: Ask, tmp_path: Path) -> None:
    """A binary for another architecture is told as such."""
    error = launch(ask(str(foreign_binary(tmp_path)))).start_error

    assert error is not None
    assert "Exec format error (built for another architecture" in error


def test_a_program_whose_interpreter_is_missing_is_an_outcome(ask: Ask, tmp_path: Path) -> None:
    """The system's "no such file" is not repeated about a file that is there."""
    path = tmp_path / "strata"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)

    expected = f"{path}: its interpreter or dynamic loader does not exist"
    assert launch(ask(str(path))).start_error == expected


def test_a_missing_working_directory_is_an_outcome(ask: Ask, tmp_path: Path) -> None:
    """It is the directory that is named, not the program."""
    cwd = tmp_path / "gone"

    expected = f"working directory {cwd}: No such file or directory"
    assert launch(ask("true", cwd=cwd)).start_error == expected


@pytest.mark.parametrize("fields", [{"env": {"A": "\0"}}, {"env": {"A=B": "1"}}])
def test_an_impossible_environment_is_an_outcome(ask: Ask, fields: dict[str, Any]) -> None:
    """What no process can be given fails that run only."""
    assert launch(ask("true", **fields)).start_error is not None


def test_an_impossible_argument_is_an_outcome(ask: Ask) -> None:
    """A NUL in an argument, or more of it than the kernel takes, fails that run only."""
    assert "null byte" in str(launch(ask("true", "a\0b")).start_error)
    assert "Argument list too long" in str(launch(ask("true", "x" * 2**22)).start_error)


def test_output_that_cannot_be_opened_is_a_store_error(ask: Ask, tmp_path: Path) -> None:
    """It is the run directory that fails then, not the engine; nothing is started."""
    with pytest.raises(StoreError, match="gone/stderr"):
        launch(ask("touch", str(tmp_path / "ran"), stderr=tmp_path / "gone" / "stderr"))

    assert not (tmp_path / "ran").exists()


def test_an_empty_argument_vector_is_refused(ask: Ask) -> None:
    """There is no such thing as a process without a program."""
    with pytest.raises(ValueError, match="empty argument vector"):
        ask()


def test_only_the_main_thread_may_launch(ask: Ask) -> None:
    """The parent-death signal follows the thread, so a worker's end would kill the engine."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            launch(ask("true"))
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert "main thread" in str(raised[0])


def test_launching_works_while_other_threads_run(ask: Ask) -> None:
    """A progress display in another thread neither hangs the start nor draws a warning."""
    done = threading.Event()

    def turn() -> None:
        while not done.wait(0.0005):
            json.dumps({"x": [str(n) for n in range(50)]})

    threads = [threading.Thread(target=turn) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        codes = {launch(ask("true")).exit_code for _ in range(20)}
    finally:
        done.set()
        for thread in threads:
            thread.join()

    assert codes == {0}


def test_fifty_launches_leak_no_descriptor(ask: Ask, tmp_path: Path) -> None:
    """Neither good nor failed starts keep anything open."""
    launch(ask("true"))
    before = open_descriptors()

    for _ in range(25):
        launch(ask("true"))
        launch(ask(str(tmp_path)))

    assert open_descriptors() == before


def test_exit_codes_survive_an_ignored_child_signal(ask: Ask) -> None:
    """A harness started with SIGCHLD ignored still learns how the engine ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        outcome = launch(ask("sh", "-c", "exit 3"))
        assert signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    assert outcome.exit_code == 3


def test_other_children_keep_their_exit_status(ask: Ask) -> None:
    """Sweeping takes nothing from processes that something else in the harness started."""
    with (
        bystander("sleep", "1000") as own,
        bystander("sh", "-c", "exit 5", start_new_session=True) as foreign,
    ):
        launch(ask.badly("daemonize", grace_s=0.05))
        assert own.poll() is None
        assert foreign.wait() == 5
