"""The answer to a question: options judged and ranked, hazards, inputs, what does not help."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hetero_test.triage.answer.baselines import baseline, recalibrate
from hetero_test.triage.answer.forecast import Forecast, Forecaster, Rival
from hetero_test.triage.answer.hazard import Hazard
from hetero_test.triage.answer.hazards_model import model_hazards
from hetero_test.triage.answer.hazards_rig import rig_hazards
from hetero_test.triage.answer.inputs import Input, inputs
from hetero_test.triage.answer.not_helpful import (
    NotHelpful,
    cautions,
    contradicts_its_data_sheet,
    not_helpful,
)
from hetero_test.triage.answer.recommendation import Recommendation, recommend
from hetero_test.triage.cost.memory import Fit, fits
from hetero_test.triage.learn.scoring import Call
from hetero_test.triage.model.bytes import ModelBytes
from hetero_test.triage.options import draft
from hetero_test.triage.options.candidates import alone_options, split_options
from hetero_test.triage.options.devices import accelerators, bandwidth_known
from hetero_test.triage.options.option import OptionFamily
from hetero_test.triage.options.question import Speeds, TriageQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hetero_test.triage.learn.estimates import Estimates
    from hetero_test.triage.options.option import Option

FAMILIES = list(OptionFamily)
CALLS = [Call.GO, Call.MEASURE_FIRST, Call.NO_GO]
ALIKE = 0.05
"""Gains that differ by less, in the logarithm, are ranked by how boring they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An option with its forecast and its recommendation."""

    forecast: Forecast
    recommendation: Recommendation
    incumbent: bool = False
    """Whether it is what the others are compared with."""

    @property
    def option(self) -> Option:
        """The option itself."""
        return self.forecast.option


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageAnswer:
    """Everything that the reports show."""

    question: TriageQuestion
    sizes: ModelBytes
    rival: Rival | None
    ranked: tuple[Ranked, ...]
    hazards: tuple[Hazard, ...]
    not_helpful: tuple[NotHelpful, ...]
    inputs: tuple[Input, ...]
    cautions: tuple[str, ...]
    """What to know first: assumed bandwidths, and measurements that contradict each other."""
    widening: float
    """q of `scoring`: standard deviations to either end of an interval."""

    @property
    def best(self) -> Ranked | None:
        """The first option that is not what runs today; None: there is none."""
        return next((ranked for ranked in self.ranked if not ranked.incumbent), None)

    @property
    def call(self) -> Call:
        """The answer in one word."""
        return Call.NO_GO if self.best is None else self.best.recommendation.call


def answer(question: TriageQuestion, estimates: Estimates, widening: float) -> TriageAnswer:
    """Answer a question.

    Args:
        question: what is asked.
        estimates: what the calibration points teach; not changed.
        widening: how far predictions have missed, in standard deviations (`scoring.widening`).

    Raises:
        UsageError: the question names a KV type that does not exist.
    """
    sizes = question.sizes_of(question.model)
    own = estimates.copy()
    alone = alone_options(question, sizes)
    contradictions = recalibrate(own, question, alone)
    measured = _measured(question, alone)
    forecaster = Forecaster(own, widening, measured)
    speeds = {option.devices[0]: forecaster.read_tok_s(option) for option in alone}
    splits = split_options(question, sizes, speeds)
    rival = _rival(question, forecaster, alone, splits, measured)
    options = [*alone, *splits, *_drafting(question, rival, own)]
    doubted = frozenset(contradictions) | {
        device.id
        for device in question.rig.devices
        if contradicts_its_data_sheet(device) and baseline(question, device) is None
    }
    ranked = [_ranked(question, forecaster, option, rival, doubted) for option in options]
    return TriageAnswer(
        question=question,
        sizes=sizes,
        rival=rival,
        ranked=tuple(sorted(ranked, key=_order)),
        hazards=(*rig_hazards(question), *model_hazards(question, sizes)),
        not_helpful=tuple(not_helpful(question, sizes, alone)),
        inputs=tuple(inputs(question, sizes, own)),
        cautions=(*cautions(question), *contradictions.values()),
        widening=widening,
    )


def _measured(question: TriageQuestion, alone: Sequence[Option]) -> dict[str, Speeds]:
    """Measured speeds of devices alone, by the key of the option."""
    found = {}
    for option in alone:
        device = question.rig.device(option.devices[0])
        speeds = None if device is None else baseline(question, device)
        if speeds is not None:
            found[option.key] = speeds
    return found


def _rival(
    question: TriageQuestion,
    forecaster: Forecaster,
    alone: Sequence[Option],
    splits: Sequence[Option],
    measured: Mapping[str, Speeds],
) -> Rival | None:
    """What runs today: as the user gave it, else the fastest device alone that holds the model."""
    fitting = [o for o in alone if fits(o.fills) is not Fit.NO]
    cards = {device.id for device in accelerators(question.rig)}
    if len(cards) > 1 and not any(cards & set(option.devices) for option in fitting):
        # None of several cards holds the model: one of them beside the host is the boring way.
        fitting += [
            option
            for option in splits
            if option.family in (OptionFamily.RESIDENT, OptionFamily.CONTIGUOUS)
            and len(cards & set(option.devices)) == 1
            and fits(option.fills) is not Fit.NO
        ]
    best = max(fitting, key=lambda o: forecaster.decode(o).value, default=None)
    if question.incumbent is not None:
        return Rival(
            label="what runs today, as told",
            speeds=question.incumbent,
            measured=True,
            option=best,
        )
    if best is None:
        return None
    prefill = forecaster.prefill(best)
    return Rival(
        label=best.title,
        speeds=Speeds(
            decode_tok_s=forecaster.decode(best).value,
            prefill_tok_s=None if prefill is None else prefill.value,
        ),
        measured=False,
        option=best,
        baseline=measured.get(best.key),
    )


def _drafting(
    question: TriageQuestion,
    rival: Rival | None,
    estimates: Estimates,
) -> list[Option]:
    """Drafting on top of what runs today."""
    base = rival.option if rival is not None else None
    if base is None:
        return []
    found = []
    own = draft.own_head(question, base)
    if own is not None:
        found.append(own)
    asked = question.draft
    if asked is None or asked.model is None:
        return found
    names = (
        [asked.device]
        if asked.device
        else [device.id for device in accelerators(question.rig) if device.id not in base.devices]
    )
    drafter = question.sizes_of(asked.model)
    for name in names or [base.devices[0]]:
        device = question.rig.device(name)
        if device is not None:
            found.append(draft.external(question, asked, base, device, drafter, estimates)[0])
    return found


def _ranked(
    question: TriageQuestion,
    forecaster: Forecaster,
    option: Option,
    rival: Rival | None,
    contradicted: frozenset[str],
) -> Ranked:
    forecast = forecaster.forecast(option, rival, question.prompt_per_reply)
    devices = [question.rig.device(name) for name in option.devices]
    known = all(
        device is not None and (bandwidth_known(device) or device.id in question.baselines)
        for device in devices
    )
    same = rival is not None and _is_today(rival, forecast)
    doubted = tuple(name for name in option.devices if name in contradicted)
    recommendation = recommend(question, forecast, alone_known=known, contradicted=doubted)
    if same and rival is not None:
        told = "predicted"
        if rival.measured or rival.baseline is not None:
            how = "as told" if rival.measured else "measured"
            told = f"{rival.speeds.decode_tok_s:.1f} tok/s {how}"
        recommendation = replace(recommendation, reason=f"taken for what runs today ({told})")
    return Ranked(
        forecast=forecast,
        recommendation=recommendation,
        incumbent=same,
    )


def _is_today(rival: Rival, forecast: Forecast) -> bool:
    """Whether an option is what the others are compared with, as far as is known.

    A speed outside its interval means that something else runs (with drafting, for example).
    """
    if rival.option is None or rival.option.key != forecast.option.key:
        return False
    decode = forecast.decode
    return not rival.measured or decode.low <= rival.speeds.decode_tok_s <= decode.high


def _order(ranked: Ranked) -> tuple[float, ...]:
    """The incumbent, then GO, MEASURE FIRST, NO-GO; larger gains first, boring before clever."""
    gain = ranked.forecast.gain
    step = 0.0 if gain is None else -round(math.log(gain.value) / ALIKE)
    return (
        not ranked.incumbent,
        CALLS.index(ranked.recommendation.call),
        ranked.recommendation.fit is Fit.NO,
        step,
        FAMILIES.index(ranked.option.family),
    )
