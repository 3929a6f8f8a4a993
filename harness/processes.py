"""Processes of ours that must not outlive their purpose: how they are found and ended.

Four nets, each for what slips through the others:

- The process group, while its leader lives.
- The family: the harness adopts orphans (``PR_SET_CHILD_SUBREAPER``) while a process runs, so
  whoever descends from it stays below the harness, even after ``setsid`` and a double fork.
- The parent-death signal (``PR_SET_PDEATHSIG``), which ends the process when the harness dies.
- The mark in the environment and the recorded pid, by which a later run finds what
  outlived a harness that was killed. A process that wiped its environment carries no mark.

A pid is never trusted alone: signals go through a pidfd that was checked against the start time.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

#: The environment variable whose value tells which run a process belongs to.
MARK_VARIABLE = "HETERO_TEST_MARK"

# <linux/prctl.h>
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37

# Loaded before any fork: between fork and exec nothing may be looked up or locked. PyDLL keeps
# the interpreter's lock, which another thread could otherwise hold for ever in the child.
_prctl = ctypes.PyDLL(None, use_errno=True).prctl

_SETTLE_S = 0.2
_KILL_S = 5.0


@cache
def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def start_of(pid: int) -> str | None:
    """Return what tells this process from any other that ever has its pid; None if there is none.

    It is the boot's id and the start in clock ticks since boot (``/proc/PID/stat``, field 22),
    which unlike a date does not move when the clock is set.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name, in parentheses, may hold blanks and parentheses itself.
    return f"{_boot_id()}:{stat.rpartition(b')')[2].split()[19].decode()}"


def dying_with_parent() -> Callable[[], None]:
    """Return what a child must call between fork and exec; to be made in the parent.

    The child then is killed when the *thread* that made it ends, however that happens. Executing
    a setuid binary or one with file capabilities clears this, and grandchildren do not inherit it.
    It also starts with default signals, whatever the harness inherited (``nohup``, ``&``).
    """
    parent = os.getpid()

    def in_child() -> None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the call above could see it
            os.kill(os.getpid(), signal.SIGKILL)
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    return in_child


def signal_group(leader: int, signum: signal.Signals) -> None:
    """Signal the process group of a leader that has not been reaped."""
    try:
        os.killpg(leader, signum)
    except (ProcessLookupError, PermissionError):
        # Gone, or under another user by now: the sweep says which.
        return


class Family:
    """The descendants of what is started while :func:`adopting_orphans` is in force.

    They are told from other children of the harness by their session: the harness's own
    helpers stay in its session, and nothing can return to a session it has left.
    """

    def __init__(self) -> None:
        others = {_session_of(child.pid) for child in _descendants()}
        self._foreign_sessions = {None, os.getsid(0), *others}

    def members(self) -> tuple[psutil.Process, ...]:
        """The living descendants; those that ended are reaped."""
        living = []
        for child in _descendants():
            if _session_of(child.pid) in self._foreign_sessions:
                continue
            if _has_ended(child):
                _reap(child.pid)
            else:
                living.append(child)
        return tuple(living)

    def sweep(self, *, polite_s: float) -> tuple[str, ...]:
        """End every descendant and describe those that did not end by themselves.

        Call it when the first process has been reaped.

        Args:
            polite_s: seconds between TERM and KILL; 0 kills without asking.
        """
        if not _has_children() or _wait_until_gone(self.members, _SETTLE_S):
            return ()
        return _end(self.members, polite_s=polite_s)


@contextmanager
def adopting_orphans() -> Iterator[Family]:
    """Become the parent of every orphan below the harness while the block runs."""
    before = ctypes.c_int()
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    # With SIGCHLD ignored the kernel throws exit statuses away.
    sigchld = signal.getsignal(signal.SIGCHLD)
    if sigchld is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield Family()
    finally:
        _prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)
        if sigchld is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, sigchld)


def survivors(
    mark: str, *, recorded: Collection[tuple[int, str]] = ()
) -> tuple[psutil.Process, ...]:
    """Return the living processes that an earlier harness left behind.

    Args:
        mark: the whole of a mark or its leading parts: ``a/b`` finds ``a/b`` and ``a/b/c``,
            not ``a/bc``.
        recorded: pid and start (:func:`start_of`) of processes known to be ours; a pid that
            now belongs to another process is not returned.

    Raises:
        ValueError: an empty mark, which would find the processes of every run.
    """
    if not mark.strip("/"):
        raise ValueError("an empty mark")
    kin = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        known = (process.pid, start_of(process.pid)) in recorded
        if process.pid not in kin and (known or _has_mark(process, mark.rstrip("/"))):
            found[process.pid] = process
            with _vanishing():
                found.update((child.pid, child) for child in process.children(recursive=True))
    return tuple(process for process in found.values() if not _has_ended(process))


def sweep(
    mark: str, *, recorded: Collection[tuple[int, str]] = (), polite_s: float = 5.0
) -> tuple[str, ...]:
    """End all :func:`survivors` (TERM, then KILL after `polite_s`) and describe them.

    Raises:
        ValueError: an empty mark.
    """
    return _end(lambda: survivors(mark, recorded=recorded), polite_s=polite_s)


def _end(members: Callable[[], tuple[psutil.Process, ...]], *, polite_s: float) -> tuple[str, ...]:
    described: dict[tuple[int, str | None], str] = {}

    def send(signum: signal.Signals) -> None:
        for process in members():
            started = start_of(process.pid)
            described.setdefault((process.pid, started), _describe(process))
            _send(process.pid, started, signum)

    if polite_s > 0:
        send(signal.SIGTERM)
        if _wait_until_gone(members, polite_s):
            return tuple(described.values())
    give_up = time.monotonic() + _KILL_S
    while True:
        send(signal.SIGKILL)
        if _wait_until_gone(members, 0.02):
            return tuple(described.values())
        if time.monotonic() > give_up:
            still = {(process.pid, start_of(process.pid)) for process in members()}
            return tuple(
                f"{text}, cannot be ended" if key in still else text
                for key, text in described.items()
            )


def _wait_until_gone(members: Callable[[], tuple[psutil.Process, ...]], patience_s: float) -> bool:
    """Whether all are gone in time, that is, none is seen in two looks.

    One look does not do: the list of processes is read one by one, and a process that forks and
    ends meanwhile can pass from the unread part to the read one.
    """
    end = time.monotonic() + patience_s
    pause_s = 0.001
    unseen = 0
    while True:
        unseen = 0 if members() else unseen + 1
        if unseen == 2:
            return True
        if unseen == 0 and time.monotonic() >= end:
            return False
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, 0.05)


def _send(pid: int, started: str | None, signum: signal.Signals) -> None:
    """Signal the process that has this pid and start, and no other."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if started is not None and start_of(pid) == started:
            signal.pidfd_send_signal(descriptor, signum)
    except (ProcessLookupError, PermissionError):
        return  # ended meanwhile, or not ours to end; who asks again sees it
    finally:
        os.close(descriptor)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _has_children() -> bool:
    """Whether the harness has any child, living or not yet reaped; the kernel knows at once."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _descendants() -> Iterable[psutil.Process]:
    """All that descend from the harness; looked for only if there is a child at all."""
    return psutil.Process().children(recursive=True) if _has_children() else ()


def _reap(pid: int) -> None:
    """Take the exit status of an adopted orphan; its own parent does that for anyone else."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _has_ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD})
    except psutil.NoSuchProcess:
        return True


def _has_mark(process: psutil.Process, mark: str) -> bool:
    value = ""
    with _vanishing():
        value = process.environ().get(MARK_VARIABLE, "")
    return value == mark or value.startswith(f"{mark}/")


def _describe(process: psutil.Process) -> str:
    command = "?"
    with _vanishing():
        command = " ".join(process.cmdline()) or process.name()
    if len(command) > 120:
        command = f"{command[:119]}…"
    return f"pid {process.pid}: {command}"


@contextmanager
def _vanishing() -> Iterator[None]:
    """Let a process end, or be another user's, while it is being looked at."""
    try:
        yield
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return
