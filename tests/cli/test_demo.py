"""The demo: the ordinary road on the bundled engine, over each rig that ships."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hetero_test.bundled.faults import VARIABLE
from hetero_test.cli.main import main
from hetero_test.errors import ExitCode

pytestmark = pytest.mark.process


def demo(out: Path, *args: str) -> tuple[int, dict[str, Any]]:
    code = main(["demo", "--out", str(out), "--quiet", *args])
    return code, json.loads((out / "run.json").read_text())


def test_two_equal_cards_differ_by_the_memory_that_the_drafter_gave_back(tmp_path: Path) -> None:
    """Two residencies, two streams, and the anchor ties them together."""
    code, told = demo(tmp_path / "out")
    assert code == ExitCode.PASS
    assert len(told["runs"]) == 16
    assert told["counts"]["pass"] == 20
    assert told["counts"]["fail"] == 0
    kinds = [v["kind"] for v in told["verdicts"] if v["result"] == "PASS"]
    assert [kinds.count(kind) for kind in ("repeat", "exact", "anchor")] == [8, 10, 2]
    groups: dict[str, set[str]] = {}
    streams: dict[str, set[str]] = {}
    for run in told["runs"]:
        groups.setdefault(run["residency"]["label"], set()).add(run["variant"])
        streams.setdefault(run["residency"]["label"], set()).add(run["md5"])
    assert sorted(groups.values(), key=len) == [{"0", "1f"}, set("123456")]
    assert all(len(found) == 1 for found in streams.values())
    assert len(told["clusters"]) == 2
    effects = {v["id"]: v["effect"] for v in told["variants"]}
    assert effects == {
        "0": None,
        "1": "PROVEN",
        "2": "PROVEN",
        "3": "UNOBSERVABLE",
        "4": "UNOBSERVABLE",
        "5": "UNOBSERVABLE",
        "6": "PROVEN",
        "7": None,
    }


def test_the_order_is_interleaved_and_every_second_round_reversed(tmp_path: Path) -> None:
    """Nobody pays for the cold caches alone: 0 to 6, then 6 to 0, anchors last."""
    _, told = demo(tmp_path / "out")
    assert [run["variant"] for run in told["runs"]] == [*"0123456", *"6543210", "1f", "1f"]
    assert [run["order"] for run in told["runs"]] == list(range(16))


def test_with_one_token_changed_the_report_shows_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAIL, exit 1, the right index, and both continuations in the report."""
    monkeypatch.setenv(VARIABLE, "flip-token:7@has:--auto-roles")
    code, told = demo(tmp_path / "out")
    assert code == ExitCode.FAIL
    failed = [v for v in told["verdicts"] if v["result"] == "FAIL"]
    assert {(v["kind"], v["variant"], v["first_difference"]) for v in failed} == {("exact", "6", 7)}
    report = (tmp_path / "out" / "report.md").read_text()
    assert "token 7" in report
    streams = {run["variant"]: run["stream"] for run in told["runs"]}
    for variant in ("6", "1"):
        assert " ".join(map(str, streams[variant][7:10])) in report


def test_two_unequal_cards_need_a_home_baseline(tmp_path: Path) -> None:
    """A main model that moved to another kind is compared with the baseline at home there."""
    code, told = demo(tmp_path / "out", "--rig", "two_unequal", "--only", "1,2")
    assert code == ExitCode.PASS
    against = {
        v["against"]["variant"] for v in told["verdicts"] if v["variant"] == "2" and v["against"]
    }
    assert against == {"0-home-2"}
    (home, _) = [run for run in told["runs"] if run["variant"] == "0-home-2"]
    assert home["env"]["CUDA_VISIBLE_DEVICES"] == "1"
    labels = {run["variant"]: run["residency"]["label"] for run in told["runs"]}
    assert labels["0-home-2"] == labels["2"] != labels["0"]


def test_one_card_tests_no_placement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Variants 0 and 7 run, and the headline says what that is worth."""
    code, told = demo(tmp_path / "out", "--rig", "one")
    assert code == ExitCode.PASS
    assert {run["variant"] for run in told["runs"]} == {"0", "7"}
    assert "no placement was tested" in capsys.readouterr().out.splitlines()[0]


def test_fewer_devices_than_expected_launch_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gate for two cards ends with exit 3 where one is left, naming both numbers."""
    out = tmp_path / "out"
    words = ["demo", "--rig", "one", "--expect-devices", "2", "--out", str(out)]

    assert main(words) == ExitCode.NOTHING_TO_COMPARE
    assert "2 devices expected, 1 found" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--list",), 0),
        (("--only", "no-such"), 2),
        (("--matrix", "no-such"), 2),
        (("--build-dir", "."), 2),
        (("--engine", "llama_cpp", "--build-dir", "."), 3),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_a_demo_that_begins_no_matrix_leaves_nothing(
    tmp_path: Path, words: tuple[str, ...], code: int, *, there: bool
) -> None:
    """A listing and a mistake leave no run directory; one that was there stays, and is empty."""
    out = tmp_path / "above" / "out"
    if there:
        out.mkdir(parents=True)
    assert main(["demo", "--out", str(out), *words]) == code
    assert list(tmp_path.rglob("*")) == ([tmp_path / "above", out] if there else [])
