"""The example reports under ``reports/example``, made again with ``python -m tests.golden``.

Each folder is one demo, rendered in every format. The bundled engine runs as it always does, but
its clock is a counter, and what the machine adds (process ids, dates, host facts, the hash of the
build) is replaced before the record is judged and rendered. So the same code gives the same bytes.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from hetero_test.bundled.build import DemoBuild, write_build
from hetero_test.bundled.faults import VARIABLE
from hetero_test.cli.main import main
from hetero_test.judge.judge import judge
from hetero_test.judge.wording import verdict_lines
from hetero_test.report.formats import TextForm, build
from hetero_test.store.run_dir import Store
from hetero_test.values.record import Record

EXAMPLES = Path(__file__).parent.parent / "reports" / "example"

DEMOS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "two_equal": (("--rig", "two_equal"), {}),
    "two_unequal": (("--rig", "two_unequal"), {}),
    "token_flipped": (
        ("--rig", "two_equal"),
        {VARIABLE: "flip-token:7@has:--auto-roles"},
    ),
}
"""Folder to the options of ``demo`` and what is set in the environment."""

FILES: dict[str, TextForm] = {
    "report.md": "md",
    "report.html": "html",
    "junit.xml": "junit",
    "run.json": "json",
}
"""File to its report format; ``stdout`` stands beside them."""

CLOCK = """\
import itertools
import time

_ticks = itertools.count()
time.perf_counter = lambda: next(_ticks) / 100_000
"""
"""Put before the engine's own imports: time passes with each look at the clock."""

VOLATILE: dict[str, object] = {
    "started": "2026-01-01T00:00:00+00:00",
    "elapsed_s": 0.125,
    "pid": 1000,
    "pid_started": "boot:1000",
    "max_rss_bytes": 45_000_000,
    "major_faults": 0,
    "blocks_read": 0,
    "harness": "0.0.0",
    "mark": "",
}
"""Fields, wherever in a record they stand, whose value is the moment's or the machine's."""

KEPT = ("PATH", "HOME", "TMPDIR")
"""Environment variables that a demo runs with."""

HOST = (
    ("CPU", "Example CPU"),
    ("logical processors", "8"),
    ("memory", "16.0 GiB"),
    ("system", "Example Linux"),
    ("Python", "3.11.0"),
)


def examples(name: str, folder: Path) -> dict[str, str]:
    """File names and texts of one example; ``folder`` is an empty place for its run."""
    out = folder / "out"
    _run(name, out)
    record = settled(Store(out).load(), out)
    judgment = judge(record)
    with mock.patch("hetero_test.report.html.decode_chart", return_value=None):
        texts = {
            file: build(form, record, judgment, out=out, redact=True)
            for file, form in FILES.items()
        }
    texts["stdout"] = "\n".join(verdict_lines(record, judgment)) + "\n"
    return texts


def _run(name: str, out: Path) -> None:
    options, fault = DEMOS[name]
    # Device masks and what a CI runner sets would show in a report.
    env = {name: value for name, value in os.environ.items() if name in KEPT} | fault
    with (
        mock.patch("hetero_test.bundled.build.write_build", _build_with_a_clock),
        mock.patch("hetero_test.rig.contention.looks", return_value=()),
        mock.patch.dict(os.environ, env, clear=True),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        main(["demo", "--quiet", "--out", str(out), *options])


def _build_with_a_clock(dest: Path, **options: Any) -> DemoBuild:
    made = write_build(dest, **options)
    launcher = made.build_dir / "reference.py"
    text = launcher.read_text(encoding="utf-8")
    docstring, rest = text.split("\n\n", 1)
    launcher.write_text(f"{docstring}\n\n{CLOCK}{rest}", encoding="utf-8")
    return made


def settled(record: Record, out: Path) -> Record:
    """The record without what differs from one machine, or one moment, to the next."""
    record = _replaced(record)
    manifest = record.manifest
    # User and host names of this machine need no hiding here: nothing of it is left.
    places = tuple(pair for pair in manifest.secrets if pair[0].startswith(str(out)))
    return replace(
        record,
        manifest=replace(
            manifest,
            engine=replace(manifest.engine, sha256="0" * 64, size_bytes=300),
            rig=replace(manifest.rig, facts=HOST),
            secrets=places,
        ),
    )


def _replaced(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(
            value,
            **{
                name: VOLATILE[name] if name in VOLATILE and old is not None else _replaced(old)
                for name, old in held.items()
            },
        )
    if isinstance(value, tuple):
        return tuple(map(_replaced, value))
    if isinstance(value, Mapping):
        return {name: _replaced(held) for name, held in value.items()}
    return value


def write() -> None:
    """Make all examples again."""
    for name in DEMOS:
        with TemporaryDirectory(prefix="hetero-test-") as folder:
            texts = examples(name, Path(folder))
        (EXAMPLES / name).mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (EXAMPLES / name / file).write_text(text, encoding="utf-8")
            print(EXAMPLES / name / file)


if __name__ == "__main__":
    write()
    sys.exit(0)
