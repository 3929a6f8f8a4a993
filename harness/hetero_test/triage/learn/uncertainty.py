"""How uncertain the prediction of a placement is, where the slope at the middle is not enough.

All devices of a parallel split wait for the slowest. At the middle of the estimates that is one of
them, and the uncertainty of the others would not count, although any of them may be the slowest:
an unmeasured card beside a measured one would seem to be measured too.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hetero_test.triage.cost.prompt import prompt_log_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hetero_test.triage.cost.placement import Placement
    from hetero_test.triage.cost.priors import Reader
    from hetero_test.triage.cost.prompt import Prompt
    from hetero_test.triage.learn.estimates import Estimates

    Modeled = Callable[[Placement], Callable[[Reader], float]]


def predict_placement(
    estimates: Estimates, placement: Placement, modeled: Modeled
) -> tuple[float, float]:
    """Mean and standard deviation of a logarithm of a placement's time.

    Of a parallel split the deviation is at least that with each of its devices as the slowest,
    in the proportion of its time to the whole.

    Args:
        estimates: only gain unknowns that are looked up for the first time.
        placement: whose time it is.
        modeled: the logarithm as a function of the unknowns: of the time in ms, or of a ratio
            with it.
    """
    value, spread = estimates.predict(modeled(placement))
    return value, max([spread, *_as_slowest(estimates, placement, modeled, value).values()])


def deciding_placement(estimates: Estimates, placement: Placement, modeled: Modeled) -> Placement:
    """The placement with that device as its slowest which leaves it most uncertain."""
    value, spread = estimates.predict(modeled(placement))
    found = _as_slowest(estimates, placement, modeled, value)
    widest = max(found, key=lambda name: found[name], default=None)
    if widest is None or found[widest] <= spread:
        return placement
    return replace(placement, slowest=widest)


def predict_prompt(estimates: Estimates, prompt: Prompt) -> tuple[float, float]:
    """Mean and standard deviation of ln(ms a token) of a prompt, likewise."""
    value, spread = estimates.predict(partial(prompt_log_ms, prompt))
    devices = [part.device for part in prompt.computing] if prompt.parallel else []
    found = _deviations(
        estimates,
        devices,
        lambda name: partial(prompt_log_ms, replace(prompt, slowest=name)),
        value,
    )
    return value, max([spread, *found.values()])


def _as_slowest(
    estimates: Estimates, placement: Placement, modeled: Modeled, value: float
) -> dict[str, float]:
    """By device of a parallel split: the deviation if the others waited for it."""
    reading = {part.device for part in placement.reads} if placement.parallel else set()
    devices = [device.id for device in placement.devices if device.id in reading]
    return _deviations(
        estimates, devices, lambda name: modeled(replace(placement, slowest=name)), value
    )


def _deviations(
    estimates: Estimates,
    devices: Sequence[str],
    waiting_for: Callable[[str], Callable[[Reader], float]],
    value: float,
) -> dict[str, float]:
    """Deviations with each device as the slowest, in the proportion of its time to `value`."""
    found = {}
    for name in devices:
        one, spread = estimates.predict(waiting_for(name))
        found[name] = spread * math.exp(-abs(one - value))
    return found
