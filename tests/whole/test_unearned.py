"""A PASS that is not earned: nothing moved, a flag was refused, a failure beside a whole stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripted import always, when
from tests.whole.scenario import FAIL, OPEN, PASS, Scenario, hold

pytestmark = pytest.mark.process

Capture = pytest.CaptureFixture[str]
ONCE = ("--only", "4", "--repeats", "1")
AUTO = ("--only", "6", "--repeats", "1")
CHAINED = "--draft-chain-batch"
ON_ONE = (
    "strata generate: --auto-roles picked: MAIN 0 (the engine's default ordinal), DRAFT 0 "
    "(degenerate: one usable GPU)",
    "strata generate: device roles: main 0, draft 0 (degenerate: both roles on this one GPU)",
)


@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_roles_that_the_engine_picks_as_the_baseline_has_them_have_not_moved(
    strict: tuple[str, ...], tmp_path: Path, capsys: Capture
) -> None:
    """What the engine picks is compared with the baseline's own placement."""
    same = when(
        "--auto-roles", role_lines=False, workspace_line=False, slots_apart=4400, stderr=ON_ONE
    )
    hold(
        Scenario("", (same,), OPEN, args=(*AUTO, *strict), said=("nothing moved",)),
        tmp_path,
        capsys,
    )


@pytest.mark.parametrize(
    "line",
    [
        f"unknown argument: {CHAINED}",
        f"strata generate: {CHAINED} is ignored: the drafter is on the main device",
        f"strata generate: note: {CHAINED} has no effect here",
        f"strata generate: {CHAINED} disabled on this card",
        f"strata generate: warning: {CHAINED} is not supported by this build, continuing",
        f"strata generate: {CHAINED}: falling back to one draft at a time",
    ],
)
def test_a_flag_that_was_not_carried_out_is_no_placement(
    line: str, tmp_path: Path, capsys: Capture
) -> None:
    """However it is said, and though a whole stream and exit code 0 follow."""
    hold(
        Scenario(
            "",
            (when(CHAINED, late=[line]),),
            OPEN,
            args=ONCE,
            states={"4": ["OK"]},
            effects={"4": "CONTRADICTED"},
            said=(line,),
        ),
        tmp_path,
        capsys,
    )


@pytest.mark.parametrize(("strict", "code"), [((), PASS), (("--strict",), OPEN)])
def test_a_thing_left_undone_is_doubted_though_no_flag_is_named(
    strict: tuple[str, ...], code: int, tmp_path: Path, capsys: Capture
) -> None:
    """A PASS quotes the line; under ``--strict`` there is none."""
    line = "strata mtp: chained drafts are unavailable here, one draft at a time"
    hold(
        Scenario(
            "",
            (when(CHAINED, late=[line]),),
            code,
            args=("--repeats", "1", *strict),
            effects={"4": "DOUBTED"},
            said=(line,),
        ),
        tmp_path,
        capsys,
    )


@pytest.mark.parametrize(
    "lines",
    [
        # A usage line silences nothing that follows.
        ["usage: strata [options]", "strata generate: an illegal memory access was encountered"],
        ["strata generate: unspecified launch failure"],
        ["strata generate: device-side assert triggered"],
        ["strata generate: the launch timed out and was terminated"],
        ["strata generate: peer access is not supported between these two devices"],
        ["CUDA failure 719"],
        ["run.sh: line 3: 4711 Segmentation fault (core dumped) ./strata"],
        ["ROCm error: the operation cannot be performed in the present state"],
        ["vk::Queue::submit: ErrorDeviceLost"],
        ["NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."],
    ],
    ids=lambda lines: lines[-1],
)
def test_a_failure_of_a_driver_is_a_crash_though_the_stream_is_whole(
    lines: list[str], tmp_path: Path, capsys: Capture
) -> None:
    """Exit code 0 and equal ids do not outweigh what the driver says; the line is quoted."""
    hold(
        Scenario(
            "",
            (when("--auto-roles", late=lines),),
            OPEN,
            args=AUTO,
            states={"0": ["OK"], "6": ["CRASHED"]},
            said=(lines[-1],),
        ),
        tmp_path,
        capsys,
    )


@pytest.mark.parametrize(
    "line",
    [
        "logits min nan max nan",
        "residual norm -nan",
        "NaN in layer 12",
        "3 logits are inf",
    ],
)
def test_values_that_are_no_numbers_are_never_a_pass(
    line: str, tmp_path: Path, capsys: Capture
) -> None:
    """As C and Python print them, beside a word for what they are values of."""
    hold(
        Scenario(
            "",
            (always(slots_apart=4400), when("--auto-roles", late=[line])),
            FAIL,
            args=AUTO[:2],
            states={"6": ["DEGENERATE", "DEGENERATE"]},
            said=(line,),
        ),
        tmp_path,
        capsys,
    )


def test_a_sampler_with_a_temperature_is_not_greedy(tmp_path: Path, capsys: Capture) -> None:
    """Whatever order the engine prints its settings in."""
    line = "strata generate: sampling top_k=20 top_p=0.95 temperature=1 seed=3"
    hold(
        Scenario(
            "",
            (always(late=[line]),),
            OPEN,
            args=AUTO,
            states={"0": ["NOT_GREEDY"], "6": ["NOT_GREEDY"]},
            said=(line,),
        ),
        tmp_path,
        capsys,
    )


@pytest.mark.parametrize(
    "fill", [[4711] * 8 + [815], [4711, 4712, 4713, 4714], [4711, 815]], ids=str
)
def test_garbage_on_both_sides_is_no_agreement(
    fill: list[int], tmp_path: Path, capsys: Capture
) -> None:
    """Few ids, or a short loop, that dominate the end of the stream."""
    hold(
        Scenario(
            "",
            (always(fill=fill),),
            OPEN,
            args=AUTO,
            states={"0": ["DEGENERATE"], "6": ["DEGENERATE"]},
        ),
        tmp_path,
        capsys,
    )
