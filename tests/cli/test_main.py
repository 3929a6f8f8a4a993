"""The command line: what is passed on, what is refused, what is told, on which stream."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetero_test.cli.main import COMMANDS, main, split
from hetero_test.errors import ExitCode
from tests.rigs import play
from tests.scripted import FLAGS, MODEL_FLAGS, always, launches, script, write_build

pytestmark = pytest.mark.process

HETERO_TEST = (sys.executable, "-m", "hetero_test")


def call(
    *args: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program as a process of its own."""
    return subprocess.run(
        [*HETERO_TEST, *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "harness"), **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


# ---- what reaches the engine -------------------------------------------------------------------

ODD = ("-ot", r"blk\..*=CPU", "--pack", "/p/my pack", "--", "é", "*", "$HOME", "a'b\"c", "", "\n")


def test_everything_after_the_first_dashes_arrives_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Blanks, globs, quotes, a second ``--`` and non-ASCII reach the engine as they are."""
    told = play(tmp_path, capsys, args=("--only", "1"), flags=(*MODEL_FLAGS, *ODD))
    assert told.code == ExitCode.PASS
    for argv in told.launches:
        assert argv[len(MODEL_FLAGS) :][: len(ODD)] == list(ODD)
    assert told.json["model_flags"] == [*MODEL_FLAGS, *ODD]


def test_a_real_process_passes_its_arguments_on_unchanged(tmp_path: Path) -> None:
    """The same through a real command line, whose bytes the operating system hands over."""
    build = write_build(tmp_path / "build")
    done = call(
        "--build-dir",
        str(build),
        "--only",
        "1",
        "--repeats",
        "1",
        "--",
        *MODEL_FLAGS,
        *ODD,
        cwd=tmp_path,
    )
    assert done.returncode == ExitCode.PASS, done.stderr
    assert all(argv[len(MODEL_FLAGS) :][: len(ODD)] == list(ODD) for argv in launches(build))


@given(st.lists(st.text(max_size=4)), st.lists(st.text(max_size=4)))
def test_the_first_dashes_are_the_border(ours: list[str], theirs: list[str]) -> None:
    """Whatever stands before the first ``--`` is ours; everything behind it is the engine's."""
    ours = [word for word in ours if word != "--"]
    assert split([*ours, "--", *theirs]) == (ours, tuple(theirs))
    assert split(ours) == (ours, None)


def test_run_is_the_same_with_and_without_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``hetero-test run …`` and ``hetero-test …`` print the same plan."""
    build = str(write_build(tmp_path / "build"))
    rest = ["--build-dir", build, "--list", "--", *MODEL_FLAGS]
    assert main(rest) == 0
    plain = capsys.readouterr().out
    assert main(["run", *rest]) == 0
    assert capsys.readouterr().out == plain


# ---- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--repeats", "0"], "whole number from 1"),
        (["--max-new", "0"], "whole number from 1"),
        (["--max-new", "x"], "'x'"),
        (["--timeout", "-1"], "seconds above 0"),
        (["--timeout", "nan"], "seconds above 0"),
        (["--only", "9"], "--only 9: no such variant"),
        (["--skip", "0"], "the baseline cannot be skipped"),
        (["--skip", "66"], 'did you mean "6"'),
        (["--matrix", "strat"], 'did you mean "strata"'),
        (["--matrix", "none.toml"], "No such file"),
        (["--tokens-file", "none.txt"], "none.txt"),
        (["--vocab", "2000"], "too small"),
        (["--maxnew", "3"], "--maxnew"),
        (["--max", "3"], "--max"),
        (["--device-kind", "x"], "DEVICE=KIND"),
        (["--fast-device", "1"], "--fast-device"),
        (["--resume", "--repeats", "1.5"], "1.5"),
    ],
)
def test_a_wrong_option_is_told_and_nothing_is_launched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], told: str
) -> None:
    """Exit 2, one message on stderr, nothing on stdout, no launch, no folder."""
    build = write_build(tmp_path / "build")
    out = tmp_path / "out"
    code = main(["--build-dir", str(build), "--out", str(out), *args, "--", *MODEL_FLAGS])
    streams = capsys.readouterr()
    assert code == ExitCode.USAGE
    assert told in streams.err
    assert streams.err.startswith("hetero-test: error: ")
    assert "Traceback" not in streams.err
    assert streams.out == ""
    assert launches(build) == []
    assert not out.exists()


@pytest.mark.parametrize(
    "flag", ["--main-device", "--tokens-file", "--max-new=3", "--seed", "--serve", "--top-p"]
)
def test_flags_that_the_matrix_owns_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    """A placement, length, prompt or sampling flag after ``--`` would defeat the test."""
    told = play(tmp_path, capsys, flags=(*MODEL_FLAGS, flag, "1"))
    assert told.code == ExitCode.USAGE
    assert flag.partition("=")[0] in told.stderr
    assert told.launches == []


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "nothing to do"),
        (["ru"], 'did you mean "run"'),
        (["--build-dir", "x"], "no model flags"),
        (["report"], "RUNDIR"),
        (["report", "x", "--", "y"], "nothing after --"),
        (["report", "--format", "pdf", "x"], "pdf"),
        (["demo", "--rig", "three"], "three"),
        (["demo", "--build-dir", "x"], "brings its own"),
    ],
)
def test_a_call_that_makes_no_sense_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    told: str,
) -> None:
    """Exit 2 and what to do; an engine's name is not mistaken for a command."""
    monkeypatch.chdir(tmp_path)
    assert main(argv) == ExitCode.USAGE
    assert told in capsys.readouterr().err


# ---- what is missing ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "build", "flags", "told"),
    [
        ("no drafter", {}, ("--pack", "p"), "--mtp"),
        ("no device tool", {"devices": None}, MODEL_FLAGS, "--devices N"),
        ("device tool finds none", {"device_text": "(no GPU device)\n"}, MODEL_FLAGS, "0 found"),
        ("device tool prints junk", {"device_text": "what?\n"}, MODEL_FLAGS, "--devices N"),
        ("an engine without the flags", {"known": FLAGS[:7]}, MODEL_FLAGS, "--main-device"),
    ],
)
def test_with_nothing_to_compare_nothing_is_launched(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    build: dict[str, Any],
    flags: tuple[str, ...],
    told: str,
) -> None:
    """Nothing to compare is exit code 3 with what is missing named, never "exact"."""
    got = play(tmp_path, capsys, flags=flags, **build)
    assert got.code == ExitCode.NOTHING_TO_COMPARE, name
    assert told in got.stderr
    assert got.launches == []
    assert not got.out.exists()


def test_the_number_of_devices_can_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--devices 2`` stands in for a device tool that is missing, and the report says so."""
    told = play(tmp_path, capsys, args=("--devices", "2", "--only", "1"), devices=None)
    assert told.code == ExitCode.PASS
    assert told.json["rig"]["device_count"] == 2
    assert "--devices" in told.json["rig"]["how"]


def test_a_folder_without_an_engine_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3 naming the binary; a folder that holds another engine is answered with its name."""
    (tmp_path / "empty").mkdir()
    assert main(["--build-dir", str(tmp_path / "empty"), "--", "x"]) == 3
    assert "strata" in capsys.readouterr().err
    script(tmp_path / "empty" / "llama-server", "exit 0\n")
    assert main(["--build-dir", str(tmp_path / "empty"), "--", "x"]) == 3
    assert "--matrix llama_cpp" in capsys.readouterr().err
    assert main(["--build-dir", str(tmp_path / "none"), "--", "x"]) == 3
    assert "no such folder" in capsys.readouterr().err


def test_with_one_device_the_headline_says_that_no_placement_was_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Variants 0 and 7 run on one card; a pass of 7 is not sold as one of a placement."""
    told = play(tmp_path, capsys, args=("--devices", "1"), devices=1)
    assert {run["variant"] for run in told.json["runs"]} == {"0", "7"}
    assert "no placement was tested (1 device)" in told.report.splitlines()[0]
    assert "no placement was tested" in told.stdout


# ---- what is told, and where -------------------------------------------------------------------


def test_stdout_is_the_product_and_stderr_the_talk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verdict lines and the report's path on stdout; count, progress and estimate on stderr."""
    told = play(tmp_path, capsys)
    lines = told.stdout.splitlines()
    assert lines[0].startswith("PASS — 6 of 6 variants exact")
    assert "16 runs, 20 PASS / 0 FAIL (8 repeat, 10 exact, 2 anchor)" in lines[2]
    assert lines[-1] == f"report: {told.out / 'report.md'}"
    talk = told.stderr.splitlines()
    assert talk[0].startswith("14 launches in ")
    assert sum(line.startswith("[") for line in talk) == 16
    assert any(line.startswith("about ") for line in talk)


def test_quiet_is_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--quiet`` leaves stderr empty and stdout as it is."""
    told = play(tmp_path, capsys, args=("--quiet",))
    assert told.stderr == ""
    assert told.stdout.startswith("PASS")


def test_the_list_runs_nothing_and_shows_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--list`` prints devices, variants with what they leave no trace of, and 14 commands."""
    told = play(tmp_path, capsys, args=("--list",), flags=(*MODEL_FLAGS, "--x", "a b"))
    assert told.code == 0
    assert told.launches == []
    assert not told.out.exists()
    commands = [line for line in told.stdout.splitlines() if line.startswith("  V")]
    assert len(commands) == 14
    assert all("--x 'a b'" in line for line in commands)
    assert re.search(r"^  3 .*leaves no trace: prefill_parallel", told.stdout, re.MULTILINE)
    assert re.search(r"^  7 .*SKIPPED, needs 1 device, 2 found", told.stdout, re.MULTILINE)


def test_the_list_shows_as_many_commands_as_it_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Warm-ups and the sizing runs of ``--pinned`` are launches too."""
    args = ("--list", "--only", "1", "--pinned", "--warmup", "1", "--repeats", "1")
    told = play(tmp_path, capsys, args=args)
    commands = [line for line in told.stdout.splitlines() if re.match(r"  (warmup/)?V", line)]
    assert "5 launches" in told.stdout
    assert len(commands) == 5
    assert all("--adapt-every 0" in line for line in commands)


def test_the_default_folder_is_named_after_the_moment(tmp_path: Path) -> None:
    """Without ``--out`` the run directory is ``hetero-test-YYYYMMDD-HHMMSS`` right here."""
    build = write_build(tmp_path / "build")
    done = call("--build-dir", str(build), "--only", "1", "--", *MODEL_FLAGS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (made,) = [p.name for p in tmp_path.iterdir() if p.name != "build"]
    assert re.fullmatch(r"hetero-test-\d{8}-\d{6}", made)


def test_the_probe_comes_from_the_environment_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """HETERO_TEST_TOKENS, SEED and VOCAB stand in for the options, which rule over them."""
    monkeypatch.setenv("HETERO_TEST_TOKENS", "12")
    monkeypatch.setenv("HETERO_TEST_VOCAB", "4096")
    monkeypatch.setenv("HETERO_TEST_SEED", "8")
    told = play(tmp_path, capsys, args=("--only", "1", "--seed", "9"))
    (probe,) = told.json["probes"]
    assert len(probe["ids"]) == 12
    assert max(probe["ids"]) < 2500
    assert "seed 9, vocabulary 4096" in probe["source"]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_a_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command that the help lists answers ``--help``."""
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert f"hetero-test {name}" in capsys.readouterr().out or name == "run"


def test_what_the_engine_prints_cannot_act_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control sequences in a log line that is quoted reach neither stdout nor stderr."""
    nasty = "strata generate: CUDA error: \x1b[2J\x1b]0;owned\x07 \r\x9b31m [/red]"
    told = play(tmp_path, capsys, always(late=[nasty]))
    assert told.code == ExitCode.INCONCLUSIVE
    for text in (told.stdout, told.stderr, told.report):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


# ---- costs -------------------------------------------------------------------------------------


def test_the_help_loads_nothing_heavy(tmp_path: Path) -> None:
    """``--help`` imports none of the libraries that take long to load."""
    heavy = ("pandas", "numpy", "jinja2", "pydantic", "rich", "psutil", "httpx2", "gguf")
    code = (
        "import sys\nfrom hetero_test.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "harness")},
        cwd=tmp_path,
    )
    assert done.stderr.strip() == "[]"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=6))
def test_no_words_bring_a_traceback(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Whatever stands on the command line, the answer is a message and an exit code."""
    try:
        code = main([word for word in words if word not in {"demo", "rig"}])
    except SystemExit as end:
        code = int(end.code or 0)
    assert code in set(ExitCode)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("psutil", "error: the Python package psutil is not installed"),
        ("hetero_test.gone", "this is a bug of hetero-test"),
    ],
)
def test_a_checkout_without_its_dependencies_says_what_to_install(
    missing: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package that is not installed is no bug of ours; a module of ours that is gone is one."""

    def gone(_name: str) -> None:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr("hetero_test.cli.main.import_module", gone)
    assert main(["demo"]) == ExitCode.COULD_NOT_FINISH
    error = capsys.readouterr().err
    assert told in error
    assert ("Traceback" in error) == ("bug" in told)
