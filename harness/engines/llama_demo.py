"""``hetero-test demo --engine llama_cpp``: a build of the user's own with tiny models."""

from __future__ import annotations

import random
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from harness.engines import llama_rpc
from harness.engines.llama_cpp import LlamaCpp
from harness.errors import NothingToCompareError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
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
            ports = [llama_rpc.free_port() for _ in range(_SERVERS)]
            for number, port in enumerate(ports):
                log = place / f"rpc{number}.log"
                servers.enter_context(llama_rpc.serving(_server(binaries.engine), port, log=log))
            addresses = ",".join(f"{llama_rpc.HOST}:{port}" for port in ports)
            flags += ["--rpc", addresses, "-dev", "none"]
            # Both are of this very build and run on this very CPU.
            args.device_kind = [(f"RPC{number}", "CPU") for number in range(_SERVERS)]
        args.engine_flags = tuple(flags)
        if not args.tokens_file:
            args.tokens_file = [_prompt(place, args)]
        yield


def _models(place: Path) -> dict[str, Path]:
    try:
        from harness.tiny_models import TINY_MODELS, write_models
    except ImportError as error:
        raise NothingToCompareError(
            "making the tiny models needs the packages gguf and numpy",
            hint="install them with: pip install 'hetero-test[llama]'",
        ) from error
    assert {MODEL, DRAFT} <= set(TINY_MODELS)
    return write_models(place, (MODEL, DRAFT))


def _server(engine: Path) -> Path:
    binary = engine.with_name(llama_rpc.BINARY + engine.suffix)
    if not binary.is_file():
        raise NothingToCompareError(
            f"this build lists no device, and {engine.parent} holds no {llama_rpc.BINARY}",
            hint="build with a GPU backend, or with -DGGML_RPC=ON",
        )
    return binary


def _prompt(place: Path, args: argparse.Namespace) -> Path:
    """Words of the tiny models, drawn as the options say."""
    draw = random.Random(SEED if args.seed is None else args.seed)
    from harness.tiny_models import TINY_MODELS

    words = range(_FIRST_WORD, TINY_MODELS[MODEL].n_vocab)
    path = place / "prompt.txt"
    ids = (str(draw.choice(words)) for _ in range(args.tokens or TOKENS))
    path.write_text(" ".join(ids) + "\n", encoding="ascii")
    return path
