"""``strata-device``: the devices, their peers and the memory plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hetero_test.bundled.device_tool import main
from hetero_test.bundled.rig import RIGS

MASKS = {None: 2, "1": 1, "": 0}


def run(
    capsys: pytest.CaptureFixture[str],
    *argv: str,
    rig: str = "two_unequal",
    mask: str | None = None,
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one call."""
    environ = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
    code = main(argv, rig=RIGS / f"{rig}.toml", environ=environ)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("mask", MASKS)
def test_the_list_has_each_visible_device_once(
    capsys: pytest.CaptureFixture[str], mask: str | None
) -> None:
    """Two lines a device, or a line that there is none, always with exit code 0."""
    code, out, err = run(capsys, "--list-devices", mask=mask)
    assert (code, err) == (0, "")
    assert len(re.findall(r"^device \d: ", out, re.MULTILINE)) == MASKS[mask]
    if not MASKS[mask]:
        assert out == "(no GPU device)\n"
    if mask is None:
        assert out == (
            "device 0: Emulated EX-10\n  compute capability 8.6, 9.5 GiB\n"
            "device 1: Emulated EX-8\n  compute capability 6.1, 8.0 GiB\n"
        )


def test_the_report_names_the_first_device_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """The plain mode prints device 0, then every device, so lines are no count."""
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert re.findall(r"^device (\d): ", out, re.MULTILINE) == ["0", "0", "1"]
    assert "\npeer access (canAccessPeer, reported - never enabled here):\n  0 -> 1: no\n" in out
    assert "\nmemory plan  --max-context " in out


def test_one_device_has_no_peers(capsys: pytest.CaptureFixture[str]) -> None:
    """The peer block is for two cards or more."""
    _, out, _ = run(capsys, rig="one")
    assert "peer access" not in out
    assert "  0 -> 1: yes\n  1 -> 0: yes\n" in run(capsys, rig="two_equal")[1]


def test_the_report_fails_without_a_device(capsys: pytest.CaptureFixture[str]) -> None:
    """With none visible stdout is empty and the reason is on stderr."""
    code, out, err = run(capsys, mask="")
    assert (code, out) == (1, "")
    assert err == "strata-device: no CUDA-capable device is detected\n"


def test_the_report_fails_on_a_card_that_is_too_old(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The plain mode looks at the first card; the list does not mind."""
    rig = tmp_path / "rig.toml"
    rig.write_text((RIGS / "one.toml").read_text().replace('"6.1"', '"5.2"'))
    assert main([], rig=rig, environ={}) == 1
    assert capsys.readouterr().out == ""
    assert main(["--list-devices"], rig=rig, environ={}) == 0


def test_other_modes(capsys: pytest.CaptureFixture[str]) -> None:
    """Help and self-test end with 0, anything unknown with 2."""
    assert run(capsys, "--help")[0] == 0
    assert run(capsys, "--selftest")[0] == 0
    assert run(capsys, "--json")[:2] == (2, "unknown argument: --json\n")
