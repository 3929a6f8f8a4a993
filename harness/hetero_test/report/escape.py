"""Foreign text inside GitHub Markdown: it can be read, but it can never act.

Engines, drivers and users name things as they like. Nothing of that may become markup, a link,
a mention, an issue reference, an emoji, a formula or HTML, nor end the fence or the table cell
it stands in. Backslashes and entities do not suffice: mentions, references and emoji are found
in the *rendered* text. They are not looked for in code, so a word is left as it is only if it
is plainly harmless, and every other one becomes a code span.

Formats: CommonMark 0.31 (code spans §6.1, fences §4.5) and GitHub Flavored Markdown 0.29
(tables §4.10, extended autolinks §6.9).
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape as html_escape
from typing import TYPE_CHECKING

from hetero_test.publish.printable import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

UNKNOWN = "–"
"""What stands where nothing is known; never a blank, never a 0."""

_RISKY = re.compile(
    r"""
      [`*~<>&|\[\]{}\#$@!^\\]            # markup, HTML, mentions, references, formulas
    | (?<![A-Za-z0-9]) _ | _ (?![A-Za-z0-9])  # emphasis; inside of a word it is none
    | // | (?i:www\.)                    # any URL
    | : .* : | ^ : | : (?=[^\s:])        # emoji, mailto:, xmpp:
    | \w \. [^\W\d_]{2,}                 # a domain, for renderers that link bare ones
    | [0-9A-Fa-f]{7,}                    # a commit
    | [A-Za-z] - \d | (?i:ghsa-)         # GH-12, CVE-…, PROJECT-12
    | ^ [-+=.,;:'"()]+ $                 # a rule, an underline of a heading, a list's bullet
    | ^ \(? (?: /. | \./ | --? [A-Za-z] )  # paths and flags are code anyway
    """,
    re.VERBOSE,
)
_HARMLESS = re.compile(r"\[[0-9.]+-[0-9.]+\]|[+-][0-9.]+")
"""A range or a signed number: ours to write, and nobody's to misuse."""
_NUMBERED = re.compile(r"\d{1,9}[.)]")
_SPAN = re.compile(r"`+")
_ENDED = re.compile(r"[^:]*[^.,;:`][.,;:]")
"""A word with one mark after it, which may stand outside of its code span."""


@lru_cache(maxsize=16_384)
def inline(text: str) -> str:
    """One line of prose; words that could act are put into code spans."""
    return _prose(text, code, str)


def summary(text: str) -> str:
    """:func:`inline` for ``<summary>``, where Markdown is not read but HTML is."""
    return _prose(text, lambda run: f"<code>{html_escape(run)}</code>", html_escape)


def _prose(text: str, risky: Callable[[str], str], plain: Callable[[str], str]) -> str:
    runs: list[tuple[bool, list[str]]] = []
    ended = True
    for place, word in enumerate(visible(" ".join(text.split())).split()):
        is_risky = _is_risky(word, place)
        if ended or is_risky is not runs[-1][0]:
            runs.append((is_risky, []))
        runs[-1][1].append(word)
        ended = is_risky and (_ENDED.fullmatch(word) is not None or word.endswith(")"))
    return (
        " ".join(
            _wrapped(" ".join(words), risky) if is_risky else plain(" ".join(words))
            for is_risky, words in runs
        )
        or UNKNOWN
    )


def _wrapped(run: str, risky: Callable[[str], str]) -> str:
    """Risky words in code, parentheses around them and a mark after them left outside."""
    after = run[-1] if _ENDED.fullmatch(run.rpartition(" ")[2]) else ""
    inner = run.removesuffix(after)
    if (
        len(inner) > 2
        and inner[0] == "("
        and inner[-1] == ")"
        and not set("()`") & set(inner[1:-1])
    ):
        return f"({risky(inner[1:-1])}){after}"
    # A parenthesis whose other half stands in another word belongs to the sentence.
    before = ""
    if len(inner) > 1 and inner[0] == "(" and inner[1] != " " and ")" not in inner:
        before, inner = "(", inner[1:]
    elif len(inner) > 1 and inner[-1] == ")" and "(" not in inner and inner[-2] not in " `:":
        inner, after = inner[:-1], f"){after}"
    return before + risky(inner) + after


def _is_risky(word: str, place: int) -> bool:
    if place == 0 and _NUMBERED.fullmatch(word):
        return True
    return _RISKY.search(word) is not None and _HARMLESS.fullmatch(word) is None


def code(text: str) -> str:
    """One code span that shows ``text`` as it is."""
    shown = visible(text).strip()
    if not shown:
        return UNKNOWN
    ticks = "`" * (1 + _longest(shown))
    # A backtick at an edge would join the fence; one blank on both sides is taken off again.
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def cell(text: str) -> str:
    """:func:`inline` for a table: a pipe inside does not end the cell.

    Both cmark-gfm and markdown-it take any pipe after a backslash as text and drop that one
    backslash, also inside of a code span.
    """
    return inline(text).replace("|", "\\|")


def fence(lines: Iterable[str], info: str = "text") -> str:
    """A fenced block, one ``visible`` line each, that nothing inside can end."""
    shown = [visible(line) for line in lines]
    longest = max((_longest(line) for line in shown), default=0)
    ticks = "`" * max(3, longest + 1)
    return "\n".join([f"{ticks}{info}", *shown, ticks])


def _longest(text: str) -> int:
    """The length of the longest run of backticks."""
    return max((len(run) for run in _SPAN.findall(text)), default=0)
