"""Points files: what they hold and what is complained about."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from hetero_test.errors import MatrixError
from hetero_test.triage.cost.placement import DraftKind
from hetero_test.triage.learn.points import Point, Use, read_points, repository

if TYPE_CHECKING:
    from pathlib import Path

HEAD = 'schema = "hetero-test/points/1"\n'
GOOD = """
[[point]]
id = "X1"
url = "https://github.com/someone/something/issues/7"
summary = "experts move"
shape = { layers = 4, experts = 8, used = 2 }
[[point.device]]
id = "CUDA0"
device_class = "discrete_gpu"
bandwidth_gb_s = { value = 800.0, origin = "measured", source = "a copy" }
[[point.device]]
id = "CPU"
device_class = "desktop_cpu"
bandwidth_gb_s = 64
[point.a]
what = "CPU"
tok_s = 10
read = [{ device = "CPU", gb = 4, experts = true }]
[point.b]
what = "both"
tok_s = 15
splits = 6
read = [{ device = "CPU", gb = 2, experts = true }, { device = "CUDA0", gb = 2, experts = true }]
drafting = { window = 2, accepted_at = [0.8, 0.6], kind = "block", verify = { 3 = 1.4 } }
"""


def write(tmp_path: Path, text: str) -> Path:
    """A points file."""
    path = tmp_path / "points.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_points_are_all_of_the_collection(points: tuple[Point, ...]) -> None:
    """Every point stands there: scored, fitted to, or left out with a reason."""
    assert len({point.id for point in points}) == len(points) == 80
    assert sum(point.use is Use.SCORE for point in points) == 53
    assert all(point.missing for point in points if point.use is Use.NONE)
    assert all(point.summary and point.url for point in points)


def test_points_that_mislead_are_neither_fitted_to_nor_scored(points: tuple[Point, ...]) -> None:
    """Paging and defects are hazards, not calibration."""
    by_id = {point.id: point for point in points}
    assert {by_id[name].use for name in ("H31", "H36", "H37", "H43")} == {Use.NONE}


def test_every_url_is_public_or_says_that_it_is_not(points: tuple[Point, ...]) -> None:
    """A number without a source is refused."""
    assert {p.url for p in points if not p.url.startswith("https://")} == {"no public source"}


def test_a_point_is_read_with_what_its_source_says(tmp_path: Path) -> None:
    """Measured bandwidths are copy tests, specified ones data sheets; acceptance takes any form."""
    (point,) = read_points(write(tmp_path, HEAD + GOOD))
    assert point.origin == "github.com/someone/something"
    assert point.log_ratio == pytest.approx(math.log(1.5))
    assert point.a is not None
    assert point.b is not None
    placement = point.placement(point.b)
    assert placement.device("CUDA0").copy_gb_s == 800
    assert placement.device("CUDA0").nominal_gb_s is None
    assert placement.device("CPU").nominal_gb_s == 64
    assert placement.drafting is not None
    assert placement.drafting.kind is DraftKind.BLOCK
    assert placement.drafting.tokens_per_round == pytest.approx(2.4)
    assert placement.drafting.verify == {3: 1.4}


@pytest.mark.parametrize(
    ("wrong", "right", "told"),
    [
        ('device = "CPU", gb = 4', 'device = "GPU7", gb = 4', "no device of this point"),
        ("tok_s = 15", "", "needs two placements"),
        ("experts = 8, used = 2", "experts = 8", "0 of 8 experts"),
        ('id = "X1"\n', 'id = "X1"\nuse = "none"\n', "needs `missing`"),
        ('id = "X1"\n', 'id = "X1"\nuse = "fit"\nspeed = 3\n', "unknown key"),
        ("accepted_at = [0.8, 0.6], ", "", "nothing is said"),
        ('id = "X1"\n', 'id = "X1"\nquantity = "prefill"\n', "prefill table"),
        ("tok_s = 10\n", 'tok_s = "fast"\n', "tok_s"),
    ],
)
def test_what_does_not_hold_together_is_told_with_its_line(
    tmp_path: Path, wrong: str, right: str, told: str
) -> None:
    """File, line and point of every complaint."""
    path = write(tmp_path, HEAD + GOOD.replace(wrong, right, 1))
    with pytest.raises(MatrixError, match=told) as caught:
        read_points(path)
    assert f"{path}:" in caught.value.complaints[0]


def test_another_schema_is_refused(tmp_path: Path) -> None:
    """A later format is not guessed at."""
    with pytest.raises(MatrixError, match="hetero-test/points/1"):
        read_points(write(tmp_path, HEAD.replace("/1", "/9") + GOOD))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "https://github.com/ikawrakow/ik_llama.cpp/issues/629",
            "github.com/ikawrakow/ik_llama.cpp",
        ),
        ("https://github.com/a/b/blob/0123abc/x/y.md", "github.com/a/b"),
        ("https://www.example.org/posts/1abc/snapshots/z", "example.org/posts/1abc"),
        ("no public source", "no public source"),
    ],
)
def test_the_source_is_the_repository_or_thread(url: str, expected: str) -> None:
    """Issues, pulls and files of one repository are one source."""
    assert repository(url) == expected
