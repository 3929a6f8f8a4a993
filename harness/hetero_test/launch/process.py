"""One process, from a :class:`Request` to an :class:`Outcome`."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.launch.capture import Capture, capturing
from hetero_test.launch.dialogue import Alive, Conversation
from hetero_test.launch.interrupt import Interrupt
from hetero_test.launch.leftovers import (
    MARK_VARIABLE,
    Family,
    adopting_orphans,
    dying_with_parent,
    signal_group,
    start_of,
)
from hetero_test.launch.request import ProcessLimits, Request
from hetero_test.values.outcome import Outcome, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable

# A killed process that is stuck in a driver may never end; the matrix must go on.
_UNKILLABLE_S = 10.0


def launch(
    request: Request,
    *,
    interrupt: Interrupt | None = None,
    on_start: Callable[[int, str | None], None] | None = None,
) -> Outcome:
    """Run one process to its end and leave none of its descendants running.

    Call it from the main thread: the process is killed when the thread that started it ends.

    Args:
        request: what to run, and its limits.
        interrupt: the user's wish to stop. The first ends the process politely, the second
            kills it.
        on_start: called with pid and start (`leftovers.start_of`) as soon as the
            process runs, so that they can be stored before anything happens to the harness.

    Returns:
        The outcome; a process that cannot be started has one too, with `start_error`.

    Raises:
        StoreError: the output files cannot be opened.
        RuntimeError: called from another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("launch() must be called from the main thread")
    with ExitStack() as stack:
        capture = stack.enter_context(
            capturing(
                stdout=request.stdout,
                stderr=request.stderr,
                cap_bytes=request.limits.output_bytes,
            )
        )
        family = stack.enter_context(adopting_orphans())
        unstarted = _unstarted(request)
        began = time.monotonic()
        try:
            process = _start(request, capture)
        except (OSError, ValueError) as error:
            elapsed_s = time.monotonic() - began
            return replace(unstarted, start_error=_why_not(request, error), elapsed_s=elapsed_s)
        stack.callback(_abandon, process, family)
        started = replace(unstarted, pid=process.pid, pid_started=start_of(process.pid))
        pidfd = os.pidfd_open(process.pid)
        stack.callback(os.close, pidfd)
        if on_start is not None:
            on_start(process.pid, started.pid_started)
        talk = _converse(request, process.pid, stack)
        run = _Run(process, pidfd, began, request.limits, capture, interrupt, talk)
        return _finish(run, started, family)


@dataclass(frozen=True, slots=True)
class _Run:
    """A process that is running, and all that can end its run."""

    process: subprocess.Popen[bytes]
    pidfd: int
    began: float
    limits: ProcessLimits
    capture: Capture
    interrupt: Interrupt | None
    talk: Conversation | None

    def wait(self, patience_s: float) -> bool:
        """Whether the process has ended, within some seconds or until there is news."""
        poller = select.poll()
        poller.register(self.pidfd, select.POLLIN)
        if self.interrupt is not None:
            poller.register(self.interrupt, select.POLLIN)
        if self.talk is not None and not self.talk.is_over():
            poller.register(self.talk, select.POLLIN)
        # Rounded up: waiting for less than a millisecond would be no waiting at all.
        ready = {fd for fd, _ in poller.poll(int(max(patience_s, 0) * 1000) + 1)}
        if self.interrupt is not None:
            self.interrupt.drain()
        self.capture.look()
        return self.pidfd in ready

    def watch(self) -> StopReason | None:
        """Wait for the end of the process (None) or for a reason to end it."""
        patience_s = 0.0
        while not self.wait(patience_s):
            reason = self._reason_to_stop()
            if reason is not None:
                return reason
            left_s = min(end for end, _ in self._ends()) - time.monotonic()
            patience_s = min(self.capture.next_look_s(), left_s)
        return None

    def _reason_to_stop(self) -> StopReason | None:
        if self.interrupt is not None and self.interrupt.requested:
            return StopReason.INTERRUPTED
        if self.talk is not None and self.talk.is_over():
            failed = self.talk.error is not None
            return StopReason.DIALOGUE_FAILED if failed else StopReason.DIALOGUE_DONE
        if self.capture.over_cap:
            return StopReason.OUTPUT_CAP
        now = time.monotonic()
        return next((reason for end, reason in self._ends() if now >= end), None)

    def _ends(self) -> tuple[tuple[float, StopReason], ...]:
        """Each limit with the moment at which it is reached."""
        active_at = max(self.began, self.capture.grew_at)
        if self.talk is not None:
            active_at = max(active_at, self.talk.alive.progressed_at)
        deadline = self.limits.deadline
        return (
            (float("inf") if deadline is None else deadline, StopReason.TOTAL_LIMIT),
            (self.began + self.limits.run_s, StopReason.RUN_LIMIT),
            (active_at + self.limits.idle_s, StopReason.IDLE),
        )

    def stop(self) -> bool:
        """INT, TERM, KILL to the group, with grace between them; whether the process ended."""
        for signum in (signal.SIGINT, signal.SIGTERM):
            end = time.monotonic() + self.limits.grace_s
            signal_group(self.process.pid, signum)
            while not self._wants_kill() and (left_s := end - time.monotonic()) > 0:
                if self.wait(min(left_s, self.capture.next_look_s())):
                    return True
        signal_group(self.process.pid, signal.SIGKILL)
        end = time.monotonic() + _UNKILLABLE_S
        while (left_s := end - time.monotonic()) > 0:
            if self.wait(min(left_s, self.capture.next_look_s())):
                return True
        return False

    def _wants_kill(self) -> bool:
        return self.interrupt is not None and self.interrupt.again


def _finish(run: _Run, started: Outcome, family: Family) -> Outcome:
    """Wait for the end, stop if need be, sweep, and say what happened."""
    reason = run.watch()
    talked = run.talk is not None and run.talk.is_over()
    if run.talk is not None:
        run.talk.alive.stop_requested.set()
    ended = reason is None or run.stop()
    elapsed_s = time.monotonic() - run.began
    outcome = replace(started, stopped=reason, elapsed_s=elapsed_s)
    if ended:
        outcome = _with_status(outcome, run.process)
    else:  # the sweep tries once more, and says so
        run.process.returncode = -signal.SIGKILL
    if run.talk is not None:
        run.talk.alive.ended.set()
        error = run.talk.settle(was_over=talked, patience_s=run.limits.grace_s)
        outcome = replace(outcome, dialogue_error=error)
    polite_s = run.limits.grace_s if reason is None else 0.0
    leftovers = family.sweep(polite_s=polite_s)
    run.capture.look()
    return replace(outcome, leftovers=leftovers, output_truncated=run.capture.over_cap)


def _with_status(outcome: Outcome, process: subprocess.Popen[bytes]) -> Outcome:
    """Reap the process and add what the kernel tells of it."""
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code  # tells Popen that it was waited for
    return replace(
        outcome,
        exit_code=code if code >= 0 else None,
        signal=_signal_name(-code) if code < 0 else None,
        major_faults=usage.ru_majflt,
        blocks_read=usage.ru_inblock,
        max_rss_bytes=usage.ru_maxrss * 1024,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal that has no name of its own
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def _unstarted(request: Request) -> Outcome:
    return Outcome(
        argv=request.argv,
        env_delta={**request.env, "LC_ALL": "C"},
        unset=request.unset,
        cwd=request.cwd,
        pid=None,
        pid_started=None,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        elapsed_s=0.0,
        exit_code=None,
        signal=None,
        stopped=None,
        start_error=None,
        major_faults=None,
        blocks_read=None,
        max_rss_bytes=None,
    )


def _start(request: Request, capture: Capture) -> subprocess.Popen[bytes]:
    """Start the process in a session of its own.

    Raises:
        OSError: it cannot be started.
        ValueError: a NUL in an argument or in the environment.
    """
    removed = set(request.unset)
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    environment |= request.env
    environment |= {"LC_ALL": "C", MARK_VARIABLE: request.mark}
    # A function between fork and exec is unsafe if it takes locks; this one does not.
    return subprocess.Popen(
        request.argv,
        cwd=request.cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=capture.stdout,
        stderr=capture.stderr,
        start_new_session=True,
        preexec_fn=dying_with_parent(),  # noqa: PLW1509
    )


def _why_not(request: Request, error: OSError | ValueError) -> str:
    """Say why a process did not start, where the system's own words mislead."""
    program = request.argv[0]
    if not isinstance(error, OSError):
        return f"{program!r}: {error}"
    reason = error.strerror or str(error)
    if request.cwd is not None and error.filename in {request.cwd, str(request.cwd)}:
        return f"working directory {request.cwd}: {reason}"
    path = Path(request.cwd or "", program)
    if "/" not in program:
        reason = f"{reason} (looked for on PATH)"
    elif path.is_dir():
        reason = "is a directory"
    elif error.errno == errno.ENOENT and path.exists():
        reason = "its interpreter or dynamic loader does not exist"
    elif error.errno == errno.ENOEXEC:
        reason = f"{reason} (built for another architecture, cut short, or no program at all)"
    return f"{program}: {reason}"


def _converse(request: Request, pid: int, stack: ExitStack) -> Conversation | None:
    if request.dialogue is None:
        return None
    alive = Alive(pid=pid, stdout=request.stdout, stderr=request.stderr)
    return stack.enter_context(Conversation(request.dialogue, alive))


def _abandon(process: subprocess.Popen[bytes], family: Family) -> None:
    """End what an exception in the harness itself would leave running."""
    if process.returncode is None:
        signal_group(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_UNKILLABLE_S)
    family.sweep(polite_s=0.0)
