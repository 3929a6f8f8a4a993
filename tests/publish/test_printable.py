"""Foreign text made harmless for a terminal."""

from __future__ import annotations

import unicodedata
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.publish.printable import clip, printable, visible

ANY_TEXT = st.text(st.characters(codec=None), max_size=60) | st.lists(
    st.sampled_from(
        ["\x1b[31m", "\x1b]0;title\x07", "\x1b", "\x9b2J", "\u202e", "\u200b", "\r", "\n", "a", "é"]
    ),
    max_size=20,
).map("".join)


@given(ANY_TEXT)
def test_nothing_unseen_survives(text: str) -> None:
    """Whatever comes in, no control, format, separator or surrogate character comes out."""
    shown = visible(text)

    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]


@given(ANY_TEXT)
def test_what_is_visible_can_be_written_anywhere(text: str) -> None:
    """The result is valid UTF-8 and valid XML 1.0."""
    element = ET.Element("a")
    element.text = visible(text)

    parsed = ET.fromstring(ET.tostring(element, encoding="utf-8"))

    assert (parsed.text or "") == visible(text)


@given(ANY_TEXT)
def test_making_visible_twice_changes_nothing(text: str) -> None:
    """What is visible already stays as it is."""
    assert visible(visible(text)) == visible(text)


@given(ANY_TEXT, st.integers(min_value=0, max_value=50))
def test_printable_is_one_short_line(text: str, limit: int) -> None:
    """A line for the terminal is never longer than asked, and never two lines."""
    line = printable(text, limit)

    assert len(line) <= limit
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;evil title\x07after", "after"),
        ("\x1b]8;;http://x.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("torn \x1b]0;never ended", "torn \\x1b]0;never ended"),
        ("50 %\r100 %", "50 %\\x0d100 %"),
        ("a\x00b", "a\\x00b"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("tab\there", "tab here"),
        ("tag\U000e0041", "tag\\U000e0041"),
        (b"bad \xff byte".decode("utf-8", "surrogateescape"), "bad \\xff byte"),
        ("alone \ud800", "alone \\ud800"),
        ("non\uffffchar", "non\\uffffchar"),
        ("⚠️ kept", "⚠️ kept"),
        ("a\ufe0f", "a\\ufe0f"),
        ("z" + "\u0301" * 40, "z" + "\u0301" * 3),
        ("größer, 日本語, é", "größer, 日本語, é"),
    ],
)
def test_each_trick_is_dropped_or_shown(text: str, shown: str) -> None:
    """Complete ANSI sequences vanish, everything else that hides is written as an escape."""
    assert visible(text) == shown


def test_white_space_is_folded_for_the_terminal() -> None:
    """Line feeds and tabs become single blanks."""
    assert printable("one\n\ttwo   three", 80) == "one two three"


@pytest.mark.parametrize(
    ("limit", "shown"), [(0, ""), (1, "…"), (3, "ab…"), (6, "abcdef"), (7, "abcdef")]
)
def test_clipping_keeps_to_its_limit(limit: int, shown: str) -> None:
    """The ellipsis counts."""
    assert clip("abcdef", limit) == shown
