"""Which of Strata's log lines show that a run went wrong, and which only look like it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from hetero_test.values.reading import Sign, Symptom

if TYPE_CHECKING:
    from hetero_test.engines.scan import Hit

_G = "strata generate: "
_WIDTH = 300
_MOST_SIGNS = 4
_SHORT = 500

WORDS = ("error", "illegal", "not finite", "out of memory", "nan")
"""Lower-case words by which a line anywhere in the log is looked at more closely."""

EVERY_SIGN = (
    "unknown argument: ",
    "--",
    "supply one token input",
    "cannot open token file",
    "malformed token file",
    "strata serve: no progress",
    "ERR ",
    *(
        _G + text
        for text in (
            "--",
            "supply one token input",
            "cannot open token file",
            "malformed token file",
            "positive --max-new",
            "invalid sampling or resource parameter",
            "a remote draft ",
            "a layer split across GPUs needs",
            "this CPU ",
            "ran out of context",
            "sampling ",
            "ExpertCache",
            "cudaMalloc",
            "hipMalloc",
            "mtp",
            "the expert pool failed",
            "the profile fill failed",
            "an adaptive refill failed",
            "this engine has no code for",
        )
    ),
)
"""Starts of lines of which each one is looked at more closely."""

HARMLESS = ("no error",)
"""Texts within which those words count for nothing."""

SIGN_SHAPES = (
    rb"strata verify: captured the (?![^\n]{0,200}\(upload no error, sync no error\))[^\n]*",
)
"""Patterns of further lines that are looked at more closely."""

_PREFIX = r"(?:strata \w+: )?"
# The engine prints its whole usage text after these, which may speak of anything.
_USAGE_FOLLOWS = re.compile(
    rf"unknown argument: |--\S+ needs a value|{_PREFIX}--tokens is required"
)
_REFUSED = re.compile(
    rf"unknown argument: |--\S+ needs a value\s*$|{_PREFIX}(?:supply one token input"
    r"|cannot open token file|malformed token file|positive --max-new and --max-context must"
    r"|invalid sampling or resource parameter|a remote draft \(.* and the remote expert caches"
    r"|a layer split across GPUs needs|this CPU \(.*\) does not support|ran out of context at"
    r"|--\S.*?(?:\bis required\b|\brequires\b|\bneeds?\b|\bmust be\b|\bcannot (?:hold|be)\b"
    r"|\bout of range\b|\bmutually exclusive\b))"
)
# Refusals by their wording that are none: the engine goes on.
_GOES_ON = re.compile(r"\bignored\b|, so no split")
_NO_MEMORY = re.compile(
    r"\bout of memory\b|ExpertCache: .*\bonly .* of VRAM is free|\bdo not fit\b"
    r"|\b(?:cuda|hip)Malloc\w*\(.*\bfailed|(?:cudaErrorMemoryAllocation|hipErrorOutOfMemory)",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b(?:CUDA|HIP|HSA|ROCm|cu(?:BLAS|DNN|RAND)\w*|(?:hip|roc)BLAS\w*|NCCL|RCCL|SYCL|Vulkan"
    r"|fatal|internal|runtime|ECC)[ _-]error\b"
    r"|\b(?:cuda|hip)Error(?!Success|NotReady|PeerAccessAlready)[A-Z]\w+"
    r"|\billegal (?:memory access|instruction|address)"
    rf"|^\s*\[?(?:strata[^:\]]*[:\]] *)?\[?(?:ERROR|error|Error)\b\]?:"
    r"|^ERR "
    rf"|^{_G}(?:mtp (?:draft|draft step|prefill|prefill barrier): |mtp: .*\bfailed\b"
    r"|the expert pool failed|the profile fill failed|an adaptive refill failed"
    r"|ExpertCache::verify_slot: |this engine has no code for)"
    r"|^strata serve: no progress",
    re.IGNORECASE,
)
_CAPTURED = re.compile(r"strata verify: captured the .*\(upload (.*), sync (.*)\)")
_NOT_A_NUMBER = re.compile(r"\bnot finite\b|\bNaNs?\b(?! ?/)")
_NUMBERS_OF = re.compile(r"\b(?:logits?|hidden|activations?|residual|states?|values?|outputs?)\b")
_SAMPLED = re.compile(rf"{_G}sampling temperature=")

_WARNING = re.compile(r"^\s*\[?(?:strata[^:\]]*[:\]] *)?\[?warning\b", re.IGNORECASE)
# Whatever text of an error they quote, these say that the engine found another way.
_HARMLESS = re.compile(r"; trying a smaller expert cache|the drafter stays on the main path")
_FALLBACK = re.compile(
    r"[;,-] *(?:it is |now )?(?:falling back|keeping|using|continuing|retrying|trying)\b",
    re.IGNORECASE,
)


class Signs:
    """Collects the signs of one run, a few of each kind, in the order of the log."""

    def __init__(self) -> None:
        self._found: list[Sign] = []
        self._in_usage = False

    @property
    def found(self) -> tuple[Sign, ...]:
        """The signs so far."""
        return tuple(self._found)

    def begin(self) -> None:
        """Another file begins."""
        self._in_usage = False

    def consider(self, hit: Hit) -> None:
        """Look at one line."""
        if self._in_usage:
            return
        text = hit.text
        if is_warning(text if hit.under is None else hit.under) or _HARMLESS.search(text):
            return
        found = _of_short(text) if len(text) <= _SHORT else symptoms(text)
        for symptom in found:
            if sum(sign.symptom is symptom for sign in self._found) < _MOST_SIGNS:
                self._found.append(Sign(symptom=symptom, line=text[:_WIDTH]))
        self._in_usage = _USAGE_FOLLOWS.match(text) is not None


def is_warning(text: str) -> bool:
    """Whether the engine itself marks a line as a warning."""
    return _WARNING.match(text) is not None


def symptoms(text: str) -> tuple[Symptom, ...]:
    """What one line shows, warnings and known ways out apart."""
    captured = _CAPTURED.match(text)
    if captured is not None and captured.groups() != ("no error", "no error"):
        return (Symptom.ERROR,)
    plain = text.replace("no error", "")
    found = {
        Symptom.REFUSED: _REFUSED.match(plain) is not None and not _GOES_ON.search(plain),
        Symptom.NO_MEMORY: _NO_MEMORY.search(plain) is not None and not _FALLBACK.search(plain),
        Symptom.ERROR: _ERROR.search(plain) is not None,
        Symptom.NOT_A_NUMBER: _is_not_a_number(plain),
        Symptom.NOT_GREEDY: _SAMPLED.match(plain) is not None,
    }
    return tuple(symptom for symptom, shown in found.items() if shown)


def _is_not_a_number(text: str) -> bool:
    return _NOT_A_NUMBER.search(text) is not None and _NUMBERS_OF.search(text) is not None


# Long logs repeat a few short lines; looking at one of them takes longer than finding it.
_of_short = lru_cache(maxsize=1024)(symptoms)
