"""What Strata means by its own lines; all others are weighed by what they say.

Texts are those of engine 0.1.2x to 0.1.42; lines that never weigh stand in ``notes.toml``. What
drivers and run times print is no matter of one engine and stands in ``engines/data/failures.toml``.
"""

from __future__ import annotations

import re

from hetero_test.engines.meaning import Level, level_of
from hetero_test.engines.notes import Notes
from hetero_test.values.remark import Weight

_G = "strata generate: "
_PREFIX = r"(?:strata \w+: )?"
_REFUSED = re.compile(
    rf"unknown argument: |--\S+ needs a value\s*$|{_PREFIX}(?:supply one token input"
    r"|cannot open token file|malformed token file|positive --max-new and --max-context must"
    r"|invalid sampling or resource parameter|a remote draft \(.* and the remote expert caches"
    r"|a layer split across GPUs needs|this CPU \(.*\) does not support|ran out of context at"
    r"|the remote experts? need|layer \d+'s experts are .* no GPU kernels for"
    r"|--\S.*?(?:\bis required\b|\brequires\b|\bneeds?\b|\bmust be\b|\bcannot (?:hold|be)\b"
    r"|\bout of range\b|\bmutually exclusive\b|\bis not available\b|\bis past the last\b))"
)
# Refusals by their wording that are none: the engine goes on without what was asked.
_GOES_ON = re.compile(r"\bignored\b")
_NO_MEMORY = re.compile(
    r"ExpertCache: .*\bonly .* of VRAM is free|\bdo(?:es)? not fit\b|: no room\b"
    r"|\bcould not allocate\b|\bgraph leaves .* below VRAM reserve\b|\ballocation failed\b"
    r"|\b(?:cuda|hip)Malloc\w*\(.*\bfailed"
)
_ERROR = re.compile(
    r"^\s*\[?(?:strata[^:\]]*[:\]] *)?\[?(?:ERROR|error|Error|FATAL|fatal)\b\]?:|^ERR "
    r"|^strata serve: no progress"
    # A part of the engine, and what went wrong in it.
    rf"|^(?:{_G}|strata serve: )(?:mtp(?: draft| draft step| prefill| prefill barrier)?"
    r"|verify|lm_head|session_capture): "
    r"(?!round |hint: |draft )(?=.*(?:\bfail|error|never rang|timed out|missing|truncated|malformed"
    r"|cannot|invalid|illegal|unspecified|out of range|launch:|commit:))"
    rf"|^{_G}(?:mtp (?:draft|draft step|prefill|prefill barrier): "
    r"|the expert pool failed|the profile fill failed|an adaptive refill failed"
    r"|refilling (?:a|the) lent slots? failed|ExpertCache::verify_slot: "
    r"|this engine has no code for|the sampler returned -|reading the sampled token back failed)"
)
_CAPTURED = re.compile(r"strata verify: captured the .*\(upload (.*), sync (.*)\)")
# Whatever text of an error they quote, the run goes on to the same numbers.
_NOTES = Notes("hetero_test.engines.strata")


def rule(text: str) -> Weight | None:
    """What Strata means by one of its lines; None for a line that is not known as its own."""
    captured = _CAPTURED.match(text)
    if captured is not None:
        fine = captured.groups() == ("no error", "no error")
        return Weight.KNOWN if fine else Weight.FATAL
    if _NOTES.known(text):
        return Weight.KNOWN
    if level_of(text) is Level.WARNING:
        return None
    if _REFUSED.match(text) and not _GOES_ON.search(text):
        return Weight.REFUSED
    if _NO_MEMORY.search(text):
        return Weight.NO_MEMORY
    return Weight.FATAL if _ERROR.search(text) else None
