"""What a log line that no reader knows says of the run: a failure, a thing left undone, nothing.

Fatal texts are known by families (``data/failures.toml``), each with the source that words it.
What no family knows is weighed by a few general words, read with their marks: a line that an
engine marks as a warning, a negation, a zero count, an option's name, a path and a quotation do
not speak of a failure of this run.

The order matters. Fatal goes before undone, undone before doubtful; harmless readings of a
phrase are taken out of the line first, so that nothing else in the line is silenced by them.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files

from hetero_test.values.remark import Weight

LONGEST = 600
"""Characters of a line that are looked at; what an engine has to say stands in front."""


class Level(StrEnum):
    """How a line is marked by whoever printed it."""

    ERROR = "error"
    WARNING = "warning"
    OTHER = "other"
    DEBUG = "debug"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class _Families:
    fatal: re.Pattern[str]
    memory: re.Pattern[str]


@cache
def _families() -> _Families:
    """The patterns of all families, compiled when the first line is looked at."""
    text = (files("hetero_test.engines") / "data" / "failures.toml").read_text("utf-8")
    fatal: list[str] = []
    memory: list[str] = []
    for family in tomllib.loads(text)["family"]:
        memory += family["memory"]
        fatal += family["patterns"]
        fatal += [rf"(?<!\w){re.escape(words)}(?!\w)" for words in family["texts"]]
    return _Families(
        fatal=re.compile("|".join(fatal), re.IGNORECASE),
        memory=re.compile("|".join(memory), re.IGNORECASE),
    )


# -- how a line is marked ---------------------------------------------------------------------

_STAMP = (
    r"(?:=+ *|==\d+== *)?(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]?\d\d:\d\d:\d\d\S*\]?[ :|-]*"
    r"|\[? ?\d+\.\d{3,}\]? +|\d+(?:\.\d+){3} |\[\d\d:\d\d:\d\d\S*\] *)"
)
_MARK = re.compile(
    rf"^\s*{_STAMP}?(?:(?:[\w-]+ )?\S{{1,24}}: +|\[\w[\w :/-]{{0,24}}\] *|\d+ +)?"
    r"(?:(?P<warning>\[?(?:warn(?:ing)?|W)\]?(?=[ :\]|]|$)|<4>|W\d{4} |\(WW\))"
    r"|(?P<error>\[?(?:error(?! summary\b)|err|E|fatal|critical|F)\]?(?=[ :\]|])|<[0-3]>"
    r"|[EF]\d{4} |\(EE\))"
    # "V cache" is no level, nor is "error rate": a word of the sentence has no mark behind it.
    r"|(?P<debug>\[?(?:debug|trace|verbose|D)\]?(?=[ :\]|])|\[V\]|<7>|[DV]\d{4} )"
    r"|(?P<other>\[?(?:info|note|notice|hint|I)\]?(?=[ :\]|])|<[56]>|I\d{4} ))",
    re.IGNORECASE,
)
# Words of a level in lower case are ordinary words; a single letter is a level in capitals only.
_LETTER = re.compile(r"^[a-z]\b")
_IN_A_SENTENCE = re.compile(r"[a-z]+ [a-z]")


def level_of(text: str) -> Level:
    """How a line marks itself, as in ``W0101``, ``[W]``, ``WARN:`` or ``<date> WARNING``."""
    found = _MARK.match(text)
    if found is None:
        return Level.NONE
    kind = found.lastgroup or ""
    word = found.group(kind).strip("[]")
    if _LETTER.match(word) or (kind == "error" and _IN_A_SENTENCE.match(text, found.start(kind))):
        return Level.NONE
    return Level(kind)


# -- what takes a word its meaning --------------------------------------------------------------

_BAD = (
    r"errors?|failures?|failed|fail(?:s|ing)?|faults?|NaNs?|infs?|problems?|issues?|warnings?"
    r"|mismatch(?:es)?|timeouts?|drops?|dropped|lost|retries|retried|crash(?:es|ed)?|exceptions?"
    r"|hangs?|corrupt(?:ed|ions?)?|bad|invalid|overflows?|overruns?|leaks?|rejected|skipped"
    r"|violations?|resets?|throttl(?:ed|ing)|degraded|anomal(?:y|ies)|aborts?|conflicts?|misses"
    r"|truncated|suppressed|evict(?:ed|ions?)|unused|killed|missing|ignored|disabled|denied"
    r"|fallbacks?|stalls?"
)
_KINDS = r"(?:(?!and |but |or )[\w/#.-]+ ){0,3}?"
_NO = r"(?:0(?:\.0+)?%?|none|no|nil|false|null|zero|ok|success)(?![\w.])"
_NOTHING_BAD = re.compile(
    r"\berror summary: *0 errors.*|"
    # no error, without any failures, zero dropped
    rf"\b(?:no|not an?|without(?: an?y?)?|zero|none|never|free of|neither) {_KINDS}(?:{_BAD})\b"
    r"(?! (?:be|been|in time)\b)"
    # a count, and not the number of a device or of a buffer
    r"|(?:^|[,;:(=|]|\b(?:with|had|and|found|of|saw|are|is|was|were|after|reported))[ \t]*0 "
    rf"{_KINDS}(?:{_BAD})\b"
    # errors: 0, error count 0, errors 0, failed=0, NaN = 0, killed-by-signal cases: none
    rf"|\b(?:{_BAD})(?:[ -](?!(?:for|in|at|of|on|from)\b)[a-z][\w-]*){{0,2}} *[:=] *{_NO}"
    rf"|\b(?:{_BAD})(?: (?:count|counter|rate|total|code|status|found|seen)){{1,2}}"
    rf" +(?:is |was |are |were )?{_NO}"
    rf"|\b(?:errors|failures|faults|warnings|dropped|overruns|timeouts|retries|rejected) +{_NO}"
    r"|\berror (?:level|message received from .{0,40}corrected)\b"
    r"|\bcorrected error\b"
    # last error: cudaSuccess
    rf"|\b(?:{_BAD})\b[^;,.]{{0,20}}\b(?:cuda|hip|ur|ze|VK)?_?(?:RESULT_)?Success\b"
    # error checking is on; on error, if it fails, error handler, failover, fail-safe
    rf"|\b(?:{_BAD})[ -]?(?:checks?|checking|correct\w*|handl(?:ers?|ing)|reporting"
    r"|detect(?:ion|ors?)|toleran\w*|limit|threshold|bound|margin|logs?|codes? (?:are|is|will)"
    r"|callback|injection|budget|rate)\b"
    rf"|\b(?:on|upon|in case of|case of|unless|until|avoids?|prevents?|to avoid|against"
    rf"|ignores? no) (?:an? |any )?(?:{_BAD})\b"
    rf"|\b(?:if|when|should|in case) (?:[\w-]+ ){{1,4}}?(?:{_BAD})\b"
    r"|\b(?:refused|rejected|failed|killed) as (?:required|expected|it should|intended)\b"
    r"|\bfail-?(?:safe|over|fast)\b|\berror-?(?:free|bars?)\b|\b(?:quanti[sz]ation|rounding"
    r"|mean|max(?:imum)?|relative|absolute|rel|abs|rms|squared|round-trip) errors?\b"
    r"|\b(?:did|does|do|has|have|had|is|was|were|will|would|can|could) ?(?:not|n't|never)"
    rf" (?:{_BAD}|cause|have any (?:{_BAD}))\b"
    # advice, options by name, what is done on purpose, what a license or a registry says
    r"|\bnot (?:divisible|a conformant|recommended|secure)\b|\brounding (?:up|down)\b"
    r"|\bDo not use it\b|\bno device found\b(?=\.?$)|\bbelow what\b|\breading .{1,40} again\b"
    r"|\buse [^.;]{1,60} instead\b|\boptional\b[^;]{0,80}|\berrors?=[a-z][\w-]*"
    rf"|\b(?:{_BAD}|panics?) would\b|\b(?:received|caught|got) SIG(?:TERM|INT|HUP)\b"
    r"|\b(?:shutting|shut) down (?:cleanly|gracefully)\b|\b\w+ is deprecated\b"
    # a row of a table of settings
    r"|\b\w+ {2,}= (?:disabled|off|unused|unknown)[ \t]*$"
    # a limit that is set, not one that was reached
    r"|\btimeouts?[ =:]+(?:of )?[1-9][\d.]* ?(?:s|ms|sec(?:onds)?|min(?:utes)?)"
    r"(?=[ \t]*(?:$|[,;)]))"
    r"|\bnothing (?:failed|lost|dropped|ignored|skipped)\b"
    rf"|\b(?:{_BAD}|out of memory) (?:is|are|was|were) (?:avoided|prevented|handled|corrected)\b"
    r"|\bnot (?:ignored|disabled|lost|skipped|dropped|rejected|refused|needed|required|necessary"
    r"|a problem|fatal|harmful)\b|\bno longer (?:fails|ignored|needed)\b|\bneeds? none\b",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"""(?<![\w/])--?[A-Za-z][\w-]*"""  # an option
    r"""|(?:[\w.~-]*/)+[\w.+@%~-]+"""  # a path
    r"""|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+=\S*"""  # a setting of the environment
    r"""|\b\w+(?:_\w+)+\b(?= *[=:] *[\d.]+)"""  # a counter, such as n_failed_over = 3
    r"""|\b[\w-]+\.(?:gguf|bin|txt|json|so|c|cc|cpp|cu|h|py|log|toml)\b"""
)
_QUOTED = re.compile(r"\"[^\"]{1,200}\"|'[^'\s][^']{0,200}'(?!\w)|`[^`]{1,200}`|‘[^’]{1,200}’")
# The line goes on to say what is done instead: the failure is not the end of this run.
_GOES_ON = re.compile(
    r"(?:[;,:.–-]+|\bso|\band|\bbut) *(?:(?:it|this|that|we|the \w+) )?"
    r"(?:is |are |was |now |will )?"
    r"(?:fall(?:ing|s)? back|fell back|retry(?:ing)?|retries|trying|tries|tried again|continu\w+"
    r"|keep(?:ing|s)?|using|uses|used instead|skipping|reverting|switching|proceed\w*|recover\w*"
    r"|going on|goes on|carrying on)\b"
    r"|\b(?:instead|recovered|retr(?:y|ying|ied)|harmless|can be ignored|safe to ignore"
    r"|not an error|expected)\b",
    re.IGNORECASE,
)

# Echoed talk: a role in front, a message in JSON, a quoted line.
# Only what reads like talk: a whole sentence behind a role, or a message and nothing of a log.
_TALK = re.compile(
    r"^\s*(?:>+ *(?=[a-z]|[\"'“]?[A-Z])|\W*(?i:user|assistant|human|bot)\W*: (?=[\"'“]?[A-Z]))"
    r"[^{}]*[.?!][\"'”]?\s*$"
    r"|^\W*\"role\" ?: ?\"(?!.*\"(?:error|level|severity|msg)\" ?:)"
)
# A sentence that speaks of nothing that an engine has is prose of a prompt or of an answer.
_SENTENCE = re.compile(r"^\s*[\"'“]?[A-Z][a-z']*(?: [\w',;’-]+){5,}[.!?]?[\"'”]?\s*$")
_ENGINE_WORD = re.compile(
    r"\d|_|(?-i:\b[A-Z]{2,})|\b(?:\w*(?:device|memory|tensor|layer|attention|quant|token|thread"
    r"|batch"
    r"|graph|backend|driver|kernel|buffer|cache|model|flag|option|argument|draft|expert|slot|split"
    r"|offload|template|prompt|system|sampl|context|weight|server|process|command|file|path|copy"
    r"|peer|link|placement)"
    r"\w*)\b",
    re.IGNORECASE,
)
# A named case and its result.
_RESULT = re.compile(
    r":\s*(?:ok|pass(?:ed)?|success)\W*$|^\s*[A-Z][A-Z0-9_]+\(\w+=.*\): not supported \[\w+\]\s*$",
    re.IGNORECASE,
)
# What the installer of some package says is no word of an engine.
_INSTALLER = re.compile(r"^(?:npm|yarn|pnpm|pip) (?:warn|notice|info)\b", re.IGNORECASE)
# Help: an option and what it does, a default in brackets, or a line set far in.
_HELP = re.compile(
    r"^\s*-{1,2}[A-Za-z][\w-]*(?:,|(?:[ =][A-Z<\[{][\w<>\[\]{}|.,:-]*)?(?:  +|\t|$))"
    r"|\(default: |^ {16,}\S"
)

# -- what is left ------------------------------------------------------------------------------

_NUMBER_WORDS = (
    r"(?:logits?|hidden|activations?|residuals?|states?|values?|outputs?|norms?|loss|perplexity"
    r"|ppl|probs?|probabilit(?:y|ies)|softmax|scores?|attention|kv|cache|tensors?|layers?|weights?"
    r"|router|embeddings?|rows?|means?|sums?|min|max)"
)
_NOT_A_NUMBER = re.compile(
    rf"\bnot finite\b|\bnon-?finite\b"
    rf"|\b{_NUMBER_WORDS}\b[^;]{{0,60}}(?<![\w-])[-+]?(?:nan|inf(?:inity)?|1\.#(?:IND|QNAN|INF)\w*)"
    r"(?![\w-])(?! ?(?:/|check|guard|count))"
    rf"|(?<![\w-])[-+]?(?:nans?|infs?|infinit(?:y|ies)|1\.#(?:IND|QNAN|INF)\w*)(?![\w-])"
    rf"(?! ?(?:/|check|guard))[^;]{{0,60}}\b{_NUMBER_WORDS}\b"
    r"|\bNaNs? (?:detected|found|encountered|seen)\b"
    r"|\b(?:found|detected|produced|got) -?NaNs?\b"
    r"|(?:^|\])-?(?:nan|inf)(?:,|$)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:unknown|unrecogni[sz]ed|invalid|unexpected|unsupported) (?:argument|option|flag"
    r"|parameter|command(?:[- ]line)? (?:argument|option))s?\b"
    r"|\berror while handling argument\b|\bunrecogni[sz]ed arguments?\b"
    r"|^\S* ?--?[\w-]+(?: \S+)? (?:needs a value|is required|requires)\b",
    re.IGNORECASE,
)
_SAMPLED = re.compile(
    # a temperature, a mirostat or a penalty that is not neutral, as samplers print themselves
    r"\b(?:temperature|temp)[ =:]+(?!0(?:\.0+)?(?![\d.]))\d[\d.]*"
    r"|\bmirostat[ =:]+[12]\b|\brepeat_penalty[ =:]+(?!1(?:\.0+)?(?![\d.]))\d[\d.]*",
    re.IGNORECASE,
)
_BE = r"(?:is|are|was|were|be|been|now|stays?|turned|turning|switched|switching)"
_DONE = (
    r"supported|available|implemented|used|applied|enabled|compiled|possible|allowed|permitted"
    r"|found|effective|honou?red|recogni[sz]ed|present|ready|responding|installed|detected|loaded"
    r"|built|initiali[sz]ed|valid|taken|trusted|reachable|utili[sz]ed|offloaded|carried out"
)
# One word a line of its own would be too long a list to read; they are grouped by what they say.
_DOUBT = re.compile(
    # it failed
    r"\b(?:fail\w*|errors?|erroneous\w*|errored|faults?|faulted|abort\w*|panic\w*|exceptions?"
    r"|crash\w*|corrupt\w*|broken|killed|dead|died|hang(?:s|ing)?|hung|stuck|lost|violat\w+"
    r"|time[d]?[- ]?out|timeouts?|overflow\w*|underflow\w*|exhausted|malformed|never (?:rang|came"
    r"|arrived|returned)|may (?:stall|fail|hang)|unstable|untrusted|Oops|stalled|stall report"
    r"|disconnected|socket closed|uncorrectable|exit(?:ed)?(?: with)? (?:code|status) -?[1-9]\d*"
    r"|unresponsive|stop(?:s|ped) responding|offline|(?:is|are|was|went|goes) (?:down|away|gone)"
    r"|off the bus|deadlock\w*|wedged|kernel BUG|status (?:0x(?!0+\b)|-?(?!0\b|[123]\d\d\b))\d+"
    # it was not taken
    r"|invalid|illegal|bad|wrong|unexpected\w*|unrecogni[sz]ed|unknown|undefined|mismatch\w*"
    r"|den(?:ied|ies)|refus(?:e|ed|es|ing)|reject\w*|no such|out of (?:memory|range|bounds"
    r"|resources|space|context|VRAM|buffer)|outside|past the (?:last|end)|mutually exclusive"
    r"|not an? (?:\w+ )?(?:number|file|directory|folder|integer|path|device|model)|, got"
    r"|must match|no longer|less than|more than|requested more|not the \w+ you want"
    r"|returned -?[1-9]\d*|no \w+ found|no (?:\w+ )*found in|no valid"
    r"|incompatible|exceed\w*|expected [^;]{1,40}, (?:but )?(?:got|found|have)|takes \w+, .*\bor\b"
    # it does not fit
    r"|insufficient|too (?:small|large|big|many|few|old|long|short|wide)|not enough"
    r"|no (?:room|space)"
    r"|do(?:es)? not fit|does ?n't fit|won't fit|below|LOW:|nothing filled|no VRAM is left"
    # it cannot be done
    r"|cannot|can ?not|can't|could ?n[o']t|unable|unsupported|unavailable|unimplemented|unusable"
    r"|needs?|requires?|required|must be|missing|miss(?:es|ing)|absent|stub(?:bed)?"
    r"|no (?:\w+ )?(?:backends?|kernels?|code|support|devices?|driver|peer access|gpu|drafts?"
    r"|drafter|hook)|no [\w-]+-capable|[Aa]ddress already in use"
    # it was left undone
    r"|ignor(?:ed|es|ing)|no effect|without effect|ineffective|has no meaning|meaningless"
    r"|no-op|noop|skip(?:s|ped|ping)|omitted|dropp(?:ed|ing)|discard(?:ed|ing|s)|bypass\w*"
    r"|excluded|paused|unloaded|replaced (?:by|with)|matched (?:0|no\b|nothing)|has no \w+ left"
    r"|(?:runs?|running|continu\w+|going on|goes on|proceed\w*|starting) without"
    r"|suppress\w*|unused|UNUSED|give[sn]? up|gave up|giving up|contribute nothing|overwritten"
    r"|will be overwritten|without \w+ support|"
    rf"{_BE} (?:\w+ )?off|off (?:for|because|since|as)\b|OFF"
    r"|disabl(?:ed|es|ing)|deactivated|diagnostic request|not th(?:is|e) model's|opt-in"
    # something else was done
    r"|instead|fall(?:s|ing|en)?[- ]?back|fell back|fallbacks?|revert(?:s|ed|ing)|downgrad\w+"
    r"|degraded|clamp(?:ed|ing)|capped|truncat\w+|overrid\w+|shrink\w*|smaller tr(?:y|ies)"
    r"|stays? on|remain(?:s|ed|ing)? on|kept (?:on|in)|single[- ]device|one device only"
    r"|only \d+ of \d+|forced (?:to|off)|(?:prompt|input) (?:was |is )?cut|added twice|double BOS"
    r"|only (?:one|1|a single|(?:the )?last)|works only"
    r"|only (?:\w+ )?(?:supported|available|works?|possible)"
    r"|(?:is|are) (?:only|limited)|(?:changing|changed|setting|reducing|reduced|increasing|limiting"
    r"|lowering|lowered|moving|moved|switching|switched|forcing|forced) (?:the )?.{1,60}? to"
    r"|context shift\w*|limiting|slow (?:copy|path)|(?:through|via) (?:the )?host memory"
    r"|using (?P<used>\d+) of (?!(?P=used)\b)\d+ (?:devices|GPUs|cards)"
    # it is not so
    r"|(?:is|are|was|were|be|been|has|have|had|did|does|do|will|would|may|can|could|must|should)"
    r"(?: not|n't|n’t)"
    rf"|not (?:\w+ )?(?:{_DONE})|not \w+ing)\b",
    re.IGNORECASE,
)
# Words that a warning may quote of something that is over; the others say what is not done.
_QUOTES_OF_FAILURE = re.compile(
    r"\b(?:fail\w*|errors?|errored|exceptions?|faults?|time[d]?[- ]?out|timeouts?|killed|abort\w*"
    r"|panic\w*|crash\w*|out of memory|illegal|invalid|bad)\b",
    re.IGNORECASE,
)


def said(text: str) -> str:
    """A line without negations and zero counts: what is left is said of this run."""
    return _NOTHING_BAD.sub(" ", text[:LONGEST])


@lru_cache(maxsize=4096)
def weigh(text: str, under: str | None = None) -> Weight:
    """What a line says that no reader of the engine knows.

    Args:
        text: the line; what exceeds `LONGEST` characters is not looked at.
        under: the line that it continues, whose mark it shares.
    """
    text = text[:LONGEST]
    if _TALK.match(text):
        return Weight.NOTHING
    level = level_of(text if under is None else under)
    told = said(text)
    if level is not Level.WARNING:
        fatal = _fatal(told)
        if fatal is not None:
            return Weight.DOUBTFUL if _GOES_ON.search(told) else fatal
        if _NOT_A_NUMBER.search(told):
            return Weight.NOT_A_NUMBER
    if _RESULT.search(text) or _INSTALLER.match(text):  # no word of these outweighs a failure
        return Weight.NOTHING
    if level is not Level.WARNING:
        if _SAMPLED.search(told):
            return Weight.NOT_GREEDY
        if _REFUSED.search(told):
            return Weight.REFUSED
    if level is Level.DEBUG or _HELP.search(text) or _is_prose(text):
        return Weight.NOTHING
    rest = _QUOTED.sub(" ", _NOTHING_BAD.sub(" ", _NAMES.sub(" ", text)))
    if level is Level.WARNING:
        # A marked warning may quote any failure; what it says is left undone still counts.
        rest = _QUOTES_OF_FAILURE.sub(" ", rest)
    if level is Level.ERROR and re.search(r"[^\W\d_]{3}", rest):
        return Weight.DOUBTFUL
    return Weight.DOUBTFUL if _DOUBT.search(rest) else Weight.NOTHING


def _is_prose(text: str) -> bool:
    return _SENTENCE.match(text) is not None and not _ENGINE_WORD.search(text)


def _fatal(told: str) -> Weight | None:
    families = _families()
    if families.memory.search(told):
        return Weight.NO_MEMORY
    return Weight.FATAL if families.fatal.search(told) else None
