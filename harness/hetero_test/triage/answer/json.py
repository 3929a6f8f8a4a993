"""``hetero-test/triage/1``: an answer as the JSON document that other programs read.

First version. Speeds are tok/s, times milliseconds, sizes bytes; an interval is ``{low, value,
high}`` at 80 %. Unknown is null, never 0. The reports render from this document, so they can be
made again from a file; `compare_with_run` compares it with a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hetero_test.triage.options.devices import assumed_gb_s, counted_bandwidth

if TYPE_CHECKING:
    from hetero_test.rig.facts import DeviceFacts
    from hetero_test.triage.answer.answer import Ranked, TriageAnswer
    from hetero_test.triage.answer.forecast import Rival
    from hetero_test.triage.cost.memory import Fill
    from hetero_test.triage.learn.interval import Interval
    from hetero_test.triage.options.question import TriageQuestion

SCHEMA = "hetero-test/triage/1"
NO_OTHER = "there is nothing to compare with: no other way to place it on this rig"


def answer_document(answer: TriageAnswer, *, points: int, sources: int) -> dict[str, Any]:
    """The whole answer as plain data.

    Args:
        answer: what was found.
        points: published points that the intervals come from.
        sources: repositories and threads that they are from.
    """
    best, rival = answer.best, answer.rival
    return {
        "schema": SCHEMA,
        "verdict": {
            "call": answer.call.value,
            "option": None if best is None else best.option.key,
            "title": None if best is None else best.option.title,
            "reason": NO_OTHER if best is None else best.recommendation.reason,
        },
        "cautions": list(answer.cautions),
        "question": _question(answer.question),
        "model": _model(answer),
        "rig": [_device(device) for device in answer.question.rig.devices],
        "incumbent": None
        if rival is None
        else {
            "label": rival.label,
            "measured": rival.measured,
            "decode_tok_s": rival.speeds.decode_tok_s,
            "decode_from": _from(rival, "decode_tok_s"),
            "prefill_tok_s": rival.speeds.prefill_tok_s,
            "prefill_from": _from(rival, "prefill_tok_s"),
        },
        "options": [_option(ranked) for ranked in answer.ranked],
        "hazards": [
            {"name": h.name, "state": h.state.value, "evidence": h.evidence, "advice": h.advice}
            for h in answer.hazards
        ],
        "unhelpful": [{"what": u.what, "why": u.why} for u in answer.not_helpful],
        "inputs": [
            {"name": i.name, "value": i.value, "origin": i.origin.value, "source": i.source}
            for i in answer.inputs
        ],
        "calibration": {"points": points, "sources": sources, "widening": answer.widening},
    }


def _from(rival: Rival, speed: str) -> str | None:
    """Whether a speed of what runs today was given, measured or predicted; None: unknown."""
    if getattr(rival.speeds, speed) is None:
        return None
    if rival.measured:
        return "told"
    measured = rival.baseline is not None and getattr(rival.baseline, speed) is not None
    return "measured" if measured else "predicted"


def _question(question: TriageQuestion) -> dict[str, Any]:
    return {
        "context": question.context,
        "depth": question.read_depth,
        "slots": question.slots,
        "kv_type": question.kv_type,
        "ubatch": question.ubatch,
        "runtime": question.runtime.value,
        "prompt_per_reply": question.prompt_per_reply,
    }


def _model(answer: TriageAnswer) -> dict[str, Any]:
    model, sizes = answer.question.model, answer.sizes
    return {
        "name": model.name,
        "arch": model.arch,
        "layers": sizes.layers,
        "experts": model.experts_total,
        "experts_used": model.experts_used,
        "weights_bytes": sizes.resident_bytes,
        "active_gb": sizes.trunk_gb + sizes.experts_gb,
        "kv_gb": sizes.kv_gb,
        "completeness": model.completeness.value,
    }


def _device(device: DeviceFacts) -> dict[str, Any]:
    told = counted_bandwidth(device)
    memory = device.free_bytes or device.memory_bytes
    return {
        "id": device.id,
        "name": None if device.name is None else device.name.value,
        "class": device.device_class.value.value,
        "bandwidth_gb_s": None if told is None else float(told.value),
        "bandwidth_assumed_gb_s": assumed_gb_s(device),
        "memory_bytes": None if memory is None else int(memory.value),
    }


def _option(ranked: Ranked) -> dict[str, Any]:
    forecast, advice, option = ranked.forecast, ranked.recommendation, ranked.option
    return {
        "key": option.key,
        "title": option.title,
        "family": option.family.value,
        "devices": list(option.devices),
        "incumbent": ranked.incumbent,
        "call": None if ranked.incumbent else advice.call.value,
        "reason": advice.reason,
        "decides": advice.decides,
        "measure": advice.measure,
        "fit": advice.fit.value,
        "fills": [_fill(fill) for fill in option.fills],
        "decode_tok_s": _interval(forecast.decode if option.lacking is None else None),
        "prefill_tok_s": _interval(forecast.prefill),
        "gain": _interval(forecast.gain),
        "prefill_gain": _interval(forecast.prefill_gain),
        "request_gain": _interval(forecast.request_gain),
        "break_even_prompt": forecast.break_even_prompt,
        "break_even_batch": forecast.break_even_batch,
        "regime": None if option.regime is None else option.regime.value,
        "prompt_note": option.prompt_note,
        "terms": [
            {"kind": t.kind.value, "where": t.where, "ms": t.amount, "because": t.because}
            for t in forecast.terms
        ],
        "flags": [{"engine": words.engine, "flags": words.flags} for words in option.flags],
        "notes": list(option.notes),
    }


def _fill(fill: Fill) -> dict[str, Any]:
    return {
        "device": fill.device,
        "pool": fill.pool,
        "parts": dict(fill.parts),
        "used_bytes": fill.used,
        "capacity_bytes": fill.capacity,
    }


def _interval(interval: Interval | None) -> dict[str, float] | None:
    if interval is None:
        return None
    return {"low": interval.low, "value": interval.value, "high": interval.high}
