"""The predicted speeds of an option with their intervals, and the unknown that decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hetero_test.triage.cost.priors import PRIORS
from hetero_test.triage.cost.prompt import break_even_ubatch, compute_ms, upload_ms
from hetero_test.triage.cost.terms import Term
from hetero_test.triage.cost.token import (
    COPY_SIGMA,
    TOKENS_SIGMA,
    TOLD,
    log_ms,
    token_terms,
    weight_gb_s,
)
from hetero_test.triage.learn.fit import SPEED_NOISE
from hetero_test.triage.learn.interval import Interval
from hetero_test.triage.learn.scoring import ROUGHNESS
from hetero_test.triage.learn.uncertainty import (
    deciding_placement,
    predict_placement,
    predict_prompt,
)
from hetero_test.triage.options.option import Option
from hetero_test.triage.options.question import Speeds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hetero_test.triage.cost.placement import Placement
    from hetero_test.triage.cost.priors import Reader
    from hetero_test.triage.cost.prompt import Prompt
    from hetero_test.triage.learn.estimates import Estimates

FACTORS = 60
"""Steps of the search for the value of an unknown at which a gain vanishes."""
REACH = math.log(1000)
"""How far that search goes, in the logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """The unknown with the largest share in the variance of the gain."""

    name: str
    """Its name in `priors`, with its device where it has one."""
    value: float
    """Its middle, in `unit`."""
    unit: str
    share: float
    """Its share of the variance of the gain."""
    turns_at: float | None
    """Its value at which the gain vanishes, all else at the middle; None: no value does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Speeds of one option."""

    option: Option
    decode: Interval
    """tok/s of one stream."""
    gain: Interval | None
    """Decode against the incumbent; None: there is none, or an input is lacking."""
    prefill: Interval | None
    """tok/s; None: unknown."""
    prefill_gain: Interval | None
    request_gain: Interval | None
    """Whole requests against the incumbent, prompt and reply; ends where both speeds end."""
    terms: tuple[Term, ...]
    decider: Decider | None
    break_even_prompt: float | None = None
    """Prompt tokens per reply token at which requests take as long as the incumbent's; None:
    there is no such number, since both speeds gain or both lose."""
    break_even_batch: int | None = None
    """Batch from which they do, where weights are uploaded; None: no batch, or no uploads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """What an option is compared with."""

    label: str
    speeds: Speeds
    measured: bool
    """Whether the decode speed was measured; else it is the forecast of `option`."""
    option: Option | None = None
    baseline: Speeds | None = None
    """Measured speeds of `option`; `speeds` has them, and forecasts where they are missing."""


class Forecaster:
    """Turns options into forecasts.

    Args:
        estimates: fitted to the points and the user's baselines; only gain unknowns that are
            looked up for the first time.
        widening: q of `scoring`.
        measured: what was measured of options as they are, by their keys.
    """

    def __init__(
        self, estimates: Estimates, widening: float, measured: Mapping[str, Speeds] | None = None
    ) -> None:
        self._estimates = estimates
        self._q = widening
        self._measured = measured or {}

    def decode(self, option: Option) -> Interval:
        """tok/s of one stream."""
        value, spread = predict_placement(self._estimates, option.placement, _ms)
        known = self._measured.get(option.key)
        if known is not None:
            return self._around(known.decode_tok_s, SPEED_NOISE)
        return self._around(math.exp(value), spread).inverse().times(1e3)

    def read_tok_s(self, option: Option) -> float:
        """Tokens a second by reading alone, without what a layer or a split costs beside."""
        whole = self.decode(option).value  # so that all unknowns of the terms are held
        terms = token_terms(option.placement, self._estimates.reader())
        reading = sum(term.amount for term in terms if term.where)
        return 1e3 / reading if reading else whole

    def prefill(self, option: Option) -> Interval | None:
        """tok/s of a prompt."""
        if option.prompt is None:
            return None
        value, spread = predict_prompt(self._estimates, option.prompt)
        known = self._measured.get(option.key)
        if known is not None and known.prefill_tok_s is not None:
            return self._around(known.prefill_tok_s, SPEED_NOISE)
        return self._around(math.exp(value), spread).inverse().times(1e3)

    def forecast(self, option: Option, rival: Rival | None, prompt_per_reply: float) -> Forecast:
        """All of an option, against a rival where there is one."""
        decode, prefill = self.decode(option), self.prefill(option)
        gain = decider = None
        if rival is not None and option.lacking is None:
            against = partial(_against, rival)
            value, spread = predict_placement(self._estimates, option.placement, against)
            model = against(deciding_placement(self._estimates, option.placement, against))
            same = rival.option is not None and rival.option.key == option.key
            known = same and not rival.measured
            gain = Interval.around(1.0, 0.0) if known else self._around(math.exp(value), spread)
            others = () if rival.option is None else (rival.option.placement,)
            decider = None if same else self._decider(model, (option.placement, *others))
        prefill_gain = None
        if rival is not None and prefill is not None and rival.speeds.prefill_tok_s:
            prefill_gain = prefill.times(1 / rival.speeds.prefill_tok_s)
        ours = (decode.value, None if prefill is None else prefill.value)
        return Forecast(
            option=option,
            decode=decode,
            gain=gain,
            prefill=prefill,
            prefill_gain=prefill_gain,
            request_gain=_request(decode, prefill, rival, prompt_per_reply),
            terms=token_terms(option.placement, self._estimates.reader()),
            decider=decider,
            break_even_prompt=None if rival is None else _even_prompt(ours, rival.speeds),
            break_even_batch=None
            if rival is None
            else _even_batch(
                option.prompt,
                decode.value,
                rival.speeds,
                prompt_per_reply,
                self._estimates.reader(),
            ),
        )

    def _around(self, value: float, spread: float) -> Interval:
        return Interval.around(value, value * self._q * math.hypot(spread, ROUGHNESS))

    def _decider(
        self, model: Callable[[Reader], float], placements: Sequence[Placement]
    ) -> Decider | None:
        shares = self._estimates.shares(model)
        if not shares:
            return None
        name, share = shares[0]
        factor = self._turning_factor(model, name)
        told = _in_words(name, placements, self._estimates)
        power = told.power
        return Decider(
            name=told.name,
            value=told.value,
            unit=told.unit,
            share=share,
            turns_at=None if factor is None else told.value * factor**power,
        )

    def _turning_factor(self, model: Callable[[Reader], float], name: str) -> float | None:
        """Factor on an unknown at which the model is zero; None: there is none within reach."""

        def at(log_factor: float) -> float:
            return model(self._estimates.shifted(name, math.exp(log_factor)))

        middle = at(0.0)
        for end in (-REACH, REACH):
            if (at(end) > 0) == (middle > 0):
                continue
            inner, outer = 0.0, end
            for _ in range(FACTORS):
                half = (inner + outer) / 2
                inner, outer = (half, outer) if (at(half) > 0) == (middle > 0) else (inner, half)
            return math.exp((inner + outer) / 2)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """An unknown with its value in its own unit."""

    name: str
    value: float
    unit: str
    power: float = 1.0
    """How the value follows a factor on the unknown."""


def _in_words(name: str, placements: Sequence[Placement], estimates: Estimates) -> _Told:
    """An unknown in its own unit; a factor on a bandwidth as that bandwidth."""
    base, _, device_id = name.partition("@")
    if base == "drafting:tokens" and placements[0].drafting is not None:
        drafting = placements[0].drafting
        power = drafting.tokens_sigma / TOKENS_SIGMA
        return _Told(name=base, value=drafting.tokens_per_round, unit="tokens a round", power=power)
    kind, _, rest = base.partition(":")
    if kind in {"device", "weights", "nominal"} or base in TOLD:
        for placement in placements:
            for part in placement.reads:
                device = placement.device(part.device)
                of_class = device.device_class.value == rest.split(":")[0]
                if device.id == device_id or (of_class and device_id in {"", "rig"}):
                    rate = weight_gb_s(device, part, estimates.reader())
                    power = device.copy_sigma / COPY_SIGMA if base == "told:copy" else 1.0
                    told = f"{base}@{device.id}"
                    return _Told(name=told, value=rate, unit="GB/s", power=power)
    value = estimates.known(base)[0] * (estimates.known(name)[0] if device_id else 1.0)
    return _Told(name=name, value=value, unit=PRIORS[base].unit)


def _even_batch(
    prompt: Prompt | None, decode_tok_s: float, rival: Speeds, per_reply: float, read: Reader
) -> int | None:
    """Batch from which an uploading placement's requests are as fast as the rival's."""
    if prompt is None or not rival.prefill_tok_s or not per_reply:
        return None
    upload = upload_ms(prompt, read)
    saved = 1e3 / rival.decode_tok_s - 1e3 / decode_tok_s
    wanted = 1e3 / rival.prefill_tok_s + saved / per_reply
    return break_even_ubatch(upload, wanted, compute_ms(prompt, read)) if upload else None


def _ms(placement: Placement) -> Callable[[Reader], float]:
    """ln(ms a token) as a function of the unknowns."""
    return partial(log_ms, placement)


def _against(rival: Rival, placement: Placement) -> Callable[[Reader], float]:
    """ln(placement / rival) as a function of the unknowns."""
    if rival.measured or rival.option is None:
        known = math.log(1e3 / rival.speeds.decode_tok_s)
        return lambda read: known - log_ms(placement, read)
    other = rival.option.placement
    return lambda read: log_ms(other, read) - log_ms(placement, read)


def _request(
    decode: Interval, prefill: Interval | None, rival: Rival | None, prompt_per_reply: float
) -> Interval | None:
    """Time of a request of the rival over ours; None: a prefill speed is not known."""
    if rival is None or prefill is None or not rival.speeds.prefill_tok_s:
        return None
    theirs = 1 / rival.speeds.decode_tok_s + prompt_per_reply / rival.speeds.prefill_tok_s

    def at(decode_tok_s: float, prefill_tok_s: float) -> float:
        return theirs / (1 / decode_tok_s + prompt_per_reply / prefill_tok_s)

    return Interval(
        low=at(decode.low, prefill.low),
        value=at(decode.value, prefill.value),
        high=at(decode.high, prefill.high),
    )


def _even_prompt(ours: tuple[float, float | None], rival: Speeds) -> float | None:
    """Prompt tokens per reply token at which both take equally long: saved ms / lost ms."""
    decode, prefill = ours
    if prefill is None or not rival.prefill_tok_s:
        return None
    saved = 1 / rival.decode_tok_s - 1 / decode
    lost = 1 / prefill - 1 / rival.prefill_tok_s
    return saved / lost if saved * lost > 0 else None
