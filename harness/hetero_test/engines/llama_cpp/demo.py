"""``hetero-test demo --engine llama_cpp``: what it needs beside a llama.cpp build of the user's.

:func:`prepared` takes a build folder and gives flags for tiny models that it writes, and for
devices: the machine's own, or, where it has no accelerator, RPC servers of that build, which
:func:`serving` starts on this machine and ends again.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hetero_test.engines.llama_cpp.adapter import LlamaCpp
from hetero_test.errors import EngineNotFoundError, NothingToCompareError, UsageError
from hetero_test.launch.leftovers import dying_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path


MODEL: Final = "moe-f32"
DRAFT: Final = "draft-f32"
TOKENS: Final = 25
SEED: Final = 7
_FIRST_WORD: Final = 405
"""Ids below it are no words of the tiny models."""
_SERVERS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoParts:
    """What the demo runs.

    Attributes:
        model_flags: of the tiny models, with devices of the demo's own where it brings any.
        kinds: (device, kind) of each device that it brings.
    """

    model_flags: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...] = ()


@contextmanager
def prepared(build_dir: Path, more_flags: Sequence[str], place: Path) -> Iterator[DemoParts]:
    """Write what the demo runs; holds the devices that it brings while the block runs.

    A build that finds no accelerator is given two RPC servers of its own on this machine: real
    devices with memory of their own, that compute as the CPU does.

    Args:
        build_dir: holds ``llama-server``.
        more_flags: of the user, behind the demo's own.
        place: folder for models and logs.

    Raises:
        NothingToCompareError: a package is missing, or there is no device and no RPC server.
        EngineNotFoundError: there is no build.
    """
    models = _models(place)
    engine = LlamaCpp()
    binaries = engine.find(build_dir)
    own = ("-m", str(models[MODEL]), "-md", str(models[DRAFT]), "--spec-type", "draft-simple")
    flags = (*own, "-t", "1", *more_flags)
    with ExitStack() as servers:
        if engine.survey(binaries, flags, devices=None, kinds={}, fast=None).devices:
            yield DemoParts(model_flags=flags)
            return
        ports = [free_port() for _ in range(_SERVERS)]
        for number, port in enumerate(ports):
            log = place / f"rpc{number}.log"
            servers.enter_context(serving(_server(binaries.engine), port, log=log))
        addresses = ",".join(f"{HOST}:{port}" for port in ports)
        yield DemoParts(
            model_flags=(*flags, "--rpc", addresses, "-dev", "none"),
            # Both are of this very build and run on this very CPU.
            kinds=tuple((f"RPC{number}", "CPU") for number in range(_SERVERS)),
        )


def _models(place: Path) -> dict[str, Path]:
    try:
        from hetero_test.engines.llama_cpp.tiny_models import TINY_MODELS, write_models
    except ImportError as error:
        raise NothingToCompareError(
            "making the tiny models needs the packages gguf and numpy",
            hint="install them with: pip install 'hetero-test[llama]'",
        ) from error
    assert {MODEL, DRAFT} <= set(TINY_MODELS)
    return write_models(place, (MODEL, DRAFT))


def _server(engine: Path) -> Path:
    binary = engine.with_name(BINARY + engine.suffix)
    if not binary.is_file():
        raise NothingToCompareError(
            f"this build lists no device, and {engine.parent} holds no {BINARY}",
            hint="build with a GPU backend, or with -DGGML_RPC=ON",
        )
    return binary


def write_prompt(place: Path, *, tokens: int | None, seed: int | None) -> Path:
    """A file of so many ids that are words of the tiny models; None is the demo's own number."""
    from hetero_test.engines.llama_cpp.tiny_models import TINY_MODELS

    draw = random.Random(SEED if seed is None else seed)
    words = range(_FIRST_WORD, TINY_MODELS[MODEL].n_vocab)
    path = place / "prompt.txt"
    ids = (str(draw.choice(words)) for _ in range(tokens or TOKENS))
    path.write_text(" ".join(ids) + "\n", encoding="ascii")
    return path


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
