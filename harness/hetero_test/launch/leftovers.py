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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

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


@dataclass(frozen=True, slots=True)
class _Stat:
    """What ``/proc/PID/stat`` says of a process."""

    name: str
    ended: bool
    session: int
    started: str


def _stat(pid: int) -> _Stat | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name, in parentheses, may hold blanks and parentheses itself.
    front, _, back = stat.rpartition(b")")
    values = back.split()
    return _Stat(
        name=os.fsdecode(front.partition(b"(")[2]),
        ended=values[0] in {b"Z", b"X"},
        session=int(values[3]),
        started=f"{_boot_id()}:{values[19].decode()}",
    )


def start_of(pid: int) -> str | None:
    """Return what tells this process from any other that ever has its pid; None if there is none.

    It is the boot's id and the start in clock ticks since boot (``/proc/PID/stat``, field 22),
    which unlike a date does not move when the clock is set.
    """
    stat = _stat(pid)
    return None if stat is None else stat.started


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that outlived its purpose.

    Attributes:
        pid: process id.
        started: as :func:`start_of` tells it.
        command: its command line, blank-separated; its name in brackets if it has none (any more).
    """

    pid: int
    started: str
    command: str = field(compare=False)

    def __str__(self) -> str:
        shown = self.command if len(self.command) <= 120 else f"{self.command[:119]}…"
        return f"pid {self.pid}: {shown}"

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the process that has this pid, unless it has ended."""
        stat = _stat(pid)
        if stat is None or stat.ended:
            return None
        command = ""
        with suppress(OSError):
            command = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes())
        return cls(pid, stat.started, command.replace("\0", " ").strip() or f"[{stat.name}]")

    def send(self, signum: signal.Signals) -> None:
        """Signal this process and no other that may have its pid by now."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if start_of(self.pid) == self.started:
                signal.pidfd_send_signal(descriptor, signum)
        except (ProcessLookupError, PermissionError):
            return  # ended meanwhile, or not ours to end; who looks again sees it
        finally:
            os.close(descriptor)


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
        others = {stat.session for pid in _descendants(os.getpid()) if (stat := _stat(pid))}
        self._foreign_sessions = {os.getsid(0), *others}

    def members(self) -> tuple[Leftover, ...]:
        """The living descendants; those that ended are reaped."""
        while True:
            living, are_others = self._look()
            # Processes are read one by one, and one that forks and ends meanwhile is replaced
            # unseen. The kernel knows whether there is any child at all.
            if living or are_others or not _has_children():
                return living

    def _look(self) -> tuple[tuple[Leftover, ...], bool]:
        living = []
        are_others = False
        for pid in _descendants(os.getpid()):
            stat = _stat(pid)
            if stat is None:
                continue
            if stat.session in self._foreign_sessions:
                are_others = True
            elif stat.ended:
                _reap(pid)
            elif (leftover := Leftover.of(pid)) is not None:
                living.append(leftover)
        return tuple(living), are_others

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


def survivors(mark: str, *, recorded: Collection[tuple[int, str]] = ()) -> tuple[Leftover, ...]:
    """Return the living processes that an earlier harness left behind.

    Args:
        mark: the whole of a mark or its leading parts: ``a/b`` finds ``a/b`` and ``a/b/c``,
            not ``a/bc``.
        recorded: pid and start (:func:`start_of`) of processes known to be ours; a pid that
            now belongs to another process is not returned.

    Raises:
        ValueError: an empty mark, which would find the processes of every run.
    """
    return tuple(dict.fromkeys(_survivors(mark, recorded)))


def _survivors(mark: str, recorded: Collection[tuple[int, str]]) -> Iterator[Leftover]:
    """Find each as soon as it is seen: one that forks itself anew must be ended before it moves."""
    mark = mark.rstrip("/")
    if not mark:
        raise ValueError("an empty mark")
    kin = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for pid in sorted(psutil.pids(), reverse=True):  # the youngest first, for the same reason
        if pid not in kin and (_has_mark(pid, mark) or (pid, start_of(pid)) in recorded):
            for each in (pid, *_descendants(pid)):
                if (leftover := Leftover.of(each)) is not None:
                    yield leftover


def sweep(
    mark: str, *, recorded: Collection[tuple[int, str]] = (), polite_s: float = 5.0
) -> tuple[str, ...]:
    """End all :func:`survivors` (TERM, then KILL after `polite_s`) and describe them.

    Raises:
        ValueError: an empty mark.
    """
    return _end(lambda: _survivors(mark, recorded), polite_s=polite_s)


def _end(look: Callable[[], Iterable[Leftover]], *, polite_s: float) -> tuple[str, ...]:
    seen: dict[Leftover, None] = {}

    def send(signum: signal.Signals) -> None:
        for leftover in look():
            seen.setdefault(leftover)
            leftover.send(signum)

    gone = False
    if polite_s > 0:
        send(signal.SIGTERM)
        gone = _wait_until_gone(look, polite_s)
    give_up = time.monotonic() + _KILL_S
    while not gone and time.monotonic() < give_up:
        send(signal.SIGKILL)
        gone = _wait_until_gone(look, 0.002)
    still = () if gone else tuple(look())
    return tuple(f"{each}, cannot be ended" if each in still else str(each) for each in seen)


def _wait_until_gone(look: Callable[[], Iterable[Leftover]], patience_s: float) -> bool:
    """Whether all are gone in time, that is, none is seen in three looks."""
    end = time.monotonic() + patience_s
    pause_s = 0.001
    unseen = 0
    while True:
        unseen = 0 if any(True for _ in look()) else unseen + 1
        if unseen == 3:
            return True
        if unseen == 0 and time.monotonic() >= end:
            return False
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, 0.05)


def _has_children() -> bool:
    """Whether the harness has any child, living or not yet reaped; the kernel knows at once."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _descendants(pid: int) -> tuple[int, ...]:
    """All that descend from a process, parents before children."""
    found: dict[int, None] = {}
    unread = [pid]
    while unread:
        children = [child for child in _children(unread.pop()) if child not in found]
        found.update(dict.fromkeys(children))
        unread += children
    return tuple(found)


def _children(pid: int) -> tuple[int, ...]:
    """The children of a process: one read a thread, where the kernel keeps lists of them."""
    children: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_bytes().split())
    except OSError:  # the process or a thread ended, or the kernel keeps no lists
        with suppress(psutil.NoSuchProcess):
            children = [child.pid for child in psutil.Process(pid).children()]
    return tuple(children)


def _reap(pid: int) -> None:
    """Take the exit status of an adopted orphan; its own parent does that for anyone else."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _has_mark(pid: int, mark: str) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # ended, or another user's
        return False
    name = f"{MARK_VARIABLE}=".encode()
    value = next((line for line in environment.split(b"\0") if line.startswith(name)), b"")
    return f"{os.fsdecode(value.removeprefix(name))}/".startswith(f"{mark}/")
