"""``python -m tests.real.bench``: what the harness adds to the real engine's own time.

Runs the shipped matrix on two RPC devices with a model of 38 million parameters, small for a real
one and large enough that the engine has something to do, and prints the whole time, the engine's
share of it, and the harness's.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tabulate import tabulate

from hetero_test.engines.llama_cpp import demo
from hetero_test.engines.llama_cpp.tiny_models import TinyModel, write_model
from tests.real import rig
from tests.real.matrix import play

MODEL = TinyModel(n_embd=512, n_head=8, n_head_kv=4, n_ff=1536, n_layer=12, n_vocab=2048, gain=0.3)
MAX_NEW = 60
AIM = 0.10


def main() -> None:
    """Run and print."""
    os.environ["GGML_NO_BACKTRACE"] = "1"
    lib = rig.engine_lib()
    variant = rig.cpu_variants()[0]
    build = rig.build_folder(lib, lib.parent / "builds" / variant, variant)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        folder = Path(scratch)
        model = folder / "model.gguf"
        write_model(MODEL, model)
        ports = [demo.free_port(), demo.free_port()]
        for number, port in enumerate(ports):
            log = folder / f"rpc{number}"
            stack.enter_context(demo.serving(build / demo.BINARY, port, log=log))
        addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
        begun = time.perf_counter()
        told = play(
            build,
            folder,
            ["-m", str(model), "--rpc", addresses, "-dev", "none"],
            *("--device-kind", "RPC0=CPU", "--device-kind", "RPC1=CPU"),
            max_new=MAX_NEW,
        )
        whole = time.perf_counter() - begun
        found = told.json
    runs = found["runs"]
    engine = sum(run["elapsed_s"] for run in runs)
    share = (whole - engine) / whole
    rows = [
        ("conclusion", found["conclusion"], "PASS"),
        ("runs, tokens each", f"{len(runs)}, {MAX_NEW}", ""),
        ("whole matrix", f"{whole:.1f} s", "under 120 s"),
        ("the engine's processes", f"{engine:.1f} s", ""),
        ("the harness's share", f"{share:.1%}", f"under {AIM:.0%}"),
        ("load of the machine after", f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", ""),
    ]
    print(tabulate(rows, headers=("what", "measured", "aim"), disable_numparse=True))


if __name__ == "__main__":
    main()
