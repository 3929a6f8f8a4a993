"""GO, NO-GO or MEASURE FIRST: what a forecast is worth.

A gain inside its own interval is never GO. What does not fit is NO-GO; what gains in decode and
loses more in prefill is NO-GO, with the workload at which that turns. A split occupies two
devices, so one that gains less than a twentieth is not worth its trouble.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.triage.cost.memory import Fit, fits
from hetero_test.triage.cost.token import TOLD
from hetero_test.triage.learn.scoring import Call
from hetero_test.triage.options.option import OptionFamily

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.triage.answer.forecast import Decider, Forecast
    from hetero_test.triage.learn.interval import Interval
    from hetero_test.triage.options.question import TriageQuestion

WORTH = 1.05
"""Gain below which a split does not pay for a second device and its trouble."""
PROMISING = 1.25
"""Upper end from which an option that is most likely slower is still worth a measurement, and
gain from which another engine is worth one."""
GIB = 2**30

WHAT_TO_MEASURE = {
    "split": ("cost of a graph split", "decode at two numbers of splits, or --calibrate RUNDIR"),
    "staged": ("cost of a copy between the cards", "p2pBandwidthLatencyTest, peer access off"),
    "latency:staged": ("latency between the cards", "p2pBandwidthLatencyTest, peer access off"),
    "latency:peer": ("latency between the cards", "p2pBandwidthLatencyTest"),
    "layer": ("cost of a layer beside its reads", "decode of the model in a smaller quantization"),
    "kv": ("share of bandwidth that attention reaches", "llama-bench -d 0,CONTEXT"),
    "all_reduce": ("cost of an all-reduce", "decode with -sm tensor on a small model"),
    "beta": ("cost of a row more in verification", "llama-batched-bench -npl 1,2,4 (--verify)"),
    "eta": ("experts that a batch touches", "llama-batched-bench -npl 1,2,4 (--verify)"),
    "expert_time": ("share of a step that experts take", "decode with and without the split"),
    "draft": ("cost of a draft", "decode of the drafter alone on its device"),
    "drafting": ("acceptance and cost of a round", "a run with the drafter on your own prompts"),
    "traffic": ("traffic that hot experts serve", "a log of the routing on your own prompts"),
    "quant": ("speed of these weights on the CPU", "decode of the CPU alone (--baseline)"),
    "compute": ("speed of prefill", "llama-bench -p 2048 (--baseline DEVICE=TOK_S,PREFILL)"),
    "link": ("speed of the link", "a copy test under load (--link GB_S)"),
    "told": ("what was fitted before", "a run of this placement, --calibrate RUNDIR"),
    "rate": ("speed of a device", "decode of each device alone (--baseline)"),
    "rpc": ("cost of a message", "decode through RPC on this machine"),
}
"""An unknown in words and how to measure it, by the longest key that its name begins with."""
_BANDWIDTH = ("bandwidth that {device} reaches", "decode of {device} alone (--baseline)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The answer for one option."""

    call: Call
    reason: str
    decides: str
    """The one number that decides it."""
    measure: str
    """What to measure to be more certain."""
    fit: Fit


def recommend(
    question: TriageQuestion,
    forecast: Forecast,
    *,
    alone_known: bool,
    contradicted: Sequence[str] = (),
) -> Recommendation:
    """The recommendation on an option.

    Args:
        question: how the model is used.
        forecast: the option's.
        alone_known: whether the speed of every device's memory is given or measured.
        contradicted: its devices whose baseline and bandwidth contradict each other.
    """
    option = forecast.option
    fit = fits(option.fills)
    decides, measure = decider_words(forecast.decider)
    if fit is Fit.NO:
        pool = max(option.fills, key=lambda f: f.missing)
        lacks = pool.missing or sum(f.used for f in option.fills) - max(
            f.capacity or 0.0 for f in option.fills
        )
        decides = f"{pool.device}: {lacks / GIB:.1f} GiB are missing"
        return _recommendation(Call.NO_GO, f"does not fit: {decides}", decides, "nothing", fit)
    if option.impossible is not None:
        return _recommendation(Call.NO_GO, option.impossible, decides, "nothing", fit)
    if option.lacking is not None:
        note = next((n for n in option.notes if "break-even" in n), option.lacking)
        return _recommendation(
            Call.MEASURE_FIRST, f"{option.lacking} is not known", note, option.lacking, fit
        )
    if option.family is OptionFamily.ENDPOINTS:
        return _endpoints(question, fit)
    if forecast.gain is None:
        return _recommendation(
            Call.MEASURE_FIRST, "there is nothing to compare with", decides, measure, fit
        )
    call, reason = _by_gain(forecast)
    if call is not Call.NO_GO:
        call, reason = _by_request(forecast, call, reason)
    if not option.flags and call is not Call.NO_GO:
        call, reason = _elsewhere(forecast.gain, reason)
    if call is Call.GO and fit is Fit.UNKNOWN:
        call, reason = Call.MEASURE_FIRST, f"{reason}, but whether it fits is not known"
    if call is Call.GO and not alone_known:
        call, reason = Call.MEASURE_FIRST, f"{reason}, but a device's speed is not known at all"
    if contradicted and (call is Call.GO or forecast.gain.value > 1 / PROMISING):
        names = " and ".join(contradicted)
        call, reason = (
            Call.MEASURE_FIRST,
            f"{reason}, but what is told of {names} contradicts itself",
        )
    if forecast.break_even_prompt is not None and call is Call.NO_GO and "prefill" in reason:
        decides = f"{forecast.break_even_prompt:.2f} prompt tokens a reply token"
        measure = "prefill of this placement at the batch size in use"
    return _recommendation(call, reason, decides, measure, fit)


def decider_words(decider: Decider | None) -> tuple[str, str]:
    """The deciding unknown with its value and turning point, and how to measure it."""
    if decider is None:
        return "nothing is in doubt", "nothing"
    noun, how = _words(decider.name)
    told = f"{noun}: {decider.value:.3g} {decider.unit}"
    if decider.turns_at is not None:
        told += f"; at {decider.turns_at:.3g} both are as fast"
    return told, how


def _elsewhere(gain: Interval, reason: str) -> tuple[Call, str]:
    """What another engine than today's is worth: never GO, since its speed is not known."""
    if gain.value < PROMISING:
        return Call.NO_GO, f"{reason}; not worth another engine"
    return Call.MEASURE_FIRST, f"{reason}, in another engine than today's"


def _by_gain(forecast: Forecast) -> tuple[Call, str]:
    gain = forecast.gain
    assert gain is not None
    told = f"decode ×{gain.value:.2f} ({gain.low:.2f} to {gain.high:.2f})"
    if gain.high < 1:
        return Call.NO_GO, f"{told}: slower than what runs today"
    if gain.high < WORTH:
        return Call.NO_GO, f"{told}: not worth its trouble"
    if gain.low > 1:
        return Call.GO, told
    if gain.value < 1 and gain.high < PROMISING:
        return Call.NO_GO, f"{told}: most likely slower, and little to be had at best"
    return Call.MEASURE_FIRST, f"{told}: the gain lies within its own interval"


def _by_request(forecast: Forecast, call: Call, reason: str) -> tuple[Call, str]:
    """What decode promises against what prefill loses, over a whole request."""
    prefill, request = forecast.prefill_gain, forecast.request_gain
    if forecast.prefill is None:
        return Call.MEASURE_FIRST, f"{reason}, but its prefill cannot be told"
    if prefill is None or request is None or request.value >= 1:
        return call, reason
    worse = f"{reason}; prefill ×{prefill.value:.2f} makes requests slower (×{request.value:.2f})"
    if request.high >= 1:
        return Call.MEASURE_FIRST, worse
    unless = []
    if forecast.break_even_prompt is not None:
        few = f"{forecast.break_even_prompt:.2f} prompt tokens come a reply token"
        unless.append(f"fewer than {few}")
    if forecast.break_even_batch is not None:
        size = forecast.break_even_batch
        unless.append(f"prompts and batches are of {size} tokens or more")
    if unless:
        worse += f", unless {' or '.join(unless)}"
    return Call.NO_GO, worse


def _endpoints(question: TriageQuestion, fit: Fit) -> Recommendation:
    if question.slots < 2:
        return _recommendation(
            Call.NO_GO,
            "one stream gains nothing from a second endpoint",
            "streams at a time: 1 (--slots)",
            "how many requests really run at once",
            fit,
        )
    call = Call.GO if fit is Fit.YES else Call.MEASURE_FIRST
    return _recommendation(
        call,
        "streams side by side get both devices, and no stream waits for a link",
        f"streams at a time: {question.slots}",
        "decode of each device alone",
        fit,
    )


def _words(name: str) -> tuple[str, str]:
    base, _, device = name.partition("@")
    if base.split(":")[0] in {"device", "weights", "nominal"} or base in TOLD:
        where = device if device and device != "rig" else base.split(":")[1].replace("_", " ")
        return _BANDWIDTH[0].format(device=where), _BANDWIDTH[1].format(device=where)
    for known in sorted(WHAT_TO_MEASURE, key=len, reverse=True):
        if base.startswith(known):
            return WHAT_TO_MEASURE[known]
    return base, "decode of each device alone (--baseline)"


def _recommendation(
    call: Call, reason: str, decides: str, measure: str, fit: Fit
) -> Recommendation:
    return Recommendation(call=call, reason=reason, decides=decides, measure=measure, fit=fit)
