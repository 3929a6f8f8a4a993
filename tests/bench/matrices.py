"""What a matrix costs beside its engine, which answers at once.

Beside each number stands a plain shell loop that launches the same engine as often.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from hetero_test.plan.prompts import generated
from tests.scripted import MODEL_FLAGS, script, write_build

Row = tuple[str, str, str, str]
"""What was measured, the number, what it is held against, the aim."""

KNOWN = "--main-device --draft-device --auto-roles --draft-chain-batch --draft-prefill-parallel"
MEASURED = (
    "import sys, time\nfrom pathlib import Path\nfrom tests.bench.peak import peak_mib\n"
    "from hetero_test.cli.main import main\n"
    "main(sys.argv[2:])\n"
    "Path(sys.argv[1]).write_text(f'{peak_mib()} {time.process_time()}')\n"
)
ROOT = Path(__file__).parents[2]


def ready_engine(folder: Path, *, length: int = 60, distinct: bool = False) -> Path:
    """A build whose engine prints at once what the scripted one said before.

    Args:
        folder: a new folder.
        length: ids of the stream.
        distinct: no two launches print the same stream, so that nothing can be kept once.
    """
    build = write_build(folder)
    probe = generated(count=95, seed=7, vocab=151936, max_new=length)
    prompt = folder / "prompt.txt"
    prompt.write_text(probe.text)
    argv = [str(build / "strata"), *MODEL_FLAGS, "--max-new", str(length)]
    told = subprocess.run(
        [*argv, "--tokens-file", str(prompt)], capture_output=True, text=True, check=True
    )
    (folder / "out").write_text(told.stdout)
    (folder / "err").write_text(told.stderr)
    (folder / "apart").write_text(told.stderr.replace("4400", "5011"))
    out, err, apart = (shlex.quote(str(folder / name)) for name in ("out", "err", "apart"))
    tell = f'sed "s/^output  : [0-9]* /output  : $$ /" {out}' if distinct else f"cat {out}"
    script(
        build / "strata",
        f'case "$*" in\n*--help*) echo "{KNOWN}" >&2; exit;;\n'
        f"*--expert-cache*) cat {err} >&2;;\n"
        f"*--main-device*|*--auto-roles*) cat {apart} >&2;;\n"
        f"*) cat {err} >&2;;\nesac\nexec {tell}\n",
    )
    return build


def matrix_file(folder: Path, *, variants: int) -> Path:
    """A matrix of so many variants beside the baseline, every second one at another residency."""
    lines = ['engine = "strata"', 'owns = ["--main-device", "--draft-device"]', "[baseline]"]
    lines.append('id = "0"')
    for number in range(1, variants + 1):
        flags = '["--main-device", "0", "--draft-device", "1"]' if number % 2 else "[]"
        lines += ["[[variant]]", f'id = "{number}"', f'name = "variant {number}"']
        lines += [f"flags = {flags}", f'env = {{ BENCH = "{number}" }}']
    path = folder / "bench.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def loop_s(build: Path, count: int, folder: Path) -> float:
    """Wall time of a shell loop that launches the engine ``count`` times into files."""
    command = shlex.join([str(build / "strata"), *MODEL_FLAGS])
    text = f"for i in $(seq {count}); do {command} >out-$i 2>err-$i </dev/null; done"
    begun = time.perf_counter()
    subprocess.run(["sh", "-c", text], cwd=folder, check=True)
    return time.perf_counter() - begun


@dataclass(frozen=True)
class Cost:
    """What one matrix took.

    Attributes:
        wall_s: from start to end, engines included.
        cpu_s: of the harness alone; a busy machine does not change it.
        peak_mib: of the harness alone.
    """

    wall_s: float
    cpu_s: float
    peak_mib: float


def play(build: Path, out: Path, *options: str) -> Cost:
    """Run one matrix in a process of its own."""
    peak = out.with_suffix(".peak")
    argv = ["--build-dir", str(build), "--quiet", "--out", str(out), *options, "--", *MODEL_FLAGS]
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(peak), *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'harness'}:{ROOT}"},
    )
    took = time.perf_counter() - begun
    if not peak.exists():
        raise RuntimeError(done.stdout + done.stderr)
    mib, cpu = map(float, peak.read_text().split())
    return Cost(wall_s=took, cpu_s=cpu, peak_mib=mib)


def between_runs_ms(out: Path) -> list[float]:
    """What passed between one launch and the next without the engine, in order of launch."""
    runs: list[dict[str, Any]] = json.loads((out / "run.json").read_text())["runs"]
    times = sorted(
        (datetime.fromisoformat(run["started"]).timestamp(), run["elapsed_s"]) for run in runs
    )
    return [1000 * (after - before - elapsed) for (before, elapsed), (after, _) in pairwise(times)]


def short(folder: Path) -> list[Row]:
    """The harness's own time for a matrix of 16 runs: what the loop would not have needed."""
    build = ready_engine(folder / "build")
    own, ratio, cpu = [], [], []
    runs = 0
    for turn in range(5):
        out = folder / f"run-{turn}"
        cost = play(build, out)
        runs = len(json.loads((out / "run.json").read_text())["runs"])
        loop = loop_s(build, runs, folder)
        own.append(cost.wall_s - loop)
        ratio.append(cost.wall_s / loop)
        cpu.append(cost.cpu_s)
    return [
        (
            f"matrix of {runs} runs, the harness's own time",
            f"{statistics.median(own):.2f} s",
            f"{statistics.median(cpu):.2f} s of it on the CPU; "
            f"the whole is {statistics.median(ratio):.1f} × a shell loop over the engine",
            "0.50 s",
        )
    ]


def growing(folder: Path) -> list[Row]:
    """What a run costs early and late in a matrix of 200 variants and 5 repeats."""
    build = ready_engine(folder / "build")
    path = matrix_file(folder, variants=199)
    out = folder / "run"
    cost = play(build, out, "--matrix", str(path), "--repeats", "5")
    each = between_runs_ms(out)
    early, late = statistics.mean(each[10:30]), statistics.mean(each[950:])
    loop = loop_s(build, 200, folder) / 200 * 1000
    return [
        (
            "between two runs at run 20, of 200 variants × 5",
            f"{early:.1f} ms",
            f"{early / loop:.1f} × a launch in a shell loop ({loop:.1f} ms)",
            "",
        ),
        (
            "between two runs at run 1,000",
            f"{late:.1f} ms",
            f"{late / early:.1f} × that at run 20",
            "20 ms, 2.0 ×",
        ),
        (
            f"  all {len(each) + 1} runs",
            f"{cost.wall_s:.1f} s",
            f"{1000 * cost.wall_s / (len(each) + 1) / loop:.1f} × the loop; "
            f"{1000 * cost.cpu_s / (len(each) + 1):.1f} ms of CPU a run",
            "",
        ),
        ("  peak memory", f"{cost.peak_mib:.0f} MiB", "", ""),
    ]


def long(folder: Path) -> list[Row]:
    """What a run costs whose stream is long: 22 commands, 5 repeats, 32,000 tokens each."""
    build = ready_engine(folder / "build", length=32_000)
    path = matrix_file(folder, variants=21)
    out = folder / "run"
    options = ("--matrix", str(path), "--repeats", "5", "--max-new", "32000")
    known = play(build, out, *options)
    each = between_runs_ms(out)
    loop = loop_s(build, 110, folder) / 110 * 1000
    other = ready_engine(folder / "distinct", length=32_000, distinct=True)
    worst = play(other, folder / "other", *options)
    mean = statistics.mean(each)
    return [
        (
            f"between two runs with streams of 32,000 tokens, {len(each) + 1} runs",
            f"{mean:.0f} ms",
            f"{mean / loop:.1f} × a launch in a shell loop ({loop:.1f} ms); "
            f"{1000 * known.cpu_s / (len(each) + 1):.0f} ms of CPU a run in all",
            "50 ms",
        ),
        ("  peak memory", f"{known.peak_mib:.0f} MiB", "", "150 MiB"),
        (
            "  peak memory where no two streams are equal",
            f"{worst.peak_mib:.0f} MiB",
            "",
            "150 MiB",
        ),
    ]
