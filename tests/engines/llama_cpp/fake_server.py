"""A llama-server that answers as its scenario says; copied into a build folder as an executable.

The scenario is the value of ``FAKE_SCENARIO``. Every one but ``early-*`` listens on the port that
the kernel gives it, as the real one does with ``--port 0``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SCENARIO = os.environ.get("FAKE_SCENARIO", "good")
LOG = Path(__file__).resolve().with_name("answer.log")
DEVICES = """\
load_backend: loaded X backend from libx.so
Available devices:
  CUDA0: NVIDIA GeForce RTX 3090 (24105 MiB, 24000 MiB free)
  CUDA1: NVIDIA GeForce RTX 3060 (12000 MiB, 11000 MiB free)
"""
HELP = """\
----- common params -----
-m,    --model FNAME                    model path to load (see --not-a-flag)
-dev,  --device <dev1,dev2,..>          comma-separated list of devices
                                        (env: LLAMA_ARG_DEVICE)
--api-prefix PREFIX                     prefix path the server serves from
                                        (env: LLAMA_ARG_API_PREFIX)
-ngl,  --gpu-layers, --n-gpu-layers N   layers to store in VRAM
                                        --hf-repo is no flag of this line
--spec-type none,draft-simple           way of speculation
"""


def main() -> int:
    """Do what the scenario and the arguments say."""
    words = sys.argv[1:]
    if "--list-devices" in words:
        return listing(words)
    if "--help" in words or "--version" in words:
        print(HELP if "--help" in words else "version: 1 (abc)\nbuilt with X")
        return 0
    sys.stderr.write(LOG.read_text() if LOG.exists() else "")
    if SCENARIO == "early-refusal":
        print("error: invalid argument: --bogus", file=sys.stderr)
        return 1
    if SCENARIO == "early-assert":
        print("a.cpp:1: GGML_ASSERT(x) failed", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGABRT)
    if SCENARIO == "early-words":
        print(os.environ["FAKE_WORDS"], file=sys.stderr, flush=True)
        return 1
    if SCENARIO == "early-hang":
        time.sleep(600)
    serve()
    return 0


def listing(words: list[str]) -> int:
    """The device list, or what an RPC server that is down makes of it."""
    if "--rpc" in words:
        print("ggml-rpc.cpp:547: Failed to connect to 127.0.0.1:1", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGABRT)
    print(DEVICES if SCENARIO != "bare" else "Available devices:\n  (none)")
    return 0


class Handler(BaseHTTPRequestHandler):
    """Health and completion."""

    asked_health = 0

    def do_GET(self) -> None:
        """Loading at first, then ready; in one scenario never."""
        Handler.asked_health += 1
        ready = Handler.asked_health > 2 and SCENARIO != "never-ready"
        body = b'{"status":"ok"}' if ready else b'{"error":{"message":"Loading model"}}'
        self._answer(200 if ready else 503, body)

    def do_POST(self) -> None:
        """The answer, as the scenario has it."""
        length = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(length))
        tokens = [405 + n * n % 97 for n in range(request["n_predict"])]
        match SCENARIO:
            case "hang":
                time.sleep(600)
            case "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
                time.sleep(600)
            case "error":
                self._answer(400, b'{"error":{"code":400,"message":"the request is too long"}}')
            case "page":
                self._answer(500, b"<html>no json</html>")
            case "nothing":
                self._answer(200, b"")
            case "empty":
                self._answer(200, b'{"content":"","tokens":[]}')
            case "deep":
                self._answer(200, b"[" * 100_000)
            case "digits":
                self._answer(200, b'{"tokens":[' + b"9" * 5000 + b"]}")
            case "deep-error":
                self._answer(500, b'{"error":' * 100_000)
            case "odd-error":
                self._answer(400, b'{"error":{"message":"half \\ud800 of a pair"}}')
            case "redirect":
                self.send_response(307)
                self.send_header("Location", "http://127.0.0.1:1/completion")
                self.end_headers()
            case "wrong-prompt":
                self._answer(200, json.dumps({"tokens": tokens, "tokens_evaluated": 3}).encode())
            case _:
                self._answer(200, _good(request, tokens))

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Nothing: the log is the engine's."""


def _good(request: dict[str, list[int]], tokens: list[int]) -> bytes:
    prompt = len(request["prompt"])
    return json.dumps({"tokens": tokens, "tokens_evaluated": prompt, "stop_type": "limit"}).encode()


def serve() -> None:
    """Listen until a signal comes."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True

        def stop(*_: object) -> None:
            threading.Thread(target=server.shutdown).start()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN if SCENARIO == "ignores-signals" else stop)
        server.serve_forever(poll_interval=0.02)


if __name__ == "__main__":
    sys.exit(main())
