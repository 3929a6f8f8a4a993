"""An engine that behaves badly: ``badly.py HOW [ARGUMENT …]``.

It says ``ready`` on stdout once it behaves as named. It imports nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def say(text: str) -> None:
    """Write a line at once."""
    os.write(1, f"{text}\n".encode())


def sleep_for_ever() -> None:
    """Never end."""
    while True:
        time.sleep(1000)


def hang() -> None:
    """Say nothing more; end as signals say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    say("ready")
    sleep_for_ever()


def deaf() -> None:
    """Ignore every signal that can be ignored."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    say("ready")
    sleep_for_ever()


def deaf_to_interrupt() -> None:
    """Ignore INT only."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say("ready")
    sleep_for_ever()


def tidy() -> None:
    """Write down which signal came first, then end with code 7."""

    def end(signum: int, _frame: object) -> None:
        say(f"got {signal.Signals(signum).name}")
        os._exit(7)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    say("ready")
    sleep_for_ever()


def talk() -> None:
    """Say something for ever."""
    say("ready")
    while True:
        say("still here")
        time.sleep(0.005)


def flood() -> None:
    """Write without end, deaf to signals."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)
    block = b"x" * 2**16
    while True:
        os.write(int(sys.argv[2]), block)


def mute() -> None:
    """Close both outputs and live on."""
    say("ready")
    os.close(1)
    os.close(2)
    sleep_for_ever()


def daemonize(*, wipe: bool) -> None:
    """Leave a grandchild in a session of its own, deaf to TERM, and end with code 0."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.set_inheritable(writer, True)
            code = f"import os, time; os.write({writer}, b'x'); time.sleep(1000)"
            environment = {} if wipe else dict(os.environ)
            os.execve(sys.executable, [sys.executable, "-SEc", code], environment)
        os._exit(0)
    os.read(reader, 1)
    say("ready")


def respawn() -> None:
    """Leave a process that forks itself anew, in a new session, again and again."""
    say("ready")
    if os.fork() == 0:
        while True:
            os.setsid()
            time.sleep(0.01)
            if os.fork() > 0:
                os._exit(0)


def linger() -> None:
    """Leave a child of the same group that ends by itself a moment later."""
    if os.fork() == 0:
        time.sleep(0.03)
        say("last words")


def parent() -> None:
    """Leave a child in a session of its own, then hang."""
    daemonize(wipe=False)
    sleep_for_ever()


def describe() -> None:
    """Say as JSON what the process was given."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    json.dump(
        {
            "argv": sys.argv[2:],
            "cwd": str(Path.cwd()),
            "env": dict(os.environ),
            "stdin": sys.stdin.read(),
            "stdin_path": str(Path("/proc/self/fd/0").readlink()),
            "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),  # noqa: PTH208
            "session": os.getsid(0) == os.getpid(),
            "group": os.getpgid(0) == os.getpid(),
            "interruptible": signal.getsignal(signal.SIGINT) is not signal.SIG_IGN,
            "terminable": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
            "blocked": len(blocked),
        },
        sys.stdout,
    )


def end() -> None:
    """End with a code, or by a signal if it is negative."""
    code = int(sys.argv[2])
    if code < 0:
        os.kill(os.getpid(), -code)
        sleep_for_ever()
    os._exit(code)


HOW = {
    "hang": hang,
    "deaf": deaf,
    "deaf-to-interrupt": deaf_to_interrupt,
    "tidy": tidy,
    "talk": talk,
    "flood": flood,
    "mute": mute,
    "daemonize": lambda: daemonize(wipe=False),
    "daemonize-wiped": lambda: daemonize(wipe=True),
    "respawn": respawn,
    "linger": linger,
    "parent": parent,
    "describe": describe,
    "end": end,
}

if __name__ == "__main__":
    HOW[sys.argv[1]]()
