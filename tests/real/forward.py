"""A port that passes everything on to another one, which can be changed while it runs."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp.demo import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator


class Forward:
    """Where a port leads to; new connections go to the target of the moment."""

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.target = target

    @property
    def address(self) -> str:
        """Host and port of its own."""
        return f"{HOST}:{self.port}"


@contextmanager
def forwarding(target: int) -> Iterator[Forward]:
    """A port of its own that leads to a target's."""
    done = threading.Event()
    with socket.create_server((HOST, 0)) as server:
        server.settimeout(0.1)
        forward = Forward(int(server.getsockname()[1]), target)

        def serve() -> None:
            while not done.is_set():
                with suppress(TimeoutError):
                    near, _ = server.accept()
                    threading.Thread(target=_join, args=(near, forward.target, done)).start()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield forward
        finally:
            done.set()
            thread.join()


def _join(near: socket.socket, target: int, done: threading.Event) -> None:
    with near, suppress(OSError), socket.create_connection((HOST, target)) as far:
        threads = [
            threading.Thread(target=_pass_on, args=ends, kwargs={"done": done})
            for ends in ((near, far), (far, near))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _pass_on(source: socket.socket, sink: socket.socket, *, done: threading.Event) -> None:
    """Until one side ends; then the other one is told."""
    for end in (source, sink):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    source.settimeout(0.2)
    with suppress(OSError):
        while not done.is_set():
            try:
                block = source.recv(1 << 16)
            except TimeoutError:
                continue
            if not block:
                break
            sink.sendall(block)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
