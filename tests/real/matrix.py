"""Runs the program on the real engine, and reads what came of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.rigs import Told

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WORDS = range(405, 768)
"""Ids that are words of the tiny models."""


def prompt(count: int, *, first: int = 0, step: int = 37) -> tuple[int, ...]:
    """Ids of words."""
    return tuple(WORDS[(first + step * number) % len(WORDS)] for number in range(count))


def play(
    build: Path,
    folder: Path,
    flags: Sequence[str],
    *options: str,
    prompts: Iterable[Sequence[int]] = (prompt(25),),
    matrix: str | Path = "llama_cpp",
    max_new: int = 32,
) -> Told:
    """Run a matrix of the real engine, with one thread a process."""
    files: list[str] = []
    for number, ids in enumerate(prompts):
        path = folder / f"prompt{number}.txt"
        path.write_text(" ".join(map(str, ids)) + "\n")
        files += ["--tokens-file", str(path)]
    out = folder / "out"
    command = [sys.executable, "-m", "hetero_test", "--build-dir", str(build), "--out", str(out)]
    command += ["--matrix", str(matrix), "--max-new", str(max_new), "--quiet", *files, *options]
    done = subprocess.run(
        [*command, "--", "-t", "1", *flags],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Told(code=done.returncode, out=out, stdout=done.stdout, stderr=done.stderr)


def matrix_file(folder: Path, *variants: str) -> Path:
    """A user's own matrix: each variant as the body of its table."""
    path = folder / "own.toml"
    tables = "\n".join(f"[[variant]]\n{body}\n" for body in variants)
    path.write_text(f'engine = "llama_cpp"\n{tables}')
    return path
