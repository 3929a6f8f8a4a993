"""Real logs of llama.cpp, and what lines say."""

from __future__ import annotations

import io
from pathlib import Path

from hetero_test.engines.llama_cpp.log import LlamaLog
from hetero_test.engines.llama_cpp.reader import read

LOGS = Path(__file__).with_name("logs")
RPC0, RPC1 = "RPC0[127.0.0.1:50052]", "RPC0[127.0.0.1:50053]"


def log(name: str) -> LlamaLog:
    """A real log."""
    with (LOGS / f"{name}.log").open("rb") as stream:
        return read(stream)


def said(*lines: str) -> LlamaLog:
    """What some lines say."""
    return read(io.BytesIO("\n".join(lines).encode()))
