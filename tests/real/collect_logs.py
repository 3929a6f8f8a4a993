"""Writes the logs that the parser's tests read: ``python -m tests.real.collect_logs``.

Each is the log of one run of the real engine, with its answer beside it where there is one.
Folders and ports are replaced, so that the files are the same wherever they are made, and debug
lines that tell of the server's inner life are left out, but for ``cpu.log``, which is whole.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp import demo
from hetero_test.engines.llama_cpp.adapter import LlamaCpp
from hetero_test.engines.llama_cpp.reply import FILE
from hetero_test.engines.llama_cpp.tiny_models import write_models
from hetero_test.launch.process import launch
from hetero_test.launch.request import ProcessLimits, Request
from hetero_test.values.run import Probe
from tests.real import rig
from tests.real.other_protocol import other_protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

LOGS = Path(__file__).parents[1] / "engines" / "llama_cpp" / "logs"
IDS = tuple(405 + 37 * number % 363 for number in range(25))
DENSE, MOE = ("-m", "dense-f32.gguf"), ("-m", "moe-f32.gguf")
DRAFT = ("-md", "draft-f32.gguf", "--spec-type", "draft-simple")
EXPERTS = r"\.ffn_(up|gate|down|gate_up)_(ch|)exps\.=RPC0[127.0.0.1:{1}]"

RUNS: dict[str, tuple[str, ...]] = {
    "cpu": (*DENSE, "-dev", "none"),
    "rpc0": (*MOE, "-dev", "RPC0", "-ngl", "99"),
    "split": (*DENSE, "-dev", "RPC0,RPC1", "-ngl", "99", "-sm", "layer", "-ts", "1,1"),
    "half": (*DENSE, "-dev", "RPC0", "-ngl", "2"),
    "experts-apart": (*MOE, "-dev", "RPC0,RPC1", "-ngl", "99", "-ts", "1,0", "-ot", EXPERTS),
    "tensor-split": (*DENSE, "-dev", "RPC0,RPC1", "-ngl", "99", "-sm", "tensor"),
    "kv-on-cpu": (*DENSE, "-dev", "RPC0", "-ngl", "99", "-nkvo"),
    "repack": ("-m", "moe-q4_0.gguf", "-dev", "none"),
    "no-repack": ("-m", "moe-q4_0.gguf", "-dev", "none", "--no-repack"),
    "draft-other": (*DENSE, *DRAFT, "-dev", "RPC0", "-ngl", "99", "-devd", "RPC1"),
    "draft-swapped": (*DENSE, *DRAFT, "-dev", "RPC1", "-ngl", "99", "-devd", "RPC0"),
    "draft-cpu": (*DENSE, *DRAFT, "-dev", "RPC0", "-ngl", "99", "-devd", "none"),
    "draft-unused": (*DENSE, *DRAFT[:2], "-dev", "RPC0", "-ngl", "99", "-devd", "RPC1"),
    "not-a-number": (*DENSE, "-dev", "none", "--rope-freq-base", "-1", "--rope-scaling", "yarn"),
    "unknown-argument": (*DENSE, "--bogus"),
    "unknown-device": (*DENSE, "-dev", "RPC9"),
    "unknown-buffer": (*DENSE, "-ot", "attn=Bogus"),
    "quantized-v": (*DENSE, "-dev", "none", "-ctk", "q8_0", "-ctv", "q4_0", "-fa", "off"),
    "row-split": (*DENSE, "-dev", "RPC0,RPC1", "-sm", "row"),
    "no-mtp": (*DENSE, "-dev", "none", "--spec-type", "draft-mtp"),
    "no-model": ("-m", "missing.gguf"),
    "no-draft-model": (*DENSE, "-dev", "none", "-md", "missing.gguf", *DRAFT[2:]),
    "assert": (*DENSE, "-dev", "none", "-b", "0"),
    "buffer-abort": (*DENSE, "-dev", "none", "-ot", "output=RPC0[127.0.0.1:{0}]"),
    "split-lv4": (*DENSE, "-dev", "RPC0,RPC1", "-ngl", "99", "-sm", "layer", "-ts", "1,1"),
}
WHOLE = ("cpu",)
INNER_LIFE = re.compile(
    rb"^[\d.]+ D (?!load_tensors|tensor|llama_kv|done_getting|repack).*\n", re.M
)
BUILT_FROM = re.compile(rb"/home/\S*/llama\.cpp/")


def main() -> None:
    """Make every log anew."""
    os.environ["GGML_NO_BACKTRACE"] = "1"
    lib = rig.engine_lib()
    build = rig.build_folder(lib, lib.parent / "builds" / "haswell", "haswell")
    LOGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        models = Path(scratch) / "models"
        write_models(models)
        ports = [demo.free_port(), demo.free_port()]
        for number, port in enumerate(ports):
            log = Path(scratch) / f"rpc{number}"
            stack.enter_context(demo.serving(build / demo.BINARY, port, log=log))
        addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
        for name, flags in RUNS.items():
            given = [
                flag.replace("{0}", str(ports[0])).replace("{1}", str(ports[1])) for flag in flags
            ]
            run(name, build, models, ("--rpc", addresses, *given), ports)
        down = demo.free_port()
        run("rpc-down", build, models, (*DENSE, "--rpc", f"127.0.0.1:{down}"), [down])
        with other_protocol() as port:
            run("rpc-protocol", build, models, (*DENSE, "--rpc", f"127.0.0.1:{port}"), [port])
        small = _small_server(stack, build, Path(scratch))
        for name, context in (("rpc-no-memory", "4000000"), ("rpc-fits", "512")):
            flags = (*DENSE, "--rpc", f"127.0.0.1:{small}", "-dev", "RPC0", "-ngl", "99")
            run(name, build, models, (*flags, "-fit", "off", "-c", context), [small])


def _small_server(stack: ExitStack, build: Path, scratch: Path) -> int:
    """An RPC server that may not have more than 1 GiB."""
    port = demo.free_port()
    with rig.little_memory():
        stack.enter_context(demo.serving(build / demo.BINARY, port, log=scratch / "small"))
    return port


def run(name: str, build: Path, models: Path, flags: Sequence[str], ports: Sequence[int]) -> None:
    """One run of the engine; its log and answer are kept."""
    engine = LlamaCpp()
    probe = Probe(name="default", ids=IDS, max_new=8)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        command = engine.command(engine.find(build), (*flags, "-t", "1"), probe, probe_file=place)
        if name.endswith("-lv4"):
            command = tuple("4" if word == "5" else word for word in command)
        outcome = launch(
            Request(
                argv=command,
                cwd=models,
                stdout=place / "stdout",
                stderr=place / "stderr",
                limits=ProcessLimits(run_s=120, idle_s=60),
                mark=f"collect/{name}",
                dialogue=engine.dialogue(command, probe, place),
            )
        )
        names = {str(build): "/build", str(models): "/models", str(place): "/run"}
        names |= {f"127.0.0.1:{p}": f"127.0.0.1:{50052 + n}" for n, p in enumerate(ports)}
        log = (place / "stderr").read_bytes() + (place / "stdout").read_bytes()
        log = BUILT_FROM.sub(b"", log if name in WHOLE else INNER_LIFE.sub(b"", log))
        for text, instead in names.items():
            log = log.replace(text.encode(), instead.encode())
        (LOGS / f"{name}.log").write_bytes(log)
        reply = LOGS / f"{name}.reply.json"
        reply.unlink(missing_ok=True)
        if (place / FILE).exists():
            shutil.copy(place / FILE, reply)
        print(name, outcome.exit_code, outcome.signal, outcome.dialogue_error)


if __name__ == "__main__":
    main()
