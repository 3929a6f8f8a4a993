"""``python -m tests.bench [matrix|help|log|gguf …]``: prints one table of costs.

Machines are noisy, so each number stands beside one that was measured in the same run: the
engine's own time, a bare interpreter, ``wc -l`` on the same file.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

from hetero_test.engines.base import Asked, Survey
from hetero_test.engines.strata.adapter import Strata
from hetero_test.plan.prompts import generated
from tests.bench.peak import peak_mib
from tests.scripted import MODEL_FLAGS, script, write_build

ROOT = Path(__file__).parent.parent.parent
Row = tuple[str, str, str, str]
"""What was measured, the number, what it is held against, the aim."""


def seconds(argv: list[str], *, cwd: Path | None = None, count: int = 1) -> float:
    """Median wall time of a command."""
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        subprocess.run(argv, cwd=cwd, check=False, capture_output=True)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def matrix(folder: Path) -> list[Row]:
    """The harness's own time for 16 runs of an engine that answers at once."""
    build = write_build(folder / "build")
    sample = subprocess.run(
        [*(str(build / "strata"), *MODEL_FLAGS, "--max-new", "60"), "--tokens-file", os.devnull],
        capture_output=True,
        text=True,
        check=True,
    )
    probe = generated(count=95, seed=7, vocab=151936, max_new=60)
    echo = "prompt  : " + " ".join(map(str, probe.ids))
    (folder / "out").write_text(sample.stdout.replace("prompt  :", echo))
    (folder / "err").write_text(sample.stderr)
    (folder / "apart").write_text(sample.stderr.replace("4400", "5011"))
    script(
        build / "strata",
        f'cat "{folder}/out"\ncase "$*" in\n'
        f'*--expert-cache*) cat "{folder}/err" >&2;;\n'
        f'*--main-device*|*--auto-roles*) cat "{folder}/apart" >&2;;\n'
        f'*--help*) echo "--main-device --draft-device --auto-roles --draft-chain-batch '
        f'--draft-prefill-parallel" >&2;;\n*) cat "{folder}/err" >&2;;\nesac\n',
    )
    argv = [sys.executable, "-m", "hetero_test", "--build-dir", str(build), "--quiet"]
    total, own, runs = [], [], 0
    for turn in range(5):
        out = folder / f"run-{turn}"
        total.append(seconds([*argv, "--out", str(out), "--", *MODEL_FLAGS]))
        elapsed = _elapsed(out)
        runs = len(elapsed)
        own.append(sum(elapsed))
    spent = statistics.median(t - o for t, o in zip(total, own, strict=True))
    engine = statistics.median(own)
    aim = 0.5 + 0.010 * runs
    return [
        (
            f"matrix of {runs} runs, harness's own time",
            f"{spent:.2f} s",
            f"{spent / aim:.2f} of the aim; the engine itself took {engine:.2f} s",
            f"0.5 s + 10 ms a run = {aim:.2f} s",
        )
    ]


def _elapsed(out: Path) -> list[float]:
    import json

    return [run["elapsed_s"] for run in json.loads((out / "run.json").read_text())["runs"]]


def help_(folder: Path) -> list[Row]:
    """``--help`` against an interpreter that does nothing."""
    bare = seconds([sys.executable, "-c", "pass"], cwd=folder, count=15)
    asked = seconds([sys.executable, "-m", "hetero_test", "--help"], cwd=folder, count=15)
    return [
        (
            "--help",
            f"{asked * 1000:.0f} ms",
            f"{asked / bare:.1f} × a bare interpreter ({bare * 1000:.0f} ms)",
            "150 ms",
        )
    ]


LINES = (
    b"strata generate: position %d, 64 tokens, 64 rounds\n"
    b"strata verify: window up to 6 tokens, 74.7 MiB of device buffers\n"
    b"some other program: [INFO] 12:%02d layer 7 routed 8 of 128 experts, cache 97.1%% hit\n"
)


def log(folder: Path, *, size_bytes: int = 2**30) -> list[Row]:
    """Reading a long log against ``wc -l`` on the same file."""
    path = folder / "stderr"
    block = b"".join(LINES % (i, i % 60) for i in range(4000))
    with path.open("wb") as file:
        while file.tell() < size_bytes:
            file.write(block)
    (folder / "stdout").write_bytes(b"prompt  : 1 2\noutput  : 5 6 7\n")
    wc = seconds(["wc", "-l", str(path)], count=3)
    code = (
        "import time, sys\nfrom pathlib import Path\nfrom tests.bench.peak import peak_mib\n"
        "idle = peak_mib()\nfrom tests.bench.__main__ import read_log\n"
        "begun = time.perf_counter()\nread_log(Path(sys.argv[1]))\n"
        "print(time.perf_counter() - begun, peak_mib() - idle)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    took, memory = map(float, done.stdout.split())
    size = path.stat().st_size / 1e6
    return [
        (
            f"reading a log of {size:.0f} MB",
            f"{size / took:.0f} MB/s",
            f"{took / wc:.1f} × wc -l ({size / wc:.0f} MB/s)",
            "100 MB/s",
        ),
        ("  memory above an idle interpreter", f"{memory:.0f} MiB", "", "64 MiB"),
    ]


def read_log(folder: Path) -> None:
    """One reading, as a run of the matrix does it."""
    probe = generated(count=2, seed=7, vocab=151936, max_new=3)
    survey = Survey(devices=(), device_count=None, how="", known_flags=None)
    asked = Asked(flags=MODEL_FLAGS, env={}, probe=probe, survey=survey, folder=folder)
    reading = Strata().read(folder / "stdout", folder / "stderr", asked)
    assert reading.stream == (5, 6, 7)


def gguf(folder: Path) -> list[Row]:
    """A header with a vocabulary of 150,000 tokens and its merges."""
    from gguf import GGUFWriter

    from hetero_test.triage.model.from_gguf import read_model_file

    path = folder / "model.gguf"
    writer = GGUFWriter(str(path), "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(64)
    writer.add_head_count(4)
    writer.add_token_list([f"token{i}" for i in range(150_000)])
    writer.add_token_merges([f"tok en{i}" for i in range(150_000)])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    before = peak_mib()
    begun = time.perf_counter()
    read_model_file(path)
    took = time.perf_counter() - begun
    memory = peak_mib() - before
    read = seconds(["wc", "-c", str(path)], count=3)
    return [
        (
            "GGUF header of 150,000 tokens",
            f"{took:.2f} s",
            f"{took / read:.0f} × wc -c on the file",
            "",
        ),
        ("  memory for it", f"{memory:.0f} MiB", "", "300 MiB"),
    ]


SECTIONS: dict[str, Callable[[Path], list[Row]]] = {
    "matrix": matrix,
    "help": help_,
    "log": log,
    "gguf": gguf,
}


def main() -> None:
    """Run the sections that are asked for, and print one table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("section", nargs="*", choices=[*SECTIONS, []], help="default: all")
    chosen = parser.parse_args().section or list(SECTIONS)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as compiled:
        # An installed harness is compiled, a checkout may not be: both are measured alike.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ |= {"PYTHONPATH": str(ROOT / "harness"), "PYTHONPYCACHEPREFIX": compiled}
        for name in chosen:
            with tempfile.TemporaryDirectory() as folder:
                rows += SECTIONS[name](Path(folder))
    headers = ("what", "measured", "against", "aim")
    print(tabulate(rows, headers, tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    main()
