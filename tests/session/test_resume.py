"""Nothing is lost: kill -9, Ctrl-C, two harnesses, and going on after each."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from hetero_test.cli.main import main
from hetero_test.errors import ExitCode
from hetero_test.launch.leftovers import start_of
from hetero_test.store.run_dir import Store
from tests.rigs import play, stored
from tests.scripted import MODEL_FLAGS, launches, when, write_build

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
VOLATILE = {
    *("elapsed_s", "started", "pid", "pid_started", "major_faults", "blocks_read"),
    *("max_rss_bytes", "argv", "build_dir", "path", "mark"),
}
"""What may differ between an undisturbed run and one that was killed and gone on with."""


def command(build: Path, out: Path, *args: str) -> list[str]:
    return [
        *(sys.executable, "-m", "hetero_test", "--build-dir", str(build), "--out", str(out)),
        *("--quiet", *args, "--", *MODEL_FLAGS),
    ]


def start(build: Path, out: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(build, out, *args),
        env={**os.environ, "PYTHONPATH": str(ROOT / "harness")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def steady(value: Any) -> Any:
    """A document without what may differ."""
    if isinstance(value, dict):
        return {k: steady(v) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        return [steady(v) for v in value]
    return value


def holders(build: Path) -> list[psutil.Process]:
    """Processes of the scripted engine in that build folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(build / "program.py") in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
        pytest.param(500, marks=[pytest.mark.nightly, pytest.mark.timeout(6000)]),
    ],
)
def test_killed_at_any_moment_it_goes_on_as_if_nothing_had_been(
    tmp_path: Path, moments: int
) -> None:
    """Kill -9 at random moments, again and again, changes nothing in the end.

    ``--resume`` ends with the run.json of an undisturbed matrix; no stored run is made again,
    and no engine survives the harness.
    """
    rules = (when(hang=0.03), when("--draft-chain-batch", child=30, child_deaf=False))
    args = ("--only", "1,4")
    build = write_build(tmp_path / "build", *rules)
    begun = time.monotonic()
    calm = start(build, tmp_path / "calm", *args)
    told = calm.communicate(timeout=60)
    assert calm.returncode == 0, told
    longest = 1.3 * (time.monotonic() - begun)
    wanted = steady(json.loads((tmp_path / "calm" / "run.json").read_text()))
    draw = random.Random(20261129)
    kills = ends = 0
    out = tmp_path / "out"
    while kills < moments:
        before = stored(out) if out.exists() else {}
        process = start(build, out, *args, "--resume")
        try:
            process.wait(draw.uniform(0.1, longest))
        except subprocess.TimeoutExpired:
            process.kill()
            kills += 1
        told = process.communicate()
        assert process.returncode in {0, -signal.SIGKILL}, told
        # The kernel ends the engine with its harness; the killing itself takes a moment.
        _wait_for(lambda: not engines(build), 10)
        after = stored(out) if out.exists() else {}
        assert {name: after[name] for name in before} == before
        if process.returncode == 0:
            assert steady(json.loads((out / "run.json").read_text())) == wanted
            assert holders(build) == []
            shutil.rmtree(out)
            ends += 1
    process = start(build, out, *args, "--resume")
    told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert steady(json.loads((out / "run.json").read_text())) == wanted
    assert holders(build) == []
    assert ends > 0


def engines(build: Path) -> list[psutil.Process]:
    """The engine itself leads its session; the child that it left behind does not."""
    found = []
    for process in holders(build):
        try:
            if os.getsid(process.pid) == process.pid:
                found.append(process)
        except ProcessLookupError:
            continue
    return found


def test_a_run_that_was_cut_is_not_stored(tmp_path: Path) -> None:
    """What the engine had written when the harness was killed is no run of the record."""
    build = write_build(tmp_path / "build", when("--auto-roles", hang=60))
    out = tmp_path / "out"
    process = start(build, out, "--only", "6")
    _wait_for((out / "runs/V6/default-1/stdout").exists)
    process.kill()
    process.communicate()
    assert not (out / "runs/V6/default-1/run.json").exists()
    assert [run["variant"] for run in json.loads((out / "run.json").read_text())["runs"]] == ["0"]
    assert main(["report", str(out)]) == ExitCode.INCONCLUSIVE


def _wait_for(condition: Any, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_two_interrupts_stop_at_once(tmp_path: Path) -> None:
    """Ctrl-C twice does not wait for an engine that is deaf to it."""
    build = write_build(tmp_path / "build", when("--auto-roles", hang=120, deaf=True))
    out = tmp_path / "out"
    process = start(build, out, "--only", "6")
    _wait_for(lambda: (out / "runs/V6/default-1/stdout").exists() and holders(build))
    _wait_for(lambda: (out / "runs/V6/default-1/stdout").stat().st_size > 0)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert time.monotonic() - begun < 5  # the polite way takes ten seconds with a deaf engine
    assert holders(build) == []


def test_two_harnesses_do_not_share_a_folder(tmp_path: Path) -> None:
    """The second one is refused while the first one runs, and touches nothing."""
    build = write_build(tmp_path / "build", when("--auto-roles", hang=60))
    out = tmp_path / "out"
    first = start(build, out, "--only", "6")
    try:
        _wait_for((out / "runs/V6/default-1/stdout").exists)
        before = stored(out)
        second = start(build, out, "--only", "6", "--resume")
        _, told = second.communicate(timeout=60)
        assert second.returncode == ExitCode.COULD_NOT_FINISH
        assert "another hetero-test is writing to this folder" in told
        assert stored(out) == before
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate()


def test_a_folder_that_is_not_empty_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that lies in a folder is read as a result or overwritten."""
    told = play(tmp_path, capsys, args=("--only", "1"))
    before = stored(told.out)
    again = play(tmp_path, capsys, args=("--only", "1"))
    assert again.code == ExitCode.USAGE
    assert "not empty" in again.stderr
    assert stored(told.out) == before
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "run-0.log").write_text("output  : 1 2 3\n")
    code = main(["--build-dir", str(told.build), "--out", str(tmp_path / "x"), "--", *MODEL_FLAGS])
    assert code == ExitCode.USAGE


def test_resume_on_a_missing_or_bare_folder_starts_afresh(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CI job may always say ``--resume``: the first time there is nothing to go on with."""
    assert play(tmp_path, capsys, args=("--only", "1", "--resume")).code == 0
    (tmp_path / "other" / "out").mkdir(parents=True)
    assert play(tmp_path / "other", capsys, args=("--only", "1", "--resume")).code == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"args": ("--repeats", "3")}, "repeats: 2 before, 3 now"),
        ({"args": ("--max-new", "50")}, "length"),
        ({"args": ("--seed", "8")}, "prompt ids"),
        ({"args": ("--only", "1,2")}, "variants"),
        ({"args": ("--pinned",)}, "pinned"),
        ({"flags": (*MODEL_FLAGS, "--kv", "int8")}, "model flags"),
        ({"matrix": True}, "matrix"),
        ({"engine": True}, "engine binary (sha256)"),
        ({"devices": 3}, "devices"),
    ],
)
def test_resume_refuses_what_is_not_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], told: str
) -> None:
    """Another binary, matrix, prompt, length or flag is refused, and named."""
    only = () if "--only" in change.get("args", ()) else ("--only", "1")
    first = play(tmp_path, capsys, args=("--only", "1"))
    before = stored(first.out)
    if change.get("engine"):
        path = first.build / "strata"
        path.write_text(path.read_text() + "# another build\n")
    args = [*only, *change.get("args", ())]
    if change.get("matrix"):
        text = (ROOT / "matrices" / "strata.toml").read_text()
        (tmp_path / "my.toml").write_text(text + "# changed\n")
        args += ["--matrix", str(tmp_path / "my.toml")]
    if "devices" in change:
        args += ["--devices", "3"]
    flags = change.get("flags", MODEL_FLAGS)
    code = main(
        ["--build-dir", str(first.build), "--out", str(first.out), "--resume", *args, "--", *flags]
    )
    assert code == ExitCode.USAGE
    assert told in capsys.readouterr().err
    assert stored(first.out) == before


def test_going_on_needs_libraries_of_equal_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A library that was written again with its own bytes is the same one; another is refused."""
    library = tmp_path / "build/libllama.so"
    library.parent.mkdir()
    library.write_bytes(b"one")
    first = play(tmp_path, capsys, args=("--only", "1"))
    words = ["--build-dir", str(first.build), "--out", str(first.out), "--resume", "--only", "1"]
    library.unlink()
    library.write_bytes(b"one")
    assert main([*words, "--", *MODEL_FLAGS]) == first.code == ExitCode.PASS
    library.write_bytes(b"two")
    assert main([*words, "--", *MODEL_FLAGS]) == ExitCode.USAGE
    assert "made for something else: libraries" in capsys.readouterr().err


def test_limits_and_strictness_may_change_on_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finished matrix is judged anew without a launch, with the new strictness."""
    told = play(tmp_path, capsys, when("--auto-roles", accepted=9), args=("--only", "1,6"))
    assert told.code == ExitCode.PASS
    count = len(told.launches)
    args = ["--only", "1,6", "--resume", "--strict", "--timeout", "5"]
    code = main(["--build-dir", str(told.build), "--out", str(told.out), *args, "--", *MODEL_FLAGS])
    assert code == ExitCode.INCONCLUSIVE
    assert len(launches(told.build)) == count


def test_runs_without_a_manifest_are_not_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it cannot be known what was asked, nothing is taken for an answer."""
    told = play(tmp_path, capsys, args=("--only", "1"))
    (told.out / "manifest.json").unlink()
    code = main(
        ["--build-dir", str(told.build), "--out", str(told.out), "--resume", "--", *MODEL_FLAGS]
    )
    assert code == ExitCode.USAGE
    assert "manifest" in capsys.readouterr().err


def test_the_total_limit_ends_the_matrix_with_124(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--total-timeout`` stops the running engine, keeps what is stored, and exits 124."""
    told = play(tmp_path, capsys, when("--auto-roles", hang=60), args=("--total-timeout", "3"))
    assert told.code == ExitCode.TOTAL_TIMEOUT
    assert told.json["ending"] == "total time limit"
    assert told.json["conclusion"] == "INCONCLUSIVE"
    assert "0" in {run["variant"] for run in told.json["runs"]}
    assert holders(told.build) == []


def test_arguments_that_are_no_utf8_are_kept(tmp_path: Path) -> None:
    """A byte that is no UTF-8 reaches the engine, the record and the report, and comes back."""
    build = write_build(tmp_path / "build")
    out = tmp_path / "out"
    odd = [b"--x", b"a\xff\xfe"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "harness")}

    def run(*args: str) -> subprocess.CompletedProcess[bytes]:
        argv = [*map(os.fsencode, command(build, out, "--only", "1", *args)), *odd]
        return subprocess.run(argv, env=env, capture_output=True, check=False)

    first = run()
    assert first.returncode == 0, first.stderr
    json.loads((out / "run.json").read_bytes().decode("utf-8"))
    assert launches(build)[0][len(MODEL_FLAGS) :][:2] == ["--x", "a\udcff\udcfe"]
    again = run("--resume")
    assert again.returncode == 0, again.stderr
    done = subprocess.run(
        [sys.executable, "-m", "hetero_test", "report", str(out)],
        env=env,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout == (out / "report.md").read_bytes()
    assert b"xff" in done.stdout


def test_an_engine_that_survived_is_ended_by_what_was_stored_of_it(tmp_path: Path) -> None:
    """Its pid and start time are enough, even if it has wiped its environment.

    A pid that now belongs to another process is left alone.
    """
    build = write_build(tmp_path / "build")
    out = tmp_path / "out"
    assert main(command(build, out, "--only", "1")[3:]) == 0
    stray = subprocess.Popen(["sleep", "60"], env={}, start_new_session=True)
    try:
        (out / "running.json").write_text(json.dumps({"pid": stray.pid, "started": "other"}))
        assert main(command(build, out, "--only", "1", "--resume")[3:]) == 0
        assert stray.poll() is None
        store = Store(out)
        store.note_start(stray.pid, start_of(stray.pid))
        assert main(command(build, out, "--only", "1", "--resume")[3:]) == 0
        assert stray.wait(10) == -signal.SIGTERM
    finally:
        stray.kill()
        stray.wait()
