"""What the triage reports show, from a document of schema ``hetero-test/triage/1``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB = 2**30
UNKNOWN = "–"
MARKS = {"GO": "✅", "NO-GO": "❌", "MEASURE FIRST": "🔍"}
"""Beside the word, never instead of it."""


def headline(document: Mapping[str, Any]) -> str:
    """The answer in one line of words."""
    verdict = document["verdict"]
    call, title = verdict["call"], verdict["title"]
    if call == "GO":
        return f"GO — {title}"
    if call == "MEASURE FIRST":
        return f"MEASURE FIRST — {title}"
    kept = document["incumbent"]
    if not kept:
        return "NO-GO — nothing fits"
    return f"NO-GO — keep {'what runs today' if kept['measured'] else kept['label']}"


def facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Model, rig, use and what is compared with, as field and value."""
    model, asked, kept = document["model"], document["question"], document["incumbent"]
    experts = f", {model['experts_used']} of {model['experts']} experts" if model["experts"] else ""
    size = f"{model['weights_bytes'] / GIB:.1f} GiB, {model['active_gb']:.2f} GB a token"
    cache = f"{asked['slots']} × {asked['context']} positions of {asked['kv_type']} KV"
    read = f"{asked['depth']} read: {model['kv_gb']:.2f} GB a token"
    prompts = f"{asked['prompt_per_reply']:g} prompt tokens a reply token"
    rows = [
        ("model", f"{model['name']} ({model['arch']}), {model['layers']} layers{experts}, {size}"),
        ("rig", "; ".join(device(d) for d in document["rig"]) or "no devices"),
        ("use", f"{cache}, {read}; batches of {asked['ubatch']}; {prompts}"),
    ]
    if kept is not None:
        prefill = kept["prefill_tok_s"]
        told = "" if prefill is None else f", prefill {prefill:.0f} tok/s"
        how = "" if kept["measured"] else " (predicted)"
        speeds = f"{kept['decode_tok_s']:.1f} tok/s{told}{how}"
        rows.append(("compared with", f"{kept['label']}: {speeds}"))
    verdict = document["verdict"]
    best = "" if verdict["title"] is None else f"the best other way, {verdict['title']}: "
    rows.append(("why", f"{best}{verdict['reason']}"))
    return rows


def device(facts: Mapping[str, Any]) -> str:
    """One device in a few words."""
    parts = [facts["name"] or facts["class"].replace("_", " ")]
    if facts["memory_bytes"]:
        parts.append(f"{facts['memory_bytes'] / GIB:.0f} GiB")
    rate = facts["bandwidth_gb_s"]
    parts.append("bandwidth unknown" if rate is None else f"{rate:.0f} GB/s")
    return f"{facts['id']}: {', '.join(parts)}"


def call(option: Mapping[str, Any]) -> str:
    """The verdict with its mark; what runs today has none."""
    if option["incumbent"]:
        return "today"
    return f"{MARKS[option['call']]} {option['call']}"


def speed(interval: Mapping[str, float] | None, digits: int = 1) -> str:
    """A middle with its 80 % interval."""
    if interval is None:
        return UNKNOWN
    low, value, high = interval["low"], interval["value"], interval["high"]
    return f"{value:.{digits}f} [{low:.{digits}f}-{high:.{digits}f}]"


def fill(one: Mapping[str, Any]) -> str:
    """What fills a device."""
    parts = ", ".join(f"{name} {size / GIB:.1f}" for name, size in one["parts"].items())
    free = one["capacity_bytes"]
    limit = "unknown" if free is None else f"{free / GIB:.1f}"
    return f"{one['device']}: {one['used_bytes'] / GIB:.1f} of {limit} GiB ({parts})"


def term(one: Mapping[str, Any]) -> str:
    """One part of a token's time."""
    where = f" {one['where']}" if one["where"] else ""
    return f"{one['kind']}{where} {one['ms']:.2f} ms ({one['because']})"
