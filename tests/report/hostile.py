"""Texts that try to act."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    "@octocat", "@org/team", "user/repo#1", "#12", "GH-12", "CVE-2026-1234", "deadbeefcafe",
    "<b>bold</b>", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</td></table>",
    "</details>", "</summary>", "<!--", "-->", "<!-- x -->", "]]>", "&lt;b&gt;", "&#64;octocat",
    "http://x.example", "https://x.example/#12", "www.x.example", "www.", "WWW.é", "x.com",
    "mailto:a@b.cd", "a@b.cd", "[a](http://b.cd)", "![a](b)", "[a]: http://b.cd", "[^1]",
    "[ ]", "[x]",
    "`", "``", "```", "````", "~~~", "~~gone~~", "~", "~gone~", "**bold**", "__bold__", "_x_",
    "*x*", "\\", "\\|", "\\\\|", "|", "||", "|---|", "---", "===", "***", "# h", "## h", "> q",
    "- item", "+ item", "* item", "1. item", "2) item", ":smile:", ":+1:", "$x$", "$$x$$",
    "$`x`$", "\n", "\n\n", "\r\n", "\t", " ", "  ", "    indented", "\x00", "\x1b[31mred\x1b[0m",
    "\x1b]0;t\x07", "\u202e", "\u200b", "\u2028", "\ufeff", "\ud800", "é", "日本", "⚠️", "ok", ".",
)  # fmt: skip

texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=10).map("".join)
"""Such pieces, and any characters, put together."""

worded = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=10).map(" ".join)
"""Likewise with blanks between them."""

ALL_AT_ONCE = " ".join(PIECES)
