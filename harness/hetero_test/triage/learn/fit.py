"""Fits the estimates to the calibration points, and predicts one point by the others.

Points of one rig share its deviations, which are forgotten after it; what they say of the classes
is kept. Before a point is scored everything of its repository or thread is left out, so that no
point is scored on what it was fitted to.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hetero_test.triage.cost.placement import Drafting, Placement, Read
from hetero_test.triage.cost.priors import first_estimate
from hetero_test.triage.cost.prompt import Computing, Prompt, prompt_log_ms
from hetero_test.triage.cost.token import log_ms, verify_cost
from hetero_test.triage.learn.estimates import Estimates
from hetero_test.triage.learn.points import Quantity, Use
from hetero_test.triage.learn.uncertainty import predict_placement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hetero_test.triage.cost.priors import Reader
    from hetero_test.triage.learn.points import Point, PointPlacement

SPEED_NOISE = 0.03
"""Standard deviation of ln(speed) between runs of one placement."""
MODEL_NOISE = 0.08
"""Likewise, of what the terms leave out, when a point is fitted to."""
BATCH_NOISE = 0.15
"""Likewise, of a batch's cost, which changes in steps from kernel to kernel."""


def learn(points: Iterable[Point], *, without: frozenset[str] = frozenset()) -> Estimates:
    """First estimates, narrowed by all points but those of these sources.

    Args:
        points: in any order; taken by source and rig.
        without: names as `Point.origin` has them.
    """
    estimates = Estimates(first_estimate)
    usable = [p for p in points if p.use is not Use.NONE and p.origin not in without]
    for place in sorted({point.place for point in usable}):
        for point in usable:
            if point.place == place and not point.shares:
                _teach(estimates, point)
        estimates.drop(lambda name: "@" in name)
    return estimates


def predict_point(point: Point, estimates: Estimates) -> tuple[float, float]:
    """ln(b/a) and its standard deviation, with `a` and device speeds as measured baselines.

    Args:
        point: one that is scored.
        estimates: fitted to other sources; not changed.
    """
    assert point.a is not None
    assert point.b is not None
    own = estimates.copy()
    baseline, tried = _model(point, point.a), _model(point, point.b)
    _endpoints(own, point, point.a)
    if point.a.tok_s:
        own.condition(baseline, math.log(1e3 / point.a.tok_s), SPEED_NOISE)
    if point.quantity is Quantity.PREFILL:
        return own.predict(lambda read: baseline(read) - tried(read))

    def ratio(placement: Placement) -> Callable[[Reader], float]:
        return lambda read: baseline(read) - log_ms(placement, read)

    return predict_placement(own, point.placement(point.b), ratio)


def _teach(estimates: Estimates, point: Point) -> None:
    for rows, cost in point.verify_measured.items():
        estimates.condition(_batch(point, int(rows)), math.log(cost), BATCH_NOISE)
    # The speed of a baseline that drafts mixes its step and its rounds: take the ratio.
    together = point.a is not None and point.a.drafting is not None
    if point.a is not None and point.a.tok_s and not together:
        noise = MODEL_NOISE if point.a.read else SPEED_NOISE
        estimates.condition(_model(point, point.a), math.log(1e3 / point.a.tok_s), noise)
    if point.a is not None and point.b is not None and point.log_ratio is not None:
        a, b = _model(point, point.a), _model(point, point.b)
        if together or not point.b.tok_s:
            estimates.condition(lambda read: a(read) - b(read), point.log_ratio, MODEL_NOISE)
        else:
            estimates.condition(b, math.log(1e3 / point.b.tok_s), MODEL_NOISE)
    estimates.drop(lambda name: name == "step" or name.startswith("drafting:"))


def _model(point: Point, side: PointPlacement) -> Callable[[Reader], float]:
    """ln(ms a token) of one side as a function of the unknowns."""
    if point.quantity is Quantity.PREFILL:
        assert side.prefill is not None
        prompt = Prompt(
            tokens=side.prefill.tokens,
            ubatch=side.prefill.ubatch,
            upload_gb=side.prefill.upload_gb,
            link_gb_s=side.prefill.link_gb_s,
            active_parameters_b=side.prefill.active_parameters_b,
            computing=(Computing(device="main", device_class=point.main_class),),
        )
        return partial(prompt_log_ms, prompt)
    placement = point.placement(side)
    return partial(log_ms, placement)


def _batch(point: Point, rows: int) -> Callable[[Reader], float]:
    """Ln V(rows) of a placement as a function of the unknowns."""
    placement = Placement(
        shape=point.shape, main_class=point.main_class, experts_on_cpu=point.experts_on_cpu
    )
    drafting = Drafting(window=max(1, rows - 1), tokens_per_round=1.0, rows=rows)
    return lambda read: math.log(verify_cost(placement, drafting, (), read))


def _endpoints(estimates: Estimates, point: Point, side: PointPlacement) -> None:
    """Condition on devices that were measured doing all of it alone."""
    placement = point.placement(side)
    for device in placement.devices:
        if device.alone_tok_s is None:
            continue
        alone = Placement(
            devices=placement.devices,
            shape=placement.shape,
            reads=_on_device(device.id, placement.reads),
            overheads=placement.overheads,
        )
        goal = math.log(1e3 / device.alone_tok_s)
        estimates.condition(partial(log_ms, alone), goal, SPEED_NOISE)


def _on_device(device_id: str, reads: Sequence[Read]) -> tuple[Read, ...]:
    return tuple(replace(part, device=device_id) for part in reads)
