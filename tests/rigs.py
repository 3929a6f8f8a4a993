"""Runs the program on a scripted rig, and reads what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hetero_test.cli.main import main
from tests.scripted import MODEL_FLAGS, Rule, launches, write_build


@dataclass(frozen=True, kw_only=True)
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
        """The states of a variant's runs."""
        return [run["state"] for run in self.runs(variant)]

    def verdicts(self, kind: str, variant: str | None = None) -> list[dict[str, Any]]:
        """Verdicts of one kind, of one variant or of all."""
        return [
            verdict
            for verdict in self.json["verdicts"]
            if verdict["kind"] == kind and variant in {None, verdict["variant"]}
        ]

    def results(self, kind: str, variant: str | None = None) -> list[str]:
        """The results of these verdicts."""
        return [verdict["result"] for verdict in self.verdicts(kind, variant)]

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


@dataclass(frozen=True, kw_only=True)
class Played(Told):
    """The same of a scripted engine, whose build tells what was launched."""

    build: Path

    @property
    def launches(self) -> list[list[str]]:
        """Argument vectors of the engine's launches."""
        return launches(self.build)


def stored(out: Path) -> dict[str, int]:
    """Stored runs with the moment at which each was written, in nanoseconds."""
    return {
        str(path.relative_to(out)): path.stat().st_mtime_ns for path in out.glob("*/V*/*/run.json")
    }


def play(
    folder: Path,
    capsys: Any,
    *rules: Rule,
    args: tuple[str, ...] = (),
    flags: tuple[str, ...] = MODEL_FLAGS,
    **build: Any,
) -> Played:
    """Write a build, run the matrix on it in this process, and collect what was told."""
    made = write_build(folder / "build", *rules, **build)
    out = folder / "out"
    capsys.readouterr()
    code = main(["--build-dir", str(made), "--out", str(out), *args, "--", *flags])
    told = capsys.readouterr()
    return Played(code=code, out=out, build=made, stdout=told.out, stderr=told.err)
