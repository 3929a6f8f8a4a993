"""Requests for processes that behave badly, and the proof that none is left."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from hetero_test.launch.leftovers import survivors, sweep
from hetero_test.launch.request import ProcessLimits, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BADLY = Path(__file__).with_name("badly.py")
PATIENCE_S = 30.0


class Ask:
    """Makes requests that share a mark, an output folder and generous limits."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.folder = folder
        self.mark = mark
        self.stdout = folder / "stdout"
        self.stderr = folder / "stderr"

    def __call__(
        self,
        *argv: str,
        run_s: float = PATIENCE_S,
        idle_s: float = PATIENCE_S,
        deadline: float | None = None,
        output_bytes: int = 2**20,
        grace_s: float = 5.0,
        **fields: Any,
    ) -> Request:
        """A request for any program."""
        limits = ProcessLimits(
            run_s=run_s,
            idle_s=idle_s,
            deadline=deadline,
            output_bytes=output_bytes,
            grace_s=grace_s,
        )
        given: dict[str, Any] = {
            "argv": argv,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "limits": limits,
            "mark": self.mark,
        }
        return Request(**{**given, **fields})

    def badly(self, how: str, *arguments: str, **fields: Any) -> Request:
        """A request for a process that behaves badly in a named way."""
        return self(*bad_command(how, *arguments), **fields)

    def output(self) -> str:
        """What was written to stdout so far."""
        return self.stdout.read_text() if self.stdout.exists() else ""


def bad_command(how: str, *arguments: str) -> tuple[str, ...]:
    """The command line of a process that behaves badly in a named way."""
    return (sys.executable, "-SE", str(BADLY), how, *arguments)


@contextmanager
def bystander(*argv: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that the harness did not launch, killed in the end whatever the test found."""
    with subprocess.Popen(argv, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; fail rather than hang."""
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.005)


def is_gone(pid: int) -> bool:
    """Whether there is no such process, or only its exit status."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def open_descriptors() -> set[str]:
    """The harness's own open file descriptors, each with what it is open on."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{descriptor.name} {descriptor.readlink()}")
        except FileNotFoundError:  # the one the listing itself used
            continue
    return found


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """A maker of requests; afterwards no process, child or descriptor of theirs is left."""
    mark = f"tests/{uuid.uuid4()}"
    before = open_descriptors()
    children = {child.pid for child in psutil.Process().children(recursive=True)}
    yield Ask(tmp_path, mark)
    left = survivors(mark)
    sweep(mark, polite_s=0)
    assert left == ()
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= children
    assert open_descriptors() <= before
