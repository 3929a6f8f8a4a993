"""How unsure a prediction of a placement is, where a slope at the middle does not tell.

All devices of a parallel split wait for the slower one. At the middle of what is believed that
is one of them, and how unsure the others are would count for nothing, although any of them may
be the slower one: an unmeasured card beside a measured one would seem to be measured too.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.triage.beliefs import Beliefs, Reader
    from harness.triage.placement import Placement

    Modeled = Callable[[Placement], Callable[[Reader], float]]


def predict_placement(
    beliefs: Beliefs, placement: Placement, modeled: Modeled
) -> tuple[float, float]:
    """Mean and standard deviation of a logarithm of a placement's time.

    Of a parallel split the deviation is at least that with each of its devices as the one that
    is waited for, in the proportion of its time to the whole.

    Args:
        beliefs: what is believed; changed only by unknowns that are met.
        placement: whose time it is.
        modeled: the logarithm as a function of the unknowns: of the time in ms, or of a ratio
            with it.
    """
    value, spread = beliefs.predict(modeled(placement))
    return value, max([spread, *_as_slowest(beliefs, placement, modeled, value).values()])


def deciding_placement(beliefs: Beliefs, placement: Placement, modeled: Modeled) -> Placement:
    """The placement with the device as its slowest that leaves most in doubt."""
    value, spread = beliefs.predict(modeled(placement))
    found = _as_slowest(beliefs, placement, modeled, value)
    widest = max(found, key=lambda name: found[name], default=None)
    if widest is None or found[widest] <= spread:
        return placement
    return replace(placement, slowest=widest)


def _as_slowest(
    beliefs: Beliefs, placement: Placement, modeled: Modeled, value: float
) -> dict[str, float]:
    """By device of a parallel split: the deviation if the others waited for it."""
    if not placement.parallel:
        return {}
    found = {}
    for device in placement.devices:
        if any(part.device == device.id for part in placement.reads):
            one, spread = beliefs.predict(modeled(replace(placement, slowest=device.id)))
            found[device.id] = spread * math.exp(-abs(one - value))
    return found
