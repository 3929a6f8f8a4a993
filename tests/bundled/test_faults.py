"""Faults: each does what it says, when its conditions hold, and nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from hetero_test.bundled.failures import EngineStopError
from hetero_test.bundled.faults import FAULTS, VARIABLE, FaultEffect, active_faults
from tests.bundled.engine import NEW_TOKENS, Engine, Run, fault_env

if TYPE_CHECKING:
    from pathlib import Path

ROLES = ("--main-device", "0", "--draft-device", "1")
MOVED = ("--main-device", "1", "--draft-device", "0")


def first_difference(a: tuple[int, ...], b: tuple[int, ...]) -> int | None:
    """The first place at which two streams differ."""
    return next((n for n, pair in enumerate(zip(a, b, strict=True)) if pair[0] != pair[1]), None)


def same_but_for_times(a: Run, b: Run) -> bool:
    """Whether two logs differ in measured numbers only."""
    plain = [re.sub(r"\d+\.\d+", "#", run.out + run.err) for run in (a, b)]
    return re.sub(r"\(\d+ MiB/s\)", "", plain[0]) == re.sub(r"\(\d+ MiB/s\)", "", plain[1])


@pytest.mark.parametrize(
    ("name", "argument", "place"),
    [
        ("flip-token", None, 5),
        ("flip-token", 17, 17),
        ("flip-token", -2, 58),
        ("flip-early", None, 1),
        ("flip-late", None, 55),
        ("flip-last", None, 59),
        ("all-placed-wrong", None, 5),
    ],
)
def test_a_flip_changes_one_token_and_decoding_goes_on_from_it(
    equal: Engine, name: str, argument: int | None, place: int
) -> None:
    """The stream is right up to the place, wrong there, and consistent with the wrong token."""
    right = equal(*ROLES).stream
    wrong = equal(*ROLES, env=fault_env(name, argument=argument))
    assert wrong.code == 0
    assert first_difference(right, wrong.stream) == place
    assert len(wrong.stream) == NEW_TOKENS
    if place < NEW_TOKENS - 10:
        assert wrong.stream[place + 1 :] != right[place + 1 :]


def test_a_random_flip_differs_between_processes(equal: Engine) -> None:
    """Runs under it do not repeat themselves."""
    runs = [equal(env=fault_env("random-flip")).stream for _ in range(3)]
    assert len(set(runs)) == 3


def test_noise_and_death_may_be_the_baselines_alone(equal: Engine) -> None:
    """Faults of the baseline leave placements as they are."""
    env = fault_env("noisy-baseline")
    assert equal(env=env).stream != equal().stream
    assert equal(*ROLES, env=env).stream == equal(*ROLES).stream
    assert equal(*ROLES, env=fault_env("dead-baseline")).stream == equal(*ROLES).stream
    assert equal(env=fault_env("dead-baseline", argument="exit")).code == 1
    assert equal(env=fault_env("all-placed-wrong")).stream == equal().stream


@pytest.mark.process
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("death", ["SIGSEGV", "SIGABRT", "exit"])
def test_a_crash_comes_before_or_after_the_dump(equal: Engine, when: str, death: str) -> None:
    """A signal, or exit code 1 with an error line; the dump is there only before the death."""
    build = equal.build
    done = subprocess.run(
        [build.build_dir / "strata", *build.model_flags, "--tokens", "1 2 3"],
        capture_output=True,
        text=True,
        env=fault_env(f"crash-{when}", argument=death),
        timeout=60,
        check=False,
    )
    assert done.returncode == (1 if death == "exit" else -signal.Signals[death])
    assert ("output  :" in done.stdout) is (when == "after")
    assert ("illegal memory access" in done.stderr) is (death == "exit")


@pytest.mark.process
@pytest.mark.parametrize("manner", ["polite", "deaf"])
def test_a_hang_ends_only_as_it_says(equal: Engine, manner: str) -> None:
    """A polite one ends on INT and TERM, a deaf one on KILL alone; neither prints a dump."""
    build = equal.build
    with subprocess.Popen(
        [build.build_dir / "strata", *build.model_flags, "--tokens", "1 2 3", "--max-new", "32"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=fault_env("hang", argument=manner),
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        try:
            for line in process.stderr:
                if line.startswith("strata: hanging"):
                    break
            process.send_signal(signal.SIGTERM)
            if manner == "deaf":
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(timeout=0.3)
                process.send_signal(signal.SIGINT)
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(timeout=0.3)
                process.kill()
            assert process.wait(timeout=20) == -(
                signal.SIGKILL if manner == "deaf" else signal.SIGTERM
            )
        finally:
            process.kill()
        assert process.stdout.read() == ""


@pytest.mark.parametrize(("argument", "length"), [(None, 53), (1, 1), (0, 0), (-1, 59)])
def test_a_truncated_dump_is_a_prefix(equal: Engine, argument: int | None, length: int) -> None:
    """Fewer ids than asked, all of them right."""
    run = equal(env=fault_env("truncate", argument=argument))
    assert run.code == 0
    assert run.stream == equal().stream[:length]


@pytest.mark.parametrize("period", [1, 2, 3])
@pytest.mark.parametrize(("length", "right"), [(60, 30), (24, 8), (10, 0)])
def test_garbage_is_a_short_cycle(equal: Engine, period: int, length: int, right: int) -> None:
    """The last half, and at least 16 ids, repeat so many ids."""
    env = fault_env("garbage", argument=period)
    stream = equal("--max-new", str(length), env=env).stream
    tail = stream[right:]
    assert len(stream) == length
    assert stream[:right] == equal().stream[:right]
    assert tail[period:] == tail[:-period]
    assert len(set(tail)) == period


def test_lines_that_tell_of_damage_come_with_exit_code_0(equal: Engine) -> None:
    """Not-finite logits and a device error are only told; the stream is right."""
    for name, line in (
        ("nan-line", "4096 of 4096 logits are not finite at position 155"),
        ("error-line", "CUDA error: an illegal memory access was encountered"),
    ):
        run = equal(env=fault_env(name))
        assert run.code == 0
        assert run.says(f"^strata generate: {line}$")
        assert run.stream == equal().stream


def test_the_prompts_echo_may_be_wrong_or_missing(equal: Engine) -> None:
    """The stream is right in both."""
    wrong = equal(env=fault_env("wrong-prompt"))
    assert sum(a != b for a, b in zip(wrong.prompt, equal.probe, strict=True)) == 1
    assert wrong.stream == equal().stream
    missing = equal(env=fault_env("no-prompt"))
    assert not missing.says("^prompt")
    assert missing.stream == equal().stream


def test_the_dump_may_be_cut_missing_or_doubled(equal: Engine) -> None:
    """All with exit code 0 and the closing lines."""
    cut, none, two = (
        equal(env=fault_env(name)) for name in ("foreign-text", "no-dump", "two-dumps")
    )
    (before,) = cut.found(r"^output  :([ \d]+)\[driver\] link retrained$")
    (after,) = cut.found(r"^((?: \d+)+)$")
    assert tuple(map(int, f"{before} {after}".split())) == equal().stream
    assert min(len(before.split()), len(after.split())) > 10
    assert not none.says("^output")
    assert len(re.findall(r"^output  :", two.out, re.MULTILINE)) == 2
    for run in (cut, none, two):
        assert run.code == 0
        assert run.says("^decode +60 tokens")


def test_sampling_left_on_is_told_by_the_log(equal: Engine) -> None:
    """The log says so, and the stream is sampled."""
    run = equal(env=fault_env("sampling-on"))
    assert run.says(r"^strata generate: sampling temperature=1 top_k=20 top_p=0\.95 seed=7$")
    assert run.stream != equal().stream


@pytest.mark.parametrize(
    ("which", "device", "remote"), [("both", 0, False), ("main", 0, False), ("draft", 1, True)]
)
def test_an_ignored_role_is_reported_but_has_no_effect(
    equal: Engine, which: str, device: int, remote: bool
) -> None:
    """The role lines are as asked; where the parts really are, the other lines tell."""
    run = equal(*MOVED, env=fault_env("ignore-roles", argument=which))
    assert run.says(r"device roles: main 1, draft 0 \(two GPUs")
    assert run.device == device
    assert run.says("gr workspace") is remote
    assert run.slots == (50 if remote else 44)


def test_a_drafter_may_fall_back_to_the_main_device(equal: Engine) -> None:
    """A line says so, the exit code is 0, and its memory is the main device's."""
    run = equal(*ROLES, env=fault_env("draft-fallback"))
    assert run.code == 0
    assert run.says(
        r"^strata mtp: the RoPE tables on the draft device could not be filled \(.*\); the "
        "drafter stays on the main path$"
    )
    assert not run.says("gr workspace")
    assert (run.slots, run.stream) == (44, equal().stream)


def test_cache_sizes_may_come_out_other_than_told(equal: Engine, native: Engine) -> None:
    """Fewer slots than the estimate; a forced size clipped; an automatic one smaller."""
    off = equal(env=fault_env("estimate-off"))
    assert (off.estimate, off.slots) == (44, 41)
    assert off.stream == equal("--expert-cache", "41").stream
    forced = ("--expert-cache", "44")
    assert equal(*forced, env=fault_env("clip-cache")).slots == 40
    assert equal(*forced, env=fault_env("clip-cache", argument=-5)).slots == 39
    assert equal("--expert-cache", "30", env=fault_env("clip-cache")).slots == 30
    assert equal(env=fault_env("clip-cache")).slots == 44
    assert native(*forced, env=fault_env("clip-cache")).slots < native(*forced).slots
    small = equal(env=fault_env("shrink-auto", argument=2))
    assert (small.estimate, small.slots) == (42, 42)
    assert equal(*forced, env=fault_env("shrink-auto", argument=2)).slots == 44


def test_an_automatic_size_may_drift(equal: Engine) -> None:
    """Every second launch of one command has a slot less."""
    sizes = [equal(env=fault_env("drifting-auto")).slots for _ in range(4)]
    assert sorted(set(sizes)) == [43, 44]
    assert sizes[0] == sizes[2] != sizes[1] == sizes[3]


def test_refusal_and_lack_of_memory_come_late(equal: Engine) -> None:
    """Exit code 2 after loading, exit code 1 for the drafter; no dump in either."""
    refused = equal(env=fault_env("late-refusal"))
    assert (refused.code, refused.out) == (2, "")
    assert refused.says("session is up")
    assert refused.says("^strata generate: --spec needs the device residency table")
    full = equal(env=fault_env("out-of-memory"))
    assert (full.code, full.out) == (1, "")
    assert full.says("^strata generate: mtp: the 16 experts do not fit in VRAM$")


def test_a_weak_drafter_is_weak_in_every_nth_round(equal: Engine) -> None:
    """Fewer drafts are accepted; the stream stays right."""
    weak = equal(env=fault_env("weak-drafter"))
    assert weak.drafts[0] / weak.drafts[1] < equal().drafts[0] / equal().drafts[1]
    assert weak.stream == equal().stream


def active(tmp_path: Path, value: str, *argv: str) -> bool:
    """Whether a launch has the fault that flips a token."""
    return FaultEffect.FLIP in active_faults({VARIABLE: value}, argv, counters=tmp_path)


@pytest.mark.parametrize(
    ("condition", "argv", "holds"),
    [
        ("baseline", ("--spec", "4"), True),
        ("baseline", ("--draft-chain-batch",), False),
        ("baseline", ("--expert-cache", "9"), True),
        ("placed", ("--auto-roles",), True),
        ("placed", ("--spec", "4"), False),
        ("forced", ("--expert-cache", "9"), True),
        ("forced", ("--expert-cache", "9", "--expert-cache", "auto"), False),
        ("auto", (), True),
        ("auto", ("--expert-cache", "9"), False),
        ("has:--auto-roles", ("--auto-roles",), True),
        ("has:--auto-roles", (), False),
        ("has:--main-device=1", ("--main-device", "1"), True),
        ("has:--main-device=1", ("--main-device", "1", "--main-device", "0"), False),
        ("not:--auto-roles", ("--auto-roles",), False),
        ("not:--auto-roles", (), True),
        ("placed,not:--auto-roles", ("--auto-roles",), False),
        ("placed,not:--auto-roles", ("--main-device", "0"), True),
    ],
)
def test_conditions_look_at_the_command_line(
    tmp_path: Path, condition: str, argv: tuple[str, ...], holds: bool
) -> None:
    """A fault strikes only a launch that meets all of its conditions."""
    assert active(tmp_path, f"flip-token@{condition}", *argv) is holds


@pytest.mark.parametrize(
    ("condition", "turns"),
    [
        ("every:2", [False, True, False, True, False]),
        ("nth:3", [False, False, True, False, False]),
        ("after:2", [False, False, True, True, True]),
    ],
)
def test_turns_count_the_launches_that_meet_the_rest(
    tmp_path: Path, condition: str, turns: list[bool]
) -> None:
    """Launches are counted over processes; those that fail another condition do not count."""
    value = f"flip-token@placed,{condition}"
    found = []
    for _ in turns:
        assert not active(tmp_path, value, "--spec", "4")
        found.append(active(tmp_path, value, "--auto-roles"))
    assert found == turns


def test_several_faults_go_together(tmp_path: Path, equal: Engine) -> None:
    """Faults are separated by semicolons; each keeps its own conditions."""
    value = "flip-token:3@placed; wrong-prompt"
    faults = active_faults({VARIABLE: value}, ["--auto-roles"], counters=tmp_path)
    assert faults.number(FaultEffect.FLIP) == 3
    assert FaultEffect.WRONG_PROMPT in faults
    run = equal(env={VARIABLE: value})
    assert run.stream == equal().stream
    assert run.prompt != equal.probe


@pytest.mark.parametrize(
    "value",
    [
        "flip",
        "flip-token:x",
        "flip-token@sometimes",
        "flip-token@every:0",
        "flip-token@has:auto-roles",
        "crash-before:SIGNOPE",
        "hang:loud",
        "no-dump:3",
        "@baseline",
    ],
)
def test_a_variable_that_cannot_be_read_is_refused(tmp_path: Path, value: str) -> None:
    """A misspelt fault must not pass for an engine without one."""
    with pytest.raises(EngineStopError, match=f"^{VARIABLE}: ") as caught:
        active_faults({VARIABLE: value}, [], counters=tmp_path)
    assert caught.value.code == 2


def test_a_launch_that_cannot_be_counted_is_a_failure(tmp_path: Path) -> None:
    """Without a folder for the count the fault would strike at random."""
    with pytest.raises(EngineStopError, match="cannot be counted"):
        active(tmp_path / "missing", "flip-token@every:2")


def test_every_fault_can_be_named_and_told() -> None:
    """Names are lower case with hyphens, summaries one line, every effect has a fault."""
    assert {fault.effect for fault in FAULTS.values()} == set(FaultEffect)
    for name, fault in FAULTS.items():
        assert re.fullmatch(r"[a-z-]+", name)
        assert name == fault.name
        assert 0 < len(fault.summary) < 60


def test_without_the_variable_nothing_is_wrong(equal: Engine) -> None:
    """An empty variable is none."""
    assert same_but_for_times(equal(env={VARIABLE: " "}), equal())
    assert VARIABLE not in os.environ
