"""Devices that fail in the middle of a matrix: the right state, and the rest of it still runs."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from hetero_test.engines.llama_cpp import demo
from hetero_test.errors import UsageError
from tests.real import rig
from tests.real.forward import Forward, forwarding
from tests.real.matrix import matrix_file, play
from tests.real.other_protocol import other_protocol, silent
from tests.rigs import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.real.conftest import Rpc, Servers

pytestmark = pytest.mark.real

VARIANTS = (
    'id = "a"\nname = "all on RPC0"\nflags = ["-dev", "RPC0", "-ngl", "99"]\n'
    'effect = { main = "RPC0" }',
    'id = "b"\nname = "all on RPC1"\nflags = ["-dev", "RPC1", "-ngl", "99"]\n'
    'effect = { main = "RPC1" }',
)
LIKE = ("--device-kind", "RPC0=CPU", "--device-kind", "RPC1=CPU")
PATIENCE_S = 60.0
DECODING = b"n_gen = 20,"
"""In the log once a run is well into its answer."""


def flags(models: dict[str, Path], *servers: Rpc | Forward) -> list[str]:
    addresses = ",".join(server.address for server in servers)
    return ["-m", str(models["dense-f32"]), "--rpc", addresses, "-dev", "none"]


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not until():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.002)


@contextmanager
def _meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Act in a thread of its own; what goes wrong there is raised here."""
    failed: list[BaseException] = []

    def hold() -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]


def _decoding(out: Path, run: str) -> bool:
    try:
        return DECODING in (out / "runs" / run / "stderr").read_bytes()
    except OSError:
        return False


def _nothing_left(told: Told) -> None:
    """No process has the run directory in its command line, and no engine is alive."""
    for run in told.json["runs"]:
        assert run["pid"] is None or not _is_engine(run["pid"])


def _is_engine(pid: int) -> bool:
    try:
        return "llama-server" in psutil.Process(pid).name()
    except psutil.Error:
        return False


def _strike(out: Path, port: Forward, server: Rpc, spare: Rpc, how: signal.Signals) -> None:
    """Send a signal to the server that variant b decodes on; later runs meet the spare one."""
    _wait(lambda: _decoding(out, "Vb/default-1"))
    port.target = spare.port
    os.kill(server.pid, how)


def test_rpc_server_killed_in_a_run(
    build: Path, servers: Servers, models: dict[str, Path], tmp_path: Path
) -> None:
    """A server that dies under a run crashes that run, with the line; the others are compared."""
    first, second, spare = (servers.start(build) for _ in range(3))
    out = tmp_path / "out"
    with (
        forwarding(second.port) as port,
        _meanwhile(lambda: _strike(out, port, second, spare, signal.SIGKILL)),
    ):
        told = play(
            build,
            tmp_path,
            flags(models, first, port),
            *LIKE,
            matrix=matrix_file(tmp_path, *VARIANTS),
            max_new=900,
        )
    assert told.code == 4, told.stdout
    assert told.states("b") == ["CRASHED", "OK"]
    assert "RPC" in (told.runs("b")[0]["quote"] or ""), told.runs("b")[0]
    assert told.states("a") == told.states("0") == ["OK", "OK"]
    assert set(told.results("exact", "a")) == {"PASS"}
    assert set(told.results("exact", "b")) == {"INCONCLUSIVE", "PASS"}
    _nothing_left(told)


def test_rpc_server_that_hangs(
    build: Path, servers: Servers, models: dict[str, Path], tmp_path: Path
) -> None:
    """A server that stops answering stops the run at the idle limit; the rest of it runs."""
    first, second, spare = (servers.start(build) for _ in range(3))
    out = tmp_path / "out"
    with forwarding(second.port) as port:
        try:
            with _meanwhile(lambda: _strike(out, port, second, spare, signal.SIGSTOP)):
                told = play(
                    build,
                    tmp_path,
                    flags(models, first, port),
                    *LIKE,
                    *("--idle-timeout", "1.5"),
                    matrix=matrix_file(tmp_path, *VARIANTS[::-1]),
                    max_new=900,
                )
        finally:
            os.kill(second.pid, signal.SIGKILL)
    assert told.code == 4, told.stdout
    assert told.states("b") == ["TIMED_OUT"]
    assert told.states("a") == told.states("0") == ["OK", "OK"]
    assert set(told.results("exact", "a")) == {"PASS"}
    _nothing_left(told)


def test_rpc_server_of_another_protocol(
    build: Path, rpc: tuple[Rpc, Rpc], models: dict[str, Path], tmp_path: Path
) -> None:
    """A server of another protocol is told before anything is launched."""
    with other_protocol() as port:
        given = ["-m", str(models["dense-f32"]), "--rpc", f"{rpc[0].address},127.0.0.1:{port}"]
        told = play(build, tmp_path, given)
    assert told.code == 3
    assert "RPC handshake failed" in told.stderr
    assert "of the same build" in told.stderr
    assert not (tmp_path / "out").exists()


def test_rpc_server_that_went_away(
    build: Path, servers: Servers, models: dict[str, Path], tmp_path: Path
) -> None:
    """A server that is down when a variant starts crashes it with the engine's own words."""
    alive = servers.start(build)
    down = demo.free_port()
    own = matrix_file(
        tmp_path,
        f'id = "gone"\nname = "with a server that is down"\nflags = ["--rpc", "127.0.0.1:{down}"]',
        VARIANTS[0],
    )
    told = play(build, tmp_path, flags(models, alive), *LIKE[:2], matrix=own)
    assert told.states("gone") == ["CRASHED", "CRASHED"]
    assert "Failed to connect" in told.runs("gone")[0]["quote"]
    assert set(told.results("exact", "a")) == {"PASS"}
    assert told.code == 4


def test_port_of_something_else(
    build: Path, servers: Servers, models: dict[str, Path], tmp_path: Path
) -> None:
    """A port where something else listens that never answers stops the run at the idle limit."""
    alive = servers.start(build)
    with silent() as port:
        own = matrix_file(
            tmp_path,
            f'id = "silent"\nname = "with a stranger"\nflags = ["--rpc", "127.0.0.1:{port}"]',
            VARIANTS[0],
        )
        told = play(
            build, tmp_path, flags(models, alive), *LIKE[:2], "--idle-timeout", "1.5", matrix=own
        )
    assert told.states("silent") == ["TIMED_OUT"]
    assert set(told.results("exact", "a")) == {"PASS"}
    _nothing_left(told)


def test_port_that_is_taken(build: Path, servers: Servers) -> None:
    """No server is started on a port where one answers: it would be the other that is tested."""
    first = servers.start(build)
    with pytest.raises(UsageError, match=f"port {first.port} on 127.0.0.1 is taken"):
        servers.start(build, first.port)


def test_refusals_asserts_and_garbage(
    build: Path, rpc: tuple[Rpc, Rpc], models: dict[str, Path], tmp_path: Path
) -> None:
    """Refusals are skipped with their words, asserts crash with theirs, NaN is DEGENERATE."""
    own = matrix_file(
        tmp_path,
        'id = "refused"\nname = "quantized V without flash attention"\n'
        'flags = ["-fa", "off", "-ctv", "q8_0"]',
        'id = "assert"\nname = "no batch"\nflags = ["-b", "0"]',
        'id = "late"\nname = "another device"\nflags = ["-dev", "RPC9"]',
        'id = "nan"\nname = "no numbers"\n'
        'flags = ["--rope-scaling", "yarn", "--rope-freq-base", "-1"]',
        VARIANTS[0],
    )
    told = play(build, tmp_path, flags(models, *rpc), *LIKE, matrix=own)
    states = {variant["id"]: told.states(variant["id"]) for variant in told.json["variants"]}
    assert states == {
        "0": ["OK", "OK"],
        "a": ["OK", "OK"],
        "refused": ["REFUSED"],
        "late": ["REFUSED"],
        "assert": ["CRASHED", "CRASHED"],
        "nan": ["DEGENERATE", "DEGENERATE"],
    }
    quotes = {variant: told.runs(variant)[0]["quote"] for variant in states}
    assert "quantized V cache requires flash_attn" in quotes["refused"]
    assert "invalid device: RPC9" in quotes["late"]
    assert "GGML_ASSERT" in quotes["assert"]
    assert {v for name in ("refused", "late") for v in told.results("exact", name)} == {"SKIPPED"}
    assert set(told.results("exact", "nan")) == {"FAIL"}
    assert set(told.results("exact", "a")) == {"PASS"}


def test_device_without_enough_memory(
    build: Path, servers: Servers, models: dict[str, Path], tmp_path: Path
) -> None:
    """What does not fit is skipped as NO_MEMORY and not tried again; the rest is compared."""
    roomy = servers.start(build)
    with rig.little_memory():
        small = servers.start(build)
    own = matrix_file(
        tmp_path,
        'id = "big"\nname = "more than RPC1 has"\n'
        'flags = ["-dev", "RPC1", "-ngl", "99", "-c", "4000000", "-fit", "off"]',
        *VARIANTS,
    )
    told = play(build, tmp_path, flags(models, roomy, small), *LIKE, matrix=own)
    assert told.states("big") == ["NO_MEMORY"]
    assert "failed to allocate" in told.runs("big")[0]["quote"]
    assert set(told.results("exact", "big")) == {"SKIPPED"}
    assert set(told.results("exact", "b")) == {"PASS"}
    assert told.code == 0
