"""Stands where an RPC server should be, and is none of the engine's: two ways to be wrong."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp.demo import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEADER = struct.Struct("<BQ")  # command, size of the request
_SIZE = struct.Struct("<Q")
_VERSION = bytes([99, 0, 0, 0])  # major, minor, patch, padding; capabilities follow


@contextmanager
def other_protocol() -> Iterator[int]:
    """A port whose server greets with a protocol version of the far future."""
    with _listening(_greet) as port:
        yield port


@contextmanager
def silent() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with _listening(_say_nothing) as port:
        yield port


@contextmanager
def _listening(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    done = threading.Event()
    with socket.create_server((HOST, 0)) as server:
        server.settimeout(0.1)

        def serve() -> None:
            talks = []
            while not done.is_set():
                with suppress(TimeoutError):
                    connection, _ = server.accept()
                    talks.append(threading.Thread(target=_held, args=(talk, connection, done)))
                    talks[-1].start()
            for each in talks:
                each.join()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            done.set()
            thread.join()


def _held(
    talk: Callable[[socket.socket, threading.Event], None],
    connection: socket.socket,
    done: threading.Event,
) -> None:
    with connection, suppress(OSError):
        connection.settimeout(30)
        talk(connection, done)


def _greet(connection: socket.socket, _done: threading.Event) -> None:
    _, size = _HEADER.unpack(_take(connection, _HEADER.size))
    capabilities = _take(connection, size)
    answer = _VERSION + capabilities
    connection.sendall(_SIZE.pack(len(answer)) + answer)


def _take(connection: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        more = connection.recv(count - len(got))
        if not more:
            raise OSError("the client went away")
        got += more
    return got


def _say_nothing(_connection: socket.socket, done: threading.Event) -> None:
    done.wait(120)
