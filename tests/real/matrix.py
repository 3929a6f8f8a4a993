"""Runs the program on the real engine, and reads what came of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WORDS = range(405, 768)
"""Ids that are words of the tiny models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one call of the program came to."""

    code: int
    out: Path
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """``run.json``."""
        data: dict[str, Any] = json.loads((self.out / "run.json").read_text())
        return data

    @property
    def report(self) -> str:
        """``report.md``."""
        return (self.out / "report.md").read_text()

    def runs(self, variant: str) -> list[dict[str, Any]]:
        """The runs of a variant, in order of probe and repeat."""
        return [run for run in self.json["runs"] if run["variant"] == variant]

    def states(self, variant: str) -> list[str]:
        """Their states."""
        return [run["state"] for run in self.runs(variant)]

    def verdicts(self, kind: str, variant: str | None = None) -> list[dict[str, Any]]:
        """Verdicts of one kind."""
        return [
            verdict
            for verdict in self.json["verdicts"]
            if verdict["kind"] == kind and variant in {None, verdict["variant"]}
        ]

    def results(self, kind: str, variant: str | None = None) -> set[str]:
        """Their distinct results."""
        return {verdict["result"] for verdict in self.verdicts(kind, variant)}

    def effects(self) -> dict[str, str | None]:
        """The effect of each variant that was run."""
        return {v["id"]: v["effect"] for v in self.json["variants"] if v["planned"]}

    def texts(self, kind: str = "exact") -> set[str]:
        """What log-probabilities tell, over all verdicts of one kind."""
        return {
            verdict["explanation"]["text"]
            for verdict in self.verdicts(kind)
            if verdict["explanation"] is not None
        }


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
