"""The demo on a real build, and what the report shows of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.rigs import Told

pytestmark = pytest.mark.real


def demo(build: Path, out: Path, *options: str) -> Told:
    """``hetero-test demo --engine llama_cpp``."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "hetero_test", "demo", "--engine", "llama_cpp"),
            *("--build-dir", str(build), "--out", str(out), *options),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Told(code=done.returncode, out=out, stdout=done.stdout, stderr=done.stderr)


def test_demo(build: Path, tmp_path: Path) -> None:
    """On a build without accelerators the demo brings devices of its own, and ends them."""
    told = demo(build, tmp_path / "out")
    assert told.code == 0, told.stdout + told.stderr
    found = told.json
    assert found["conclusion"] == "PASS"
    assert found["counts"]["fail"] == found["counts"]["not_claimed"] == 0
    assert sum(variant["planned"] for variant in found["variants"]) >= 13
    assert set(told.effects().values()) == {None, "PROVEN"}
    servers = [p for p in psutil.process_iter(["cmdline"]) if str(build) in str(p.info["cmdline"])]
    assert [p for p in servers if str(tmp_path) in str(p.info["cmdline"])] == []
    report = told.report
    for words in ("model buffer size", "KV buffer size", "graph splits", "draft"):
        assert words in report
    assert str(tmp_path) not in report


def test_demo_with_a_drafter_that_drafts_nothing(build: Path, tmp_path: Path) -> None:
    """Where no draft is long enough the drafter is loaded, and its place is not proven."""
    out = tmp_path / "out"
    options = ("--only", "draft-other", "--repeats", "1", "--", "--spec-draft-n-min", "1000")
    told = demo(build, out, *options)
    assert told.effects()["draft-other"] == "CONTRADICTED"
    (run,) = told.runs("draft-other")
    (part,) = (part for part in run["effect_parts"] if part["part"] == "draft")
    assert (part["expected"], part["seen"]) == ("RPC1", "nothing drafted")
    assert any("it drafted nothing" in text for text in told.json["warnings"])


def test_listing(build: Path, tmp_path: Path) -> None:
    """--list prints every command line, and launches nothing."""
    told = demo(build, tmp_path / "out", "--list")
    assert told.code == 0
    assert "-devd RPC1" in told.stdout
    assert "--port 0" in told.stdout
    assert not (tmp_path / "out" / "runs").exists()


def test_interrupted_and_resumed_matrices_ask_for_the_same(build: Path, tmp_path: Path) -> None:
    """The command line of a run holds no port or name that differs the next time."""
    one, other = (demo(build, tmp_path / name, "--list").stdout for name in ("a", "b"))

    def same(text: str) -> list[str]:
        words = (line for line in text.splitlines() if "--port 0" in line)
        return [line.split("--host")[1] for line in words]

    assert same(one)
    assert same(one) == same(other)
