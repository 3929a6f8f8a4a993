"""Talking to a llama-server while it lives: wait until it is ready, ask once, keep the answer.

The server is started with ``--port 0``, so the kernel gives it a port that nobody has, and the
port is looked up among the sockets on which this very process listens. Thus no other server,
left over or a stranger's, can ever be the one that answers.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from hetero_test.engines.llama_cpp import reply
from hetero_test.errors import NothingToCompareError
from hetero_test.formats.json import JsonError, parse
from hetero_test.values.run import Probe

if TYPE_CHECKING:
    from hetero_test.launch.dialogue import Alive

HOST: Final = "127.0.0.1"
_POLL_S: Final = 0.01
_SLOWEST_POLL_S: Final = 0.2
_CHILDREN_AFTER_S: Final = 0.05
"""The wait between two looks from which on descendants are looked at as well."""
_CONNECT_S: Final = 10.0
_MOST_BYTES: Final = 256 * 2**20
_HTTP_OK: Final = 200


class DialogueError(Exception):
    """The server did not give what was asked for; the message says what it did instead."""


def require_client() -> Any:
    """The HTTP library.

    Raises:
        NothingToCompareError: it is not installed.
    """
    try:
        # Takes a while to import, and only engines that are servers need it.
        import httpx2
    except ImportError as error:
        raise NothingToCompareError(
            "talking to llama-server needs the package httpx2",
            hint="install it with: pip install 'hetero-test[llama]'",
        ) from error
    return httpx2


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The dialogue of one run: one prompt, one answer, written to the run's folder.

    A quiet server is not told to be making progress: how long its log may be silent is what
    the idle limit says.
    """

    probe: Probe
    folder: Path

    def __call__(self, alive: Alive) -> None:
        """Hold it.

        Raises:
            DialogueError: the server ended, refused, or answered with something else.
        """
        http = require_client()
        timeout = http.Timeout(_CONNECT_S, read=None)
        # Neither proxies nor credentials of the environment are meant for this server. Nothing is
        # encrypted on the way to it, and loading certificates takes longer than a short run.
        with http.Client(
            timeout=timeout, trust_env=False, follow_redirects=False, verify=False
        ) as client:
            port = self._ready(alive, client, http)
            body = reply.request(self.probe.ids, self.probe.max_new)
            try:
                answer = self._ask(client, f"http://{HOST}:{port}/completion", body)
            except http.HTTPError as error:
                raise DialogueError(
                    f"the request broke off: {type(error).__name__}: {error}"
                ) from error
        scratch = self.folder / f".{reply.FILE}.{os.getpid()}"
        scratch.write_bytes(answer)
        scratch.replace(self.folder / reply.FILE)

    def _ready(self, alive: Alive, client: Any, http: Any) -> int:
        """The port, once the model behind it is loaded."""
        wait_s = _POLL_S
        while not alive.stop_requested.wait(wait_s):
            wait_s = min(wait_s * 1.2, _SLOWEST_POLL_S)
            # A wrapper's child may be the server; looking for it takes a look at all processes.
            port = listening_port(alive.pid, children=wait_s > _CHILDREN_AFTER_S)
            if port is None:
                continue
            with suppress(http.HTTPError):
                answer = client.get(f"http://{HOST}:{port}/health", timeout=_CONNECT_S)
                if answer.status_code == _HTTP_OK:
                    return port
        raise DialogueError("the server was not ready before it ended")

    def _ask(self, client: Any, url: str, body: dict[str, Any]) -> bytes:
        with client.stream("POST", url, json=body) as response:
            content = bytearray()
            for block in response.iter_bytes():
                content += block
                if len(content) > _MOST_BYTES:
                    raise DialogueError(f"the answer is longer than {_MOST_BYTES >> 20} MiB")
        if response.status_code != _HTTP_OK:
            raise DialogueError(
                f"the server answered {response.status_code}: {_message(bytes(content))}"
            )
        if not content.strip():
            raise DialogueError("the server answered with success, but with nothing")
        return bytes(content)


def listening_port(pid: int, *, children: bool = True) -> int | None:
    """The port on which a process listens; None while there is none.

    Args:
        pid: of the process.
        children: whether processes that it started count as well.
    """
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *(process.children(recursive=True) if children else ())):
            with suppress(psutil.Error):
                for connection in each.net_connections("tcp"):
                    if connection.status == psutil.CONN_LISTEN:
                        return int(connection.laddr.port)
    return None


def _message(content: bytes) -> str:
    """The server's own words on what it did not like."""
    with suppress(JsonError, KeyError, TypeError):
        return str(parse(content, lax_numbers=True)["error"]["message"])[:300]
    return content[:300].decode("utf-8", "replace").strip() or "no message"
