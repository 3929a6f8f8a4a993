"""How the user's baselines change the estimates, and where they contradict the rig."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from hetero_test.triage.cost.prompt import prompt_log_ms
from hetero_test.triage.cost.token import log_ms, own_unknowns
from hetero_test.triage.learn.fit import SPEED_NOISE
from hetero_test.triage.learn.scoring import ROUGHNESS
from hetero_test.triage.options.devices import bandwidth_told, counted_bandwidth
from hetero_test.triage.options.question import Speeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.learn.estimates import Estimates
    from hetero_test.triage.options.option import Option
    from hetero_test.triage.options.question import TriageQuestion

CONTRADICTION = 2.5
"""Standard deviations by which a baseline and the rig's figures may differ."""
OWN_FAULT = 3.0
"""How much more than the surprise a contradicted device's own speed is loosened, so that it and
not the cost of a layer explains the surprise."""


def baseline(question: TriageQuestion, device: DeviceFacts) -> Speeds | None:
    """The measured speed of a device alone: the command line's, else the rig file's."""
    return question.baselines.get(device.id) or _filed(question, device)


def recalibrate(
    estimates: Estimates, question: TriageQuestion, alone: Sequence[Option]
) -> dict[str, str]:
    """Learn from the measured speed of single devices.

    A speed that no device of the class explains is taken as special to the device, and nothing
    is concluded from it about the others.

    Returns:
        What contradicts the rig, a sentence by the id of each device.
    """
    found = {}
    for option in alone:
        device = question.rig.device(option.devices[0])
        assert device is not None
        speeds = baseline(question, device)
        if speeds is None:
            continue
        model = partial(log_ms, option.placement)
        goal = math.log(1e3 / speeds.decode_tok_s)
        expected, spread = estimates.predict(model)
        surprise = goal - expected
        contradicts = abs(surprise) > CONTRADICTION * math.hypot(spread, ROUGHNESS)
        if contradicts and bandwidth_told(device):
            for name in own_unknowns(option.placement.device(device.id)):
                estimates.loosen(name, OWN_FAULT * abs(surprise))
            told = _contradiction(device, speeds.decode_tok_s, 1e3 / math.exp(expected))
            found[device.id] = told
        estimates.condition(model, goal, SPEED_NOISE)
        if speeds.prefill_tok_s and option.prompt is not None:
            goal = math.log(1e3 / speeds.prefill_tok_s)
            estimates.condition(partial(prompt_log_ms, option.prompt), goal, SPEED_NOISE)
    return found


def _contradiction(device: DeviceFacts, tok_s: float, expected_tok_s: float) -> str:
    fact = counted_bandwidth(device)
    rate = "" if fact is None else f" of {float(fact.value):.4g} GB/s ({fact.origin})"
    return (
        f"{device.id}: its baseline of {tok_s:.4g} tok/s and its bandwidth{rate}, by which "
        f"{expected_tok_s:.3g} tok/s are to be expected, contradict each other; the baseline is "
        f"believed, for {device.id} alone: was all of the model on it, at this context?"
    )


def _filed(question: TriageQuestion, device: DeviceFacts) -> Speeds | None:
    """A baseline of this very model in the rig file."""
    for one in device.baselines:
        if one.model.casefold() != question.model.name.casefold():
            continue
        if one.decode_tok_s is not None:
            prefill = one.prefill_tok_s
            return Speeds(
                decode_tok_s=float(one.decode_tok_s.value),
                prefill_tok_s=None if prefill is None else float(prefill.value),
            )
    return None
