"""Foreign text can be read and never acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given

from hetero_test.publish.printable import visible
from hetero_test.report.escape import UNKNOWN, cell, code, fence, inline, summary

from .hostile import ALL_AT_ONCE, texts, worded
from .rendered import RENDERERS, Page

if TYPE_CHECKING:
    from collections.abc import Callable

both = pytest.mark.parametrize("render", RENDERERS)


def words(text: str) -> list[str]:
    """What can be read of a text."""
    return visible(" ".join(text.split())).split() or [UNKNOWN]


@both
@given(text=texts | worded)
@example(text=ALL_AT_ONCE)
@example(text="1. first")
@example(text="a` b")
def test_prose_stays_one_paragraph_of_text(render: Callable[[str], Page], text: str) -> None:
    """No element but code comes of it, and it reads as it was written."""
    page = render(inline(text))

    assert set(page.tags) <= {"p", "code"}
    assert page.text.split() == words(text)
    assert page.acting() == []


@both
@given(text=texts | worded)
@example(text=ALL_AT_ONCE)
def test_prose_in_a_list_and_a_heading_stays_text(render: Callable[[str], Page], text: str) -> None:
    """The same holds after a bullet, after bold words and in a heading."""
    page = render(f"## {inline(text)}\n\n- **{inline(text)}** {inline(text)} – {code(text)}\n")

    assert set(page.tags) <= {"h2", "ul", "li", "p", "strong", "code"}
    assert page.tags.count("strong") == 1
    assert page.acting() == []


@both
@given(text=texts | worded)
@example(text=ALL_AT_ONCE)
@example(text="a\\|b")
@example(text="a\\\\|b \\")
def test_a_cell_stays_one_cell(render: Callable[[str], Page], text: str) -> None:
    """A pipe, a backslash or a backtick never makes a column more or less."""
    page = render(f"| a | b |\n|:--|:--|\n| {cell(text)} | end |\n| next | row |\n")

    assert page.tags.count("td") == 4
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}
    assert page.text.split() == ["a", "b", *words(text), "end", "next", "row"]
    assert page.acting() == []


@both
@given(text=texts | worded)
@example(text=ALL_AT_ONCE)
@example(text="```\n</details>")
def test_a_fence_holds_what_is_in_it(render: Callable[[str], Page], text: str) -> None:
    """Nothing inside a fence ends it, and every character inside is shown."""
    page = render(f"{fence([text, 'last'])}\n\nafter\n")

    assert page.tags == ["pre", "code", "p"]
    assert page.fences == [f"{visible(text)}\nlast\n"]
    assert page.text.endswith("after\n")


@both
@given(text=texts | worded)
@example(text=ALL_AT_ONCE)
def test_a_summary_stays_a_summary(render: Callable[[str], Page], text: str) -> None:
    """In a fold's title, where Markdown is not read, HTML is not let through."""
    page = render(f"<details><summary>{summary(text)}</summary>\n\ninside\n\n</details>\n")

    assert [tag for tag in page.tags if tag != "code"] == ["details", "summary", "p"]
    assert page.text.split() == [*words(text), "inside"]
    assert page.acting() == []


@both
@given(text=texts | worded)
@example(text="`")
@example(text="``x``")
def test_a_code_span_shows_its_text(render: Callable[[str], Page], text: str) -> None:
    """One span, the text unchanged but for white space."""
    page = render(f"x {code(text)} y")

    assert set(page.tags) <= {"p", "code"}
    assert page.text.split() == ["x", *(visible(text).split() or [UNKNOWN]), "y"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("variant 1 is exact", "variant 1 is exact"),
        ("the baseline's 7.23 [7.20-7.30] tok/s, +3.1 % vs 0", None),
        ("a: b; c, (d) — e", None),
        ("NO_MEMORY: it does not fit", None),
        ("see @bob.", "see `@bob`."),
        ("md5 55b8ebc603a0, then", "md5 `55b8ebc603a0`, then"),
        ("--pack <model>/x; --mtp y", "`--pack <model>/x`; `--mtp` y"),
        ("a larger batch (-b, -ub), or less", "a larger batch (`-b`, `-ub`), or less"),
        ("told (see @bob).", "told (see `@bob`)."),
        ("( @octocat", "`( @octocat`"),
        ("f(@x) stays", "`f(@x)` stays"),
        ("(-ts) would, (/dev/dri) too", "(`-ts`) would, (`/dev/dri`) too"),
        ("- item", "`-` item"),
        ("1. item", "`1`. item"),
        ("tick ` tick", "tick `` ` `` tick"),
        ("", "–"),
        (" \n ", "–"),
    ],
)
def test_plain_words_stay_plain(text: str, shown: str | None) -> None:
    """Only words that could act become code, so a report also reads as text."""
    assert inline(text) == (text if shown is None else shown)


@pytest.mark.parametrize("run", range(12))
def test_a_fence_is_longer_than_any_run_inside(run: int) -> None:
    """One backtick more than the longest run, and at least three."""
    opening = fence(["`" * run]).splitlines()[0].removesuffix("text")

    assert opening == "`" * max(3, run + 1)
