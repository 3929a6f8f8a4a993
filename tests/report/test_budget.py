"""A report fits, whatever went in, and says what was left out."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.judge.judge import judge
from hetero_test.publish.redact import Redactor
from hetero_test.report.budget import ENDED, LADDER, LIMIT, Cuts, cut_off, fit, fits
from hetero_test.report.markdown import build

from .factories import large, two_cards
from .rendered import cmark

WIDE = "\U0001f600`|é " * 40


def test_each_step_shows_less() -> None:
    """No step of the ladder shows more of anything than the one before, and something less."""
    for before, after in pairwise(LADDER):
        richer, poorer = asdict(before), asdict(after)
        assert all(poorer[name] <= richer[name] for name in richer)
        assert richer != poorer


@pytest.mark.parametrize(
    ("variants", "repeats", "wide"),
    [(60, 20, ""), (12, 6, WIDE), (200, 1, ""), (2, 300, "")],
    ids=["many of both", "four-byte characters", "many variants", "many repeats"],
)
def test_a_large_matrix_fits(variants: int, repeats: int, wide: str) -> None:
    """Characters and bytes both keep to the limit, and what was left out is named."""
    record = large(variants, repeats, wide=wide)

    text = build(record, judge(record), redactor=Redactor.off())

    assert len(text) <= LIMIT
    assert len(text.encode()) <= LIMIT
    assert "Left out to fit 60000 characters:" in text
    assert "`run.json`" in text
    assert text.startswith("## ")


def test_a_small_matrix_is_whole() -> None:
    """Nothing is left out where everything fits."""
    record = two_cards()

    text = build(record, judge(record), redactor=Redactor.off())

    assert "Left out" not in text


def test_the_richest_step_that_fits_is_taken() -> None:
    """The ladder is walked from the top and left at the first step that fits."""
    seen = []

    def render(detail: object) -> str:
        seen.append(detail)
        return "x" * (LIMIT + 1 if len(seen) < 3 else 10)

    assert fit(render) == "x" * 10
    assert tuple(seen) == LADDER[:3]


def test_bytes_count_as_well_as_characters() -> None:
    """20,000 characters of four bytes are too many."""
    assert fits("x" * LIMIT)
    assert not fits("x" * (LIMIT + 1))
    assert not fits("\U0001f600" * (LIMIT // 4 + 1))


LINES = st.lists(
    st.sampled_from(
        ["```text", "```", "````diff", "````", "<details><summary>x</summary>", "", "</details>"]
    )
    | st.text(max_size=30),
    max_size=40,
)


@given(LINES, st.integers(min_value=60, max_value=400))
def test_the_last_resort_always_fits(lines: list[str], limit: int) -> None:
    """Cutting off keeps to the limit and says so."""
    text = cut_off("\n".join(lines), limit)

    assert fits(text, limit)
    assert text.rstrip().endswith(ENDED)


def test_the_last_resort_closes_what_is_open() -> None:
    """A cut inside a fence inside a fold ends both, so that the notice is no part of them."""
    text = "<details><summary>log</summary>\n\n````text\n" + "line\n" * 500 + "````\n\n</details>\n"

    page = cmark(cut_off(text, 600))

    assert page.tags == ["details", "summary", "pre", "code", "p", "strong", "code"]
    assert page.text.rstrip().endswith("the rest is in run.json.")
    assert page.fences[0].startswith("line\nline\n")


def test_what_is_left_is_counted_and_located() -> None:
    """Each list that was cut has its note."""
    cuts = Cuts()

    assert cuts.take([1, 2, 3], 2, "things", "there.json") == (1, 2)
    assert cuts.take([1], 2, "others") == (1,)
    assert cuts.notes == ["1 of 3 things (there.json)"]
