"""The HTML page: self-contained, without scripts, and hostile text stays text."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hetero_test.judge.judge import judge
from hetero_test.publish.redact import Redactor
from hetero_test.report.html import build
from hetero_test.values.reading import Timings
from hetero_test.values.record import Record
from tests.runs import altered

from .factories import every_state, flipped, hostile, large, manifest, two_cards
from .hostile import ALL_AT_ONCE
from .rendered import Page

VOID = {"meta", "link", "br", "path", "use", "rect"}


def page(record: Record) -> str:
    """The page of a record as the judge sees it."""
    text: str = build(record, judge(record), redactor=Redactor.off())
    return text


class Balance(HTMLParser):
    """Every element is closed in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open one."""
        if tag not in VOID:
            assert len(attrs) == len(dict(attrs)), "an attribute is given twice"
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the last one."""
        assert tag in VOID or self.open.pop() == tag


def parsed(text: str) -> Page:
    """Elements and text."""
    found = Page()
    found.feed(text)
    found.close()
    return found


EVERY = pytest.mark.parametrize(
    "record",
    [
        two_cards(),
        flipped(two_cards(), "4", 17),
        every_state(),
        hostile(ALL_AT_ONCE),
        large(6, 3),
        Record(manifest=manifest()),
    ],
    ids=["pass", "fail", "states", "hostile", "large", "empty"],
)


@EVERY
def test_the_page_is_well_formed(record: Record) -> None:
    """Every element that is opened is closed in order."""
    balance = Balance()
    balance.feed(page(record))

    assert balance.open == []


@EVERY
def test_the_page_runs_and_loads_nothing(record: Record) -> None:
    """No script, no frame, no handler, no address that a browser would fetch."""
    found = parsed(page(record))

    assert not {"script", "iframe", "object", "embed", "img", "form", "a"} & set(found.tags)
    for name, value in found.attributes:
        assert not name.startswith("on")
        if name in {"href", "src", "xlink:href", "action"}:
            assert (value or "").startswith(("#", "data:,"))


@EVERY
def test_rendering_again_gives_the_same_bytes(record: Record) -> None:
    """Charts included: no date, no random id."""
    assert page(record) == page(record)


def test_the_verdict_leads_the_page() -> None:
    """Title and heading carry the word."""
    text = page(flipped(two_cards(), "4", 17))

    assert "<title>❌ FAIL — 1 of 5 variants differs" in text
    assert "<h1>❌ FAIL — 1 of 5 variants differs" in text


def test_foreign_text_changes_no_element() -> None:
    """A page full of tricks has exactly the elements of a harmless one."""
    harmless = parsed(page(hostile("as long a label as those of residencies")))

    found = parsed(page(hostile(ALL_AT_ONCE)))

    assert found.tags == harmless.tags
    assert "<script>alert(1)</script>" in found.text


def test_times_are_drawn() -> None:
    """One chart a prompt, with a name for those who do not see it."""
    text = page(two_cards())

    assert text.count("<svg") == 1
    assert 'aria-label="decode speed of each variant"' in text
    assert re.search(r"<text[^>]*>1f</text>", text)


def test_a_label_is_text_in_the_chart_too() -> None:
    """A variant named like a formula or an element is only a label."""
    record = two_cards()
    odd = tuple(altered(r, variant="$x^2$<b>") if r.variant == "1f" else r for r in record.runs)

    assert ">$x^2$&lt;b&gt;</text>" in page(replace(record, runs=odd))


def test_without_times_there_is_no_chart() -> None:
    """Nothing was timed, so nothing is drawn and nothing is excused."""
    record = two_cards()
    untimed = tuple(altered(r, timings=Timings()) for r in record.runs)

    text = page(replace(record, runs=untimed))

    assert "<svg" not in text
    assert "matplotlib" not in text


def test_without_matplotlib_the_page_says_why_there_is_no_chart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The extra is optional; the page names it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    text = page(two_cards())

    assert "<svg" not in text
    assert (
        "No chart: matplotlib is not installed (pip install &#39;hetero-test[html]&#39;)." in text
    )


def test_everything_is_on_the_page() -> None:
    """There is no limit to fit, so no row is left out."""
    text = page(large(8, 10))

    assert "Left out of this page" not in text
    assert text.count("<tr><td>7</td><td>") >= 10


# ---- in a browser -----------------------------------------------------------------------------

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-logging=stderr", "--virtual-time-budget=2000", "--window-size=820,1200",
)  # fmt: skip
CONSOLE = re.compile(r":CONSOLE[:(]")

needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium or google-chrome on PATH")


def browse(text: str, folder: Path) -> tuple[Page, str]:
    """The page as a browser has it in the end, and what the browser said."""
    file = folder / "report.html"
    file.write_text(text, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [str(BROWSER), *FLAGS, profile, "--dump-dom", file.as_uri()],
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        check=True,
        timeout=120,
    )
    return parsed(done.stdout.decode()), done.stderr.decode("utf-8", "replace")


@pytest.mark.browser
@needs_browser
@pytest.mark.parametrize(
    "record", [flipped(two_cards(), "4", 17), hostile(ALL_AT_ONCE)], ids=["fail", "hostile"]
)
def test_a_real_browser_shows_the_page(record: Record, tmp_path: Path) -> None:
    """The page renders without a console message, with the elements that were written."""
    text = page(record)

    shown, said = browse(text, tmp_path)

    assert not CONSOLE.search(said)
    assert shown.tags == parsed(text).tags
    assert shown.tags.count("table") >= 4


@pytest.mark.browser
@needs_browser
def test_hostile_lines_are_shown_as_text(tmp_path: Path) -> None:
    """What would be a script is there to be read, and did not run."""
    shown, said = browse(page(hostile(ALL_AT_ONCE)), tmp_path)

    assert not CONSOLE.search(said)
    assert "script" not in shown.tags
    assert "<script>alert(1)</script>" in shown.text
    assert "<img src=x onerror=alert(1)>" in shown.text


@pytest.mark.browser
@needs_browser
def test_a_script_in_the_page_would_be_seen(tmp_path: Path) -> None:
    """A page that breaks its own policy leaves a console message, so silence means something."""
    broken = page(two_cards()).replace("</body>", "<script>1</script></body>")

    _, said = browse(broken, tmp_path)

    assert CONSOLE.search(said)
