"""What two renderers of GitHub Flavored Markdown, and GitHub's own filters, make of a text.

cmarkgfm binds the renderer that GitHub uses; markdown-it-py with linkify is stricter than
GitHub in one respect: it also links bare domains, as other forges do. GitHub then looks for
mentions, references, emoji and formulas in all rendered text that is no code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options
from markdown_it import MarkdownIt

CODE = ("code", "pre")

FILTERS = {
    "mention": r"(?:^|[^\w`])@[A-Za-z0-9]",
    "reference": r"#\d|\bGH-\d|\b[A-Z]+-\d",
    "emoji": r":[\w+-]+:",
    "commit": r"\b[0-9a-f]{7,40}\b",
    "formula": r"\$",
    "address": r"https?:|ftp:|www\.|mailto:",
}
"""What GitHub's pipeline turns into something else after rendering."""


@dataclass
class Page(HTMLParser):
    """A rendered text: its elements, and its text inside and outside of code."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str | None]] = field(default_factory=list)
    text: str = ""
    prose: str = ""
    depth: int = 0
    fences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count an element."""
        if tag == "pre":
            self.fences.append("")
        if tag in CODE:
            self.depth += 1
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        """Leave code."""
        if tag in CODE:
            self.depth -= 1

    def handle_data(self, data: str) -> None:
        """Collect text; a code span leaves a gap in the prose."""
        self.text += data
        self.prose += "\x00" if self.depth else data
        if self.depth and self.fences:
            self.fences[-1] += data

    def handle_comment(self, data: str) -> None:
        """A comment is markup that hides text."""
        self.tags.append(f"!--{data}--")

    def acting(self) -> list[str]:
        """Names of the filters that would find something."""
        return [name for name, pattern in FILTERS.items() if re.search(pattern, self.prose)]


def cmark(text: str) -> Page:
    """The renderer that GitHub uses, with raw HTML let through."""
    return _parsed(cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE))


def markdown_it(text: str) -> Page:
    """Another renderer, with raw HTML let through and bare domains linked."""
    return _parsed(MarkdownIt("gfm-like", {"linkify": True, "html": True}).render(text))


RENDERERS = (cmark, markdown_it)


def _parsed(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page
