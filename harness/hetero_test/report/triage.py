"""The triage answer as Markdown, from a document of schema ``hetero-test/triage/1``.

Made for pasting, and deterministic: no clock, no locale.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hetero_test.report.escape import cell, code, inline, summary
from hetero_test.report.templates import environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment


OPEN_OPTIONS = 3
"""Options whose reasons stand open; the others are folded."""


def build(document: Mapping[str, Any]) -> str:
    """The report of a document of schema ``hetero-test/triage/1``."""
    template = _environment().get_template("triage.md.j2")
    options = document["options"]
    others = [option for option in options if not option["incumbent"]]
    text = template.render(
        document=document,
        headline=f"{MARKS[document['verdict']['call']]} {headline(document)}",
        facts=_table(("field", "value"), facts(document)),
        options=_table(
            ("option", "verdict", "decode tok/s", "gain", "prefill tok/s", "memory"),
            [_row(option) for option in options],
        ),
        shown=others[:OPEN_OPTIONS],
        folded=others[OPEN_OPTIONS:],
        hazards=_table(
            ("hazard", "state", "evidence, and what to do"),
            [_hazard(hazard) for hazard in _loud_first(document["hazards"])],
        ),
        inputs=_table(
            ("input", "value", "origin", "source"),
            [(i["name"], i["value"], i["origin"], i["source"]) for i in document["inputs"]],
        ),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _row(option: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        option["title"],
        call(option),
        speed(option["decode_tok_s"]),
        speed(option["gain"], 2),
        speed(option["prefill_tok_s"], 0),
        option["fit"],
    )


def _hazard(hazard: Mapping[str, Any]) -> tuple[str, str, str]:
    advice = f"; {hazard['advice']}" if hazard["advice"] else ""
    return hazard["name"], hazard["state"], f"{hazard['evidence']}{advice}"


def _loud_first(hazards: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    order = ("present", "not checked", "absent")
    return sorted(hazards, key=lambda hazard: order.index(hazard["state"]))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of GitHub Flavored Markdown; every text goes through `cell`."""
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join(':--' for _ in head)}|"]
    lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    return "\n".join(lines)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return environment(
        html=False,
        inline=inline,
        code=code,
        summary=summary,
        fill=fill,
        term=term,
        call=call,
    )


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
    if title is None:
        return f"NO-GO — there is nothing to compare {_kept(kept)} with"
    return f"NO-GO — keep {_kept(kept)}"


def _kept(kept: Mapping[str, Any]) -> str:
    return "what runs today" if kept["measured"] else str(kept["label"])


def facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Model, rig, use and what is compared with, as field and value."""
    model, asked, kept = document["model"], document["question"], document["incumbent"]
    experts = f", {model['experts_used']} of {model['experts']} experts" if model["experts"] else ""
    size = f"{model['weights_bytes'] / GIB:.1f} GiB, {model['active_gb']:.2f} GB a token"
    cache = f"{asked['slots']} × {asked['context']} positions of {asked['kv_type']} KV"
    read = f"{asked['depth']} read: {model['kv_gb']:.2f} GB a token"
    prompts = f"{asked['prompt_per_reply']:g} prompt tokens a reply token"
    rows = [
        *(("caution", text) for text in document["cautions"]),
        ("model", f"{model['name']} ({model['arch']}), {model['layers']} layers{experts}, {size}"),
        ("rig", "; ".join(device(d) for d in document["rig"]) or "no devices"),
        ("use", f"{cache}, {read}; batches of {asked['ubatch']}; {prompts}"),
    ]
    if kept is not None:
        rows.append(("compared with", f"{kept['label']}: {_speeds(kept)}"))
    verdict = document["verdict"]
    best = "" if verdict["title"] is None else f"the best other way, {verdict['title']}: "
    rows.append(("why", f"{best}{verdict['reason']}"))
    return rows


def _speeds(kept: Mapping[str, Any]) -> str:
    """Both speeds of what runs today, and where they are from: once where that is the same."""
    decode, prefill = f"{kept['decode_tok_s']:.1f} tok/s", kept["prefill_tok_s"]
    of_decode, of_prefill = (
        "" if origin in (None, "told") else f" ({origin})"
        for origin in (kept["decode_from"], kept["prefill_from"])
    )
    if prefill is None:
        return f"{decode}{of_decode}"
    early = "" if of_decode == of_prefill else of_decode
    return f"{decode}{early}, prefill {prefill:.0f} tok/s{of_prefill}"


def device(facts: Mapping[str, Any]) -> str:
    """One device in a few words."""
    parts = [facts["name"] or facts["class"].replace("_", " ")]
    if facts["memory_bytes"]:
        parts.append(f"{facts['memory_bytes'] / GIB:.0f} GiB")
    rate, assumed = facts["bandwidth_gb_s"], facts["bandwidth_assumed_gb_s"]
    if rate is None:
        parts.append("bandwidth unknown" if assumed is None else f"{assumed:.0f} GB/s assumed")
    else:
        parts.append(f"{rate:.0f} GB/s")
    return f"{facts['id']}: {', '.join(parts)}"


def call(option: Mapping[str, Any]) -> str:
    """The call with its mark; what runs today has none."""
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
