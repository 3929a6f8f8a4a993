"""RPC servers of llama.cpp on this machine: devices for who has no accelerator."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from harness.errors import EngineNotFoundError, UsageError
from harness.processes import dying_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

HOST: Final = "127.0.0.1"
BINARY: Final = "ggml-rpc-server"
_READY_S: Final = 30.0
_GRACE_S: Final = 5.0
_POLL_S: Final = 0.02


def free_port() -> int:
    """A loopback port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Whether somebody listens on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0


@contextmanager
def serving(
    binary: Path, port: int, *, log: Path, env: Mapping[str, str] | None = None
) -> Iterator[int]:
    """A running RPC server on a loopback port; it is ended with the block. Yields its pid.

    Args:
        binary: ``ggml-rpc-server``.
        port: a port that nobody listens on.
        log: receives what it prints.
        env: set on top of the environment.

    Raises:
        UsageError: somebody listens on the port already, and would answer in its stead.
        EngineNotFoundError: the binary cannot be run, or it ended before it listened.
    """
    if answers(port):
        raise UsageError(
            f"port {port} on {HOST} is taken: an RPC server left over there would be the one "
            "that answers",
            hint="end what listens there, or choose another port",
        )
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [binary, "-H", HOST, "-p", str(port), "-t", "1"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C", **(env or {})},
                # Ctrl-C on the terminal is for the harness, which then ends this one.
                process_group=0,
                preexec_fn=dying_with_parent(),  # noqa: PLW1509 - calls nothing that may block
            )
        except OSError as error:
            raise EngineNotFoundError(f"{binary} cannot be run: {error.strerror}") from error
    try:
        _wait_until_it_listens(process, port, log)
        yield process.pid
    finally:
        _end(process)


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while not answers(port):
        if process.poll() is not None or time.monotonic() > deadline:
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise EngineNotFoundError(
                f"{BINARY} does not listen on port {port}: {' '.join(last) or 'it printed nothing'}"
            )
        time.sleep(_POLL_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
