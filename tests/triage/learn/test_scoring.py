"""The evaluation: leave-one-source-out, and the aims it is held against."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from hetero_test.triage.learn import evaluate
from hetero_test.triage.learn.fit import learn
from hetero_test.triage.learn.points import Point, PointPlacement, Use, read_points
from hetero_test.triage.learn.scoring import (
    Call,
    Miss,
    Scored,
    call_of,
    left_out,
    misses,
    score,
    summarize,
    widening,
)

if TYPE_CHECKING:
    from pathlib import Path


def point(name: str, url: str = "https://x.org/a/b") -> Point:
    """A point that nothing is read of."""
    side = PointPlacement(what="x", tok_s=10)
    return Point(id=name, url=url, summary="x", a=side, b=side)


def test_the_aims_are_reached_with_each_source_left_out(scored: list[Scored]) -> None:
    """Half decided, 90 % of these right, median error 10 %, 80 % inside within binomial error."""
    every = summarize(scored)
    assert every.points == 53
    assert every.decided >= every.points / 2
    assert every.right >= 0.9 * every.decided
    assert every.median_error <= 0.10
    assert abs(every.inside / every.points - 0.8) <= every.binomial_half_width


@pytest.mark.parametrize("name", ["H01", "H02", "H03", "H04"])
def test_a_second_card_without_peer_access_is_never_go(scored: list[Scored], name: str) -> None:
    """Four placements that nominal bandwidths recommend, and that were slower."""
    (found,) = [s for s in scored if s.point.id == name]
    assert found.measured < 0
    assert found.call in (Call.NO_GO, Call.MEASURE_FIRST)


def test_nothing_is_scored_on_what_it_was_fitted_to(points: tuple[Point, ...]) -> None:
    """A point's prediction stays when every point of its source is changed."""
    target = next(p for p in points if p.id == "H20")
    others = [p for p in points if p.origin != target.origin]
    (with_own,) = [m for m in misses([target], points) if m.point.id == "H20"]
    (without,) = [m for m in misses([target], others) if m.point.id == "H20"]
    assert with_own.predicted == without.predicted
    assert with_own.sigma == without.sigma


def test_points_of_other_sources_do_teach(points: tuple[Point, ...]) -> None:
    """The fit has an effect: it moves the estimates."""
    taught, untaught = learn(points), learn(())
    assert taught.known("weights:discrete_gpu:dense")[1] < 0.1
    assert untaught.known("weights:discrete_gpu:dense")[1] == pytest.approx(0.15)


def test_the_order_of_points_hardly_matters(points: tuple[Point, ...]) -> None:
    """Linearizations are repeated until the order is lost in the noise."""
    ahead, behind = learn(points), learn(tuple(reversed(points)))
    for name in ("split", "weights:discrete_gpu:dense", "beta:gpu:dense", "kv"):
        middle, spread = ahead.known(name)
        assert abs(math.log(behind.known(name)[0] / middle)) < max(0.1, spread / 2)


def test_each_source_has_one_vote_and_one_vote_is_for_the_unseen() -> None:
    """Twenty small misses of one source do not drown four sources' larger ones."""
    many = [Miss(point=point(f"m{i}"), predicted=0, sigma=1, measured=0.01) for i in range(20)]
    few = [
        Miss(
            point=point(f"f{i}", f"https://x.org/{i}/b"),
            predicted=0.0,
            sigma=0.1,
            measured=math.log1p(0.2),
        )
        for i in range(4)
    ]
    assert widening(many + few) == pytest.approx(2.0)


def test_without_any_miss_an_interval_is_a_normal_distribution_s() -> None:
    """1.28 standard deviations to either end; one source alone gives its largest miss."""
    assert widening([]) == pytest.approx(1.2816, abs=1e-4)
    alone = [Miss(point=point("s"), predicted=0.0, sigma=0.1, measured=math.log1p(0.3))]
    assert widening(alone) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("middle", "half", "call"),
    [(0.2, 0.1, Call.GO), (-0.2, 0.1, Call.NO_GO), (0.2, 0.3, Call.MEASURE_FIRST)],
)
def test_a_gain_inside_its_interval_is_not_decided(middle: float, half: float, call: Call) -> None:
    """GO and NO-GO leave "no change" out."""
    assert call_of(middle, half) is call


def test_a_decided_point_is_right_when_the_measured_sign_is_its_own() -> None:
    """Undecided points are neither right nor wrong."""
    go = Scored(point=point("p"), predicted=0.3, half_width=0.1, measured=0.1)
    assert go.right is True
    assert go.inside is False
    assert go.error == pytest.approx(math.expm1(0.2))
    wrong = Scored(point=point("p"), predicted=0.3, half_width=0.1, measured=-0.1)
    assert wrong.right is False
    open_ = Scored(point=point("p"), predicted=0.3, half_width=0.4, measured=-0.1)
    assert open_.right is None


def test_there_is_no_summary_of_nothing() -> None:
    """A share of no points is not a number."""
    with pytest.raises(ValueError, match="no point"):
        summarize([])


def test_left_out_points_have_a_reason(points: tuple[Point, ...]) -> None:
    """Listed with why."""
    reasons = left_out(points)
    assert len(reasons) == 27
    assert reasons["H07"] == "one placement only"
    assert reasons["S21"] == "costs of batches only"
    assert "smaller" in reasons["H31"]


def test_the_command_prints_points_sums_and_what_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``python -m hetero_test.triage.learn.evaluate`` without files scores what is shipped."""
    assert evaluate.main([]) == 0
    out = capsys.readouterr().out
    assert "| H10-50 |" in out
    assert "| points scored | 53 from 14 sources |" in out
    assert "All aims are reached." in out
    assert "Left out (27):" in out


KEPT_BACK = """schema = "hetero-test/points/1"
[[point]]
id = "K1"
url = "https://example.org/thread/9"
summary = "something else"
engine = "some engine"
main_class = "apple"
a = { what = "without", tok_s = 20 }
b = { what = "with", tok_s = 25, drafting = { window = 2, accepted_share = 0.9 } }
[[point]]
id = "K2"
use = "none"
missing = "no speed"
url = "https://example.org/thread/10"
summary = "nothing"
"""


def test_the_command_scores_files_that_it_has_never_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other points are predicted by the shipped ones, and missed aims are named."""
    path = tmp_path / "kept.toml"
    path.write_text(KEPT_BACK, encoding="utf-8")
    assert evaluate.main([str(path)]) == 0
    out = capsys.readouterr().out
    assert "| points scored | 1 from 1 sources |" in out
    assert "- K2: no speed" in out
    assert "undecided: K1" in out or "| K1 |" in out


def test_the_command_tells_what_is_wrong_with_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback; the exit code of a wrong file."""
    assert evaluate.main([str(tmp_path / "none.toml")]) == 2
    assert "no such file" in capsys.readouterr().err
    path = tmp_path / "empty.toml"
    path.write_text(KEPT_BACK[: KEPT_BACK.index("[[point]]")] + "point = []\n", encoding="utf-8")
    assert evaluate.main([str(path)]) == 2
    assert "none of these points" in capsys.readouterr().err


def test_a_point_without_bandwidths_is_predicted_from_its_baseline(
    points: tuple[Point, ...],
) -> None:
    """Unknown hardware widens, it does not fail."""
    known = next(p for p in points if p.id == "H32")
    (found,) = score([known])
    assert found.point.use is Use.SCORE
    assert found.half_width > 0.1


STRANGE = """schema = "hetero-test/points/1"
[[point]]
id = "R1"
url = "https://example.org/rpc/1"
summary = "half of the layers on another machine"
shape = { layers = 32 }
device = [
    { id = "CUDA0", device_class = "discrete_gpu", bandwidth_gb_s = 500 },
    { id = "RPC0", device_class = "discrete_gpu", bandwidth_gb_s = 250 },
]
[point.a]
what = "one machine"
tok_s = 30
read = [{ device = "CUDA0", gb = 8.0, kv_gb = 0.5 }]
[point.b]
what = "two"
tok_s = 20
messages = 2
round_trip_us = 500
link_bytes = 16384
link_gb_s = 0.118
read = [{ device = "CUDA0", gb = 4.0, kv_gb = 0.25 }, { device = "RPC0", gb = 4.0, kv_gb = 0.25 }]
[[point]]
id = "R2"
url = "https://example.org/draft/1"
summary = "a drafter of its own, of which nothing is told"
shape = { layers = 32, experts = 64, used = 4 }
experts_on_cpu = true
a = { what = "alone", tok_s = 10 }
[point.b]
what = "with a drafter"
tok_s = 9
drafting = { window = 4, p = 0.7, kind = "external" }
[[point]]
id = "R3"
quantity = "prefill"
url = "https://example.org/prefill/1"
summary = "a larger batch"
[point.a]
what = "512"
tok_s = 100
prefill = { tokens = 512, ubatch = 512, upload_gb = 20, link_gb_s = 15.75, active_parameters_b = 5 }
[point.b]
what = "4096"
tok_s = 500
[point.b.prefill]
tokens = 4096
ubatch = 4096
upload_gb = 20
link_gb_s = 15.75
active_parameters_b = 5
"""


def test_kinds_of_points_that_are_not_shipped_are_scored(tmp_path: Path) -> None:
    """Other machines, drafters of unknown cost, prompts: all have a prediction and a width."""
    path = tmp_path / "strange.toml"
    path.write_text(STRANGE, encoding="utf-8")
    found = {s.point.id: s for s in score(read_points(path))}
    assert set(found) == {"R1", "R2", "R3"}
    assert found["R1"].predicted < 0
    assert found["R3"].predicted > 0
    assert all(0.03 < s.half_width < 1.5 for s in found.values())
