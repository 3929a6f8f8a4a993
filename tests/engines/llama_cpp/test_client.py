"""The dialogue with a server: one that answers, and every way in which one does not."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

import psutil
import pytest

from hetero_test.engines.base import LaunchedCell, Survey
from hetero_test.engines.llama_cpp.adapter import LlamaCpp
from hetero_test.engines.llama_cpp.client import listening_port
from hetero_test.engines.llama_cpp.reply import FILE
from hetero_test.launch.process import launch
from hetero_test.launch.request import ProcessLimits, Request
from hetero_test.session.state import state_of
from hetero_test.values.outcome import Outcome, StopReason
from hetero_test.values.run import Probe, RunState, StateFinding

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

PROBE = Probe(name="default", ids=(405, 406, 407, 408), max_new=20)
SURVEY = Survey(devices=(), device_count=0, how="", known_flags=None)


def hold(
    build: Path, folder: Path, scenario: str, *, run_s: float = 30.0, idle_s: float = 30.0
) -> tuple[Outcome, StateFinding]:
    """One run of a scenario, and its state."""
    engine = LlamaCpp()
    folder.mkdir(exist_ok=True)
    command = engine.command(engine.find(build), (), PROBE, probe_file=folder / "ids")
    outcome = launch(
        Request(
            argv=command,
            env={"FAKE_SCENARIO": scenario},
            stdout=folder / "stdout",
            stderr=folder / "stderr",
            limits=ProcessLimits(run_s=run_s, idle_s=idle_s, grace_s=1.0),
            mark=f"test-server/{folder}",
            dialogue=engine.dialogue(command, PROBE, folder),
        )
    )
    asked = LaunchedCell(flags=(), env={}, probe=PROBE, survey=SURVEY, folder=folder)
    reading = engine.read(folder / "stdout", folder / "stderr", asked)
    assert outcome.pid is not None
    assert not psutil.pid_exists(outcome.pid)
    return outcome, state_of(outcome, reading, PROBE)


def test_good(build: Path, tmp_path: Path) -> None:
    """A server that is ready late is waited for, asked once, and stopped; its ids are the run's."""
    outcome, finding = hold(build, tmp_path / "run", "good")
    assert finding == StateFinding(state=RunState.OK)
    assert outcome.stopped is StopReason.DIALOGUE_DONE
    assert outcome.dialogue_error is None
    assert len(json.loads((tmp_path / "run" / FILE).read_bytes())["tokens"]) == 20


@pytest.mark.parametrize(
    ("scenario", "state", "words"),
    [
        ("early-refusal", RunState.REFUSED, "refused its flags"),
        ("early-assert", RunState.CRASHED, "ended by SIGABRT"),
        ("crash", RunState.CRASHED, "ended by SIGSEGV"),
        ("error", RunState.NO_STREAM, "answered 400: the request is too long"),
        ("page", RunState.NO_STREAM, "answered 500: <html>no json</html>"),
        ("nothing", RunState.NO_STREAM, "with success, but with nothing"),
        ("empty", RunState.NO_STREAM, "with success, but with an empty stream"),
        ("deep", RunState.NO_STREAM, "line 1, column 101: lists and objects are nested more than"),
        ("digits", RunState.NO_STREAM, "line 1, column 12: a whole number of more than"),
        ("deep-error", RunState.NO_STREAM, 'answered 500: {"error":{"error":'),
        ("odd-error", RunState.NO_STREAM, "answered 400: half \ud800 of a pair"),
        ("redirect", RunState.NO_STREAM, "answered 307"),
        ("wrong-prompt", RunState.WRONG_PROMPT, "a prompt of 3 ids where 4 were given"),
        ("ignores-signals", RunState.OK, ""),
    ],
)
def test_states(build: Path, tmp_path: Path, scenario: str, state: RunState, words: str) -> None:
    """Each way in which a server can fail has its own state, with the words that show it."""
    _, finding = hold(build, tmp_path / "run", scenario)
    assert finding.state is state
    assert words in (finding.reason or "")


def test_asserts_are_quoted(build: Path, tmp_path: Path) -> None:
    """A failed assertion is the line that is quoted."""
    _, finding = hold(build, tmp_path / "run", "early-assert")
    assert finding.quote == "a.cpp:1: GGML_ASSERT(x) failed"


@pytest.mark.parametrize("scenario", ["hang", "early-hang", "never-ready"])
def test_hangs(build: Path, tmp_path: Path, scenario: str) -> None:
    """A server that is healthy while the request hangs, or never ready, is stopped for idling."""
    outcome, finding = hold(build, tmp_path / "run", scenario, idle_s=0.6)
    assert finding.state is RunState.TIMED_OUT
    assert outcome.stopped is StopReason.IDLE


def test_environment_is_no_part_of_it(
    build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that the environment names is not asked."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert hold(build, tmp_path / "run", "good")[1].state is RunState.OK


def test_wrapper(build: Path, tmp_path: Path) -> None:
    """A build whose llama-server is a script that starts the real one is talked to as well."""
    (build / "llama-server").rename(build / "real-server")
    (build / "llama-server").write_text(f'#!/bin/sh\n"{build}/real-server" "$@"\n')
    (build / "llama-server").chmod(0o755)
    assert hold(build, tmp_path / "run", "good")[1].state is RunState.OK


def test_only_its_own_socket_counts() -> None:
    """The port is one on which that very process listens: no other server can answer for it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert listening_port(os.getpid(), children=False) == server.getsockname()[1]
    assert listening_port(os.getpid(), children=False) is None
    assert listening_port(2**22 + 1) is None
