"""Ways in which a test harness misleads, each made impossible, from launch to exit code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hetero_test.cli.main import main
from hetero_test.errors import ExitCode
from tests.rigs import play
from tests.scripted import BASELINE, MODEL_FLAGS, always, when

pytestmark = pytest.mark.process

Capture = pytest.CaptureFixture[str]


def time_row(report: str, variant: str) -> str:
    """A variant's row in the table of times."""
    section = report.split("### Times")[1].split("###", maxsplit=1)[0]
    (row,) = [line for line in section.splitlines() if line.startswith(f"| {variant} ")]
    return row


def test_the_exit_status_tells_the_verdict(tmp_path: Path, capsys: Capture) -> None:
    """A mismatch, a crash and a pass have exit codes of their own."""
    codes = {
        name: play(tmp_path / name, capsys, *rules, args=("--only", "1")).code
        for name, rules in (
            ("pass", ()),
            ("mismatch", (when("--main-device", flip=3),)),
            ("crash", (always(signal="SIGSEGV"),)),
        )
    }
    assert codes == {"pass": 0, "mismatch": 1, "crash": 4}


def test_a_variant_that_dies_before_its_cache_line_costs_no_report(
    tmp_path: Path, capsys: Capture
) -> None:
    """What a log lacks is unknown; the report is there and names the crash."""
    told = play(tmp_path, capsys, when("--main-device", final_line=False, ends="before", exit=1))
    assert told.code == ExitCode.INCONCLUSIVE
    assert "CRASHED" in told.report
    assert told.states("1") == ["CRASHED", "CRASHED"]
    assert told.results("anchor", "6f") == ["PASS", "PASS"]


def test_an_estimate_is_never_compared_with_a_final_size(tmp_path: Path, capsys: Capture) -> None:
    """On a native pack the estimate differs from the final size, and only that counts."""
    told = play(
        tmp_path,
        capsys,
        always(native=True, estimate=3000, budget=1.5, slots=4500, slots_apart=4500),
        args=("--only", "1"),
    )
    assert told.code == ExitCode.PASS
    labels = {run["residency"]["label"] for run in told.json["runs"]}
    assert len(labels) == 1
    assert labels.pop().startswith("4500 slots")
    assert "residency" not in " ".join(told.json["warnings"])


@pytest.mark.parametrize("line", ["output: 60", "output : 1 2 3", "outputs  : 60", " output  : 60"])
def test_a_count_line_is_no_stream(tmp_path: Path, capsys: Capture, line: str) -> None:
    """A line that only looks like the dump is none, beside a dump and without one."""
    without = play(tmp_path / "a", capsys, always(dumps=0, count_line=line), args=("--only", "1"))
    assert without.states("0") == ["NO_STREAM", "NO_STREAM"]
    beside = play(tmp_path / "b", capsys, always(count_line=line), args=("--only", "1"))
    assert beside.code == ExitCode.PASS
    assert {run["tokens"] for run in beside.json["runs"]} == {60}


def test_every_repeat_of_an_anchor_keeps_its_own_logs(tmp_path: Path, capsys: Capture) -> None:
    """No run overwrites another's evidence, and an anchor is run as often as the rest."""
    told = play(tmp_path, capsys, args=("--only", "1", "--repeats", "3"))
    folders = [run["folder"] for run in told.json["runs"] if run["variant"] == "1f"]
    assert folders == [f"runs/V1f/default-{n}" for n in (1, 2, 3)]
    assert all((told.out / folder / "stderr").stat().st_size for folder in folders)


def test_the_report_names_what_was_tested(tmp_path: Path, capsys: Capture) -> None:
    """Engine version and hash, date, flags, devices and speeds stand in the report."""
    told = play(tmp_path, capsys)
    document = told.json
    for text in (
        "0.1.34",
        document["engine"]["sha256"][:12],
        document["started"],
        "--draft-chain-batch",
        "GTX 1080 Ti",
        "30.0",
        document["matrix"]["sha256"][:12],
    ):
        assert text in told.report


def test_another_rig_is_not_gone_on_with(tmp_path: Path, capsys: Capture) -> None:
    """Two things that changed together cannot be told apart, so another rig is refused."""
    told = play(tmp_path, capsys, args=("--only", "1"))
    (told.build / "devices.txt").write_text("device 0: RTX 3090\ndevice 1: RTX 3060\n")
    args = ["--build-dir", str(told.build), "--out", str(told.out), "--resume", "--only", "1"]
    assert main([*args, "--", *MODEL_FLAGS]) == ExitCode.USAGE
    assert "device names" in capsys.readouterr().err


def test_an_exact_split_is_said_with_its_speed(tmp_path: Path, capsys: Capture) -> None:
    """An exact variant is PASS, and beside it stands what it costs against the baseline."""
    told = play(
        tmp_path,
        capsys,
        when("--main-device", decode_ms=2200.0, slots_apart=4400),
        args=("--only", "1"),
    )
    assert told.code == ExitCode.PASS
    assert "-9.1 %" in told.report.replace("\N{MINUS SIGN}", "-")


def test_a_faster_stream_that_differs_is_not_ranked(tmp_path: Path, capsys: Capture) -> None:
    """A speed beside a mismatch is marked not comparable, and is never a gain."""
    told = play(
        tmp_path,
        capsys,
        when("--main-device", decode_ms=500.0, slots_apart=4400, flip=20),
        args=("--only", "1"),
    )
    assert told.code == ExitCode.FAIL
    row = time_row(told.report, "1")
    assert "not comparable" in row
    assert "+" not in row


def test_the_length_that_was_tested_is_said(tmp_path: Path, capsys: Capture) -> None:
    """A pass holds for as many tokens as were compared, and says how many."""
    told = play(tmp_path, capsys, args=("--only", "1", "--max-new", "33"))
    assert "over 33 tokens" in told.report
    assert "33 new tokens" in told.report


@pytest.mark.parametrize(
    ("length", "code", "said"),
    [
        (1, ExitCode.INCONCLUSIVE, "new tokens are few (1): nothing passes"),
        (3, ExitCode.INCONCLUSIVE, "new tokens are few (3): nothing passes"),
        (4, ExitCode.PASS, "new tokens are few (4): most differences show later"),
        (15, ExitCode.PASS, "new tokens are few (15): most differences show later"),
        (16, ExitCode.PASS, None),
    ],
)
def test_a_handful_of_tokens_passes_nothing(
    length: int, code: int, said: str | None, tmp_path: Path, capsys: Capture
) -> None:
    """One token everywhere is no evidence, though it was asked for; few bring a warning."""
    told = play(tmp_path, capsys, args=("--only", "1", "--max-new", str(length)))
    assert told.code == code
    assert ("new tokens are few" in told.report) is (said is not None)
    assert said is None or said in told.report


def test_a_flag_that_promises_determinism_is_tested_all_the_same(
    tmp_path: Path, capsys: Capture
) -> None:
    """The pinned recipe is a claim; repeats are made and judged under it."""
    told = play(
        tmp_path, capsys, when("--auto-roles", noise=True), args=("--pinned", "--only", "6")
    )
    assert told.code == ExitCode.FAIL
    assert told.results("repeat", "6") == ["FAIL"]


def test_an_empty_stdout_is_no_stream(tmp_path: Path, capsys: Capture) -> None:
    """Exit code 0 and nothing on the data channel is not an empty agreement."""
    told = play(tmp_path, capsys, always(dumps=0, echo="none"), args=("--only", "1"))
    assert told.code == ExitCode.INCONCLUSIVE
    assert set(told.states("0") + told.states("1")) == {"NO_STREAM"}


def test_a_wide_spread_declares_no_winner(tmp_path: Path, capsys: Capture) -> None:
    """Median and range are shown, and ranges that touch rank nothing."""
    told = play(
        tmp_path,
        capsys,
        when("--main-device", nth=[1], decode_ms=1000.0, slots_apart=4400),
        when("--main-device", nth=[2], decode_ms=3000.0, slots_apart=4400),
        args=("--only", "1"),
    )
    row = time_row(told.report, "1")
    assert re.search(r"\d+\.\d+ \[20\.\d+-60\.\d+\]|\[20\.\d+–60\.\d+\]", row), row
    assert "~" in row


def test_a_larger_cache_is_another_residency_and_no_fault(tmp_path: Path, capsys: Capture) -> None:
    """Cached against uncached experts may round differently; only an anchor tells."""
    told = play(tmp_path, capsys, args=("--only", "1"))
    assert told.code == ExitCode.PASS
    assert len(told.json["clusters"]) == 2
    assert told.results("anchor", "1f") == ["PASS", "PASS"]
    assert "another residency, may be rounding" in told.report


def test_no_run_of_yesterday_is_read_as_todays(tmp_path: Path, capsys: Capture) -> None:
    """Logs that lie in a folder are never found by a pattern."""
    (tmp_path / "out" / "runs" / "V1" / "default-1").mkdir(parents=True)
    (tmp_path / "out" / "runs" / "V1" / "default-1" / "stdout").write_text("output  : 1 2\n")
    told = play(tmp_path, capsys, args=("--only", "1"))
    assert told.code == ExitCode.USAGE
    assert told.launches == []


def test_all_of_it_wrong_in_the_same_way_is_no_agreement(tmp_path: Path, capsys: Capture) -> None:
    """Placements that agree with each other but not with the baseline are wrong."""
    told = play(
        tmp_path,
        capsys,
        *(when(flag, flip=11) for flag in BASELINE),
        when("--expert-cache 4400", flip=11),
    )
    assert told.code == ExitCode.FAIL
    assert told.results("anchor", "1f") == ["FAIL", "FAIL"]


def test_a_line_of_another_library_in_the_dump_is_no_wrong_output(
    tmp_path: Path, capsys: Capture
) -> None:
    """Ids that stand behind foreign text are not read, and their lack is no short stream."""
    for name, foreign in (("a", "\n[ggml] note: pinned buffer reused "), ("b", "\n[ggml] 1 2 ")):
        rule = when("--main-device", foreign=foreign)
        told = play(tmp_path / name, capsys, rule, args=("--only", "1"))
        assert told.states("1") == ["NO_STREAM", "NO_STREAM"]
        assert told.code == ExitCode.INCONCLUSIVE


def test_a_count_that_contradicts_the_stream_doubts_the_placement(
    tmp_path: Path, capsys: Capture
) -> None:
    """A warning with both numbers, and no PASS of a strict matrix."""
    rule = when("--main-device", decoded=59)
    told = play(tmp_path / "a", capsys, rule, args=("--only", "1"))
    assert told.code == ExitCode.PASS
    assert told.effects()["1"] == "DOUBTED"
    assert any("59 tokens" in text and "60 ids" in text for text in told.json["warnings"])
    strict = play(tmp_path / "b", capsys, rule, args=("--only", "1", "--strict"))
    assert strict.code == ExitCode.INCONCLUSIVE


def test_why_a_stream_ends_is_stored(tmp_path: Path, capsys: Capture) -> None:
    """``run.json`` tells the end of a sequence from the length that was asked for."""
    told = play(tmp_path, capsys, when("--main-device", dumps=0), args=("--only", "1"))
    assert {run["stop_reason"] for run in told.runs("0")} == {"length"}
    assert {run["stop_reason"] for run in told.runs("1")} == {None}
