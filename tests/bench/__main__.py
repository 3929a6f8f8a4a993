"""``python -m tests.bench [short|growing|long|help|log|gguf|install …]``: one table of costs.

Machines are noisy, so each number stands beside one that was measured in the same run: the
same engine in a shell loop, a bare interpreter, ``wc -l`` on the same file.
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

from hetero_test.engines.base import LaunchedCell, Survey
from hetero_test.engines.strata.adapter import Strata
from hetero_test.plan.prompts import generated
from tests.bench.matrices import Row, growing, long, short
from tests.bench.peak import peak_mib
from tests.scripted import MODEL_FLAGS

ROOT = Path(__file__).parent.parent.parent


def seconds(argv: list[str], *, cwd: Path | None = None, count: int = 1) -> float:
    """Median wall time of a command."""
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        subprocess.run(argv, cwd=cwd, check=False, capture_output=True)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def help_(folder: Path) -> list[Row]:
    """``--help`` against an interpreter that does nothing."""
    bare = seconds([sys.executable, "-c", "pass"], cwd=folder, count=15)
    asked = seconds([sys.executable, "-m", "hetero_test", "--help"], cwd=folder, count=15)
    return [
        (
            "--help",
            f"{asked * 1000:.0f} ms",
            f"{asked / bare:.1f} × a bare interpreter ({bare * 1000:.0f} ms)",
            "100 ms",
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
    asked = LaunchedCell(flags=MODEL_FLAGS, env={}, probe=probe, survey=survey, folder=folder)
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


def install(folder: Path) -> list[Row]:
    """What an installation without extras takes, and what of that is this program."""
    place = folder / "installed"
    argv = [sys.executable, "-m", "pip", "install", "-q", "--target", str(place), str(ROOT)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        return [("installed without extras", "unknown", done.stderr.splitlines()[-1][:60], "")]
    own = _size_mb(place / "hetero_test")
    parts = sorted(((_size_mb(path), path.name) for path in place.iterdir()), reverse=True)
    largest = ", ".join(f"{name} {size:.0f}" for size, name in parts[:4])
    told = f"{own:.1f} MB of it is this program; {largest}"
    return [("installed without extras", f"{_size_mb(place):.0f} MB", told, "")]


def _size_mb(path: Path) -> float:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


SECTIONS: dict[str, Callable[[Path], list[Row]]] = {
    "short": short,
    "growing": growing,
    "long": long,
    "help": help_,
    "log": log,
    "gguf": gguf,
    "install": install,
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
