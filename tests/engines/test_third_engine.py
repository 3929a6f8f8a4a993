"""An engine of a third shape needs nothing that it does not hand over, and gets no false PASS.

The loom has no expert cache, no ordinals and no drafter; see ``tests/engines/loom``. Matrices run
from the command line to the report, on a script of what its two lanes do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hetero_test.cli.main import main
from hetero_test.engines import ENGINES
from hetero_test.engines.base import SizedCache
from hetero_test.errors import ExitCode
from tests.engines.loom import SCRIPT, Loom

pytestmark = pytest.mark.process

MATRIX = """\
engine = "loom"
[baseline]
id = "0"
on_device = { LOOM_ONLY = "{device}" }
[[variant]]
id = "w"
name = "main on the west lane"
flags = ["--lane", "west"]
effect = { main = "west" }
[pinned]
flags = ["--calm"]
"""
BEAMS = ("", {"beams": "all"})
WEST = ("--lane west", {"lane": "west"})
ELM = ("--lane west", {"lane": "west", "wood": "elm"})
ELM_ALONE = ("only west", {"lane": "west", "wood": "elm"})
SNAG = ("--lane west", {"snag": 9})
Rule = tuple[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loom among the engines, as an installed package of another would be."""
    monkeypatch.setitem(ENGINES, "loom", ("tests.engines.loom", "Loom"))


class Woven:
    """One matrix of the loom, from its command line on.

    Attributes:
        code: the exit code.
        document: what ``run.json`` holds.
        report: what ``report.md`` holds.
    """

    def __init__(self, folder: Path, *rules: Rule, options: tuple[str, ...] = ()) -> None:
        (folder / "build").mkdir()
        (folder / "build" / SCRIPT).write_text(json.dumps([BEAMS, *rules]))
        (folder / "loom.toml").write_text(MATRIX)
        out = folder / "out"
        places = ["--matrix", str(folder / "loom.toml"), "--build-dir", str(folder / "build")]
        argv = ["run", *places, "--out", str(out), "--quiet", *options, "--", "--yarn", "y"]
        self.code = main(argv)
        self.document = json.loads((out / "run.json").read_text(encoding="utf-8"))
        self.report = (out / "report.md").read_text(encoding="utf-8")

    def verdict(self, kind: str, variant: str) -> dict[str, Any]:
        """The first verdict of a kind on an id."""
        found: list[dict[str, Any]] = self.document["verdicts"]
        return next(v for v in found if (v["kind"], v["variant"]) == (kind, variant))

    def runs(self, variant: str, where: str = "runs") -> list[dict[str, Any]]:
        """The runs under an id."""
        return [run for run in self.document[where] if run["variant"] == variant]


def test_it_forces_no_size() -> None:
    """The capability is optional: this engine does not even say that it lacks it."""
    assert not isinstance(Loom(), SizedCache)


def test_equal_cloth_on_a_proven_lane_passes(tmp_path: Path) -> None:
    """Repeats and comparisons pass, and the move is proven by the engine's own events."""
    woven = Woven(tmp_path, WEST)

    assert woven.code == ExitCode.PASS, woven.report
    assert woven.verdict("exact", "w")["result"] == "PASS"
    assert {run["effect"] for run in woven.runs("w")} == {"PROVEN"}


def test_its_rows_are_columns_of_the_report(tmp_path: Path) -> None:
    """The label and the unit are the engine's; what it did not measure is unknown."""
    woven = Woven(tmp_path, WEST, ("--lane west", {"spools": 2.5}))
    lines = [line for line in woven.report.splitlines() if line.startswith("|")]
    head = next(n for n, line in enumerate(lines) if "spools" in line)
    cells = [[cell.strip() for cell in line.split("|")] for line in lines[head + 2 : head + 4]]

    assert [row[1:3] for row in cells] == [["0", "–"], ["w", "2.50 kg"]]


def test_another_stream_fails(tmp_path: Path) -> None:
    """One other id at an equal residency, with nothing that explains it."""
    woven = Woven(tmp_path, WEST, SNAG)

    assert woven.code == ExitCode.FAIL
    assert woven.verdict("exact", "w")["first_difference"] == 9


@pytest.mark.parametrize("snag", [{}, {"snag": 9}], ids=["equal", "another stream"])
def test_an_ignored_placement_never_passes(tmp_path: Path, snag: dict[str, Any]) -> None:
    """The lane was asked for and the events show the other one: equal cloth proves nothing."""
    woven = Woven(tmp_path, ("--lane west", {"lane": "east", **snag}))

    assert {run["effect"] for run in woven.runs("w")} == {"CONTRADICTED"}
    assert woven.code == (ExitCode.FAIL if snag else ExitCode.INCONCLUSIVE)
    assert "did not go where its flags say" in woven.report


@pytest.mark.parametrize(
    "bad",
    [{"exit": 3}, {"exit": 0, "fray": "a thread tore"}],
    ids=["exit code", "an error although it ends well"],
)
def test_a_crash_never_passes(tmp_path: Path, bad: dict[str, Any]) -> None:
    """Whether the exit code tells it or only the events do."""
    woven = Woven(tmp_path, WEST, ("--lane west", bad))

    assert {run["state"] for run in woven.runs("w")} == {"CRASHED"}
    assert woven.code == ExitCode.INCONCLUSIVE


def test_an_unknown_residency_never_passes(tmp_path: Path) -> None:
    """Events that do not tell what was computed where are equal to nothing."""
    woven = Woven(tmp_path, WEST, ("--lane west", {"beams": None}))

    assert woven.code == ExitCode.INCONCLUSIVE
    assert woven.verdict("exact", "w")["reason"] == (
        "the residency is unknown: no event tells the beams"
    )


def test_another_residency_stays_open(tmp_path: Path) -> None:
    """No size can be forced, so no anchor ties it; nobody asks the engine for one."""
    woven = Woven(tmp_path, WEST, ("--lane west", {"beams": "half", "seed": 2}))

    assert woven.code == ExitCode.INCONCLUSIVE
    assert "no anchor covers it" in woven.verdict("exact", "w")["reason"]
    assert woven.runs("wf") == []


# ---- what may move rounding ---------------------------------------------------------------

ORDERS = (("", {"threads": 1}), ("--lane west", {"threads": 2}))


def test_what_moved_is_looked_at_again(tmp_path: Path) -> None:
    """Still different under the pinned recipe: the placement did it."""
    woven = Woven(tmp_path, WEST, SNAG, *ORDERS)

    assert len(woven.runs("0p", "rechecks")) == len(woven.runs("wp", "rechecks")) == 2
    assert woven.code == ExitCode.FAIL
    assert woven.verdict("exact", "w")["reason"].endswith("; also with the pinned recipe")


def test_what_moved_explains_a_difference_that_the_recipe_removes(tmp_path: Path) -> None:
    """Equal under the recipe: open, and the cause is told in the engine's words."""
    woven = Woven(tmp_path, WEST, SNAG, *ORDERS, ("calm", {"snag": None}))
    verdict = woven.verdict("exact", "w")

    assert woven.code == ExitCode.INCONCLUSIVE
    assert verdict["cause"] == "the order of the threads moved (2 against 1)"
    assert "--pinned" in woven.report


def test_a_pinned_matrix_runs_without_a_size(tmp_path: Path) -> None:
    """The recipe is put into every run, and no size is fixed where there is none."""
    woven = Woven(tmp_path, WEST, options=("--pinned",))

    assert woven.code == ExitCode.PASS
    assert all("--calm" in run["argv"] for run in woven.document["runs"])


# ---- a lane of another wood -----------------------------------------------------------------


@pytest.mark.parametrize(("snag", "code"), [(None, ExitCode.PASS), (9, ExitCode.FAIL)])
def test_another_wood_is_compared_with_the_baseline_at_home_there(
    tmp_path: Path, snag: int | None, code: ExitCode
) -> None:
    """The baseline alone on that lane is the reference; it is shown the lane by its name."""
    west = ("--lane west", {"seed": 2, "snag": snag})
    woven = Woven(tmp_path, ELM, west, ELM_ALONE, ("only west", {"seed": 2}))

    assert [run["env"].get("LOOM_ONLY") for run in woven.runs("0-home-w")] == ["west", "west"]
    assert woven.verdict("exact", "w")["against"]["variant"] == "0-home-w"
    assert woven.code == code, woven.report


def test_a_home_on_another_lane_is_no_reference(tmp_path: Path) -> None:
    """Shown one lane alone, it weaves on the other: nothing is compared, and nothing passes."""
    woven = Woven(tmp_path, ELM, ("--lane west", {"seed": 2}), ("only west", {"seed": 2}))

    assert woven.code == ExitCode.INCONCLUSIVE
    assert "the baseline on that device alone did not give" in woven.verdict("exact", "w")["reason"]


# ---- why two streams part -------------------------------------------------------------------


def test_a_near_tie_is_a_cause_and_no_excuse(tmp_path: Path) -> None:
    """A gap below the measured noise is told, and the comparison fails all the same."""
    worth = (("", {"worth": -0.5, "close": 0.0001}), ("--lane west", {"worth": -0.501}))
    woven = Woven(tmp_path, WEST, SNAG, *worth)
    verdict = woven.verdict("exact", "w")

    assert (verdict["cause"], verdict["explanation"]["tie"]) == ("near tie", "near tie")
    assert woven.code == ExitCode.FAIL


def test_a_cause_of_its_own_goes_before_a_near_tie(tmp_path: Path) -> None:
    """What the engine says explains it better than the numbers do."""
    worth = (("", {"worth": -0.5, "close": 0.0001}), ("--lane west", {"worth": -0.501}))
    woven = Woven(tmp_path, WEST, SNAG, *worth, ("--lane west", {"halved": "2 rows"}))

    assert woven.verdict("exact", "w")["cause"] == (
        "its rows are kept at half width (2 rows against none)"
    )
    assert woven.code == ExitCode.FAIL


def test_numbers_that_are_not_real_are_not_used(tmp_path: Path) -> None:
    """Given or not: with the engine's word that they are none, only ids are compared."""
    worth = ("", {"worth": -0.5, "close": 0.0001, "worthless": "this loom guesses"})
    woven = Woven(tmp_path, WEST, SNAG, worth)
    verdict = woven.verdict("exact", "w")

    assert verdict["explanation"]["text"] == "ids only: this loom guesses"
    assert verdict["explanation"]["tie"] is None
    assert verdict["cause"] is None
    assert woven.code == ExitCode.FAIL
