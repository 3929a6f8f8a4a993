"""``hetero-test demo --engine llama_cpp``: a build of the user's own with tiny models.

RPC servers of llama.cpp on this machine: devices for who has no accelerator.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from hetero_test.engines.llama_cpp.adapter import LlamaCpp
from hetero_test.errors import EngineNotFoundError, NothingToCompareError, UsageError
from hetero_test.launch.leftovers import dying_with_parent

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from pathlib import Path


MODEL: Final = "moe-f32"
DRAFT: Final = "draft-f32"
TOKENS: Final = 25
SEED: Final = 7
_FIRST_WORD: Final = 405
"""Ids below it are no words of the tiny models."""
_SERVERS: Final = 2


@contextmanager
def prepared(args: argparse.Namespace, place: Path) -> Iterator[None]:
    """Fill in what the demo runs; holds the devices that it brings while the block runs.

    A build that finds no accelerator is given two RPC servers of its own on this machine: real
    devices with memory of their own, that compute as the CPU does.

    Args:
        args: options of ``run``; matrix, prompt and model flags are set.
        place: folder for models, prompt and logs.

    Raises:
        NothingToCompareError: a package is missing, or there is no device and no RPC server.
        EngineNotFoundError: there is no build.
    """
    models = _models(place)
    engine = LlamaCpp()
    binaries = engine.find(args.build_dir)
    args.matrix = "llama_cpp"
    flags = ["-m", str(models[MODEL]), "-md", str(models[DRAFT]), "--spec-type", "draft-simple"]
    flags += ["-t", "1", *(args.engine_flags or ())]
    with ExitStack() as servers:
        found = engine.survey(binaries, flags, devices=None, kinds={}, fast=None)
        if not found.devices:
            ports = [free_port() for _ in range(_SERVERS)]
            for number, port in enumerate(ports):
                log = place / f"rpc{number}.log"
                servers.enter_context(serving(_server(binaries.engine), port, log=log))
            addresses = ",".join(f"{HOST}:{port}" for port in ports)
            flags += ["--rpc", addresses, "-dev", "none"]
            # Both are of this very build and run on this very CPU.
            args.device_kind = [(f"RPC{number}", "CPU") for number in range(_SERVERS)]
        args.engine_flags = tuple(flags)
        if not args.tokens_file:
            args.tokens_file = [_prompt(place, args)]
        yield


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


def _prompt(place: Path, args: argparse.Namespace) -> Path:
    """Words of the tiny models, drawn as the options say."""
    draw = random.Random(SEED if args.seed is None else args.seed)
    from hetero_test.engines.llama_cpp.tiny_models import TINY_MODELS

    words = range(_FIRST_WORD, TINY_MODELS[MODEL].n_vocab)
    path = place / "prompt.txt"
    ids = (str(draw.choice(words)) for _ in range(args.tokens or TOKENS))
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
