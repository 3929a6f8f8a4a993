"""Finds report builders by name, so that the road never depends on what renders its end.

A builder is a module of ``hetero_test.report`` with
``build(record, judgment, *, redactor)``; what it returns is a text, or the bytes of a file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from hetero_test.publish.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hetero_test.values.record import Manifest, Record
    from hetero_test.values.verdict import Judgment

FORMATS = {
    "md": "markdown",
    "json": "json",
    "html": "html",
    "junit": "junit",
    "csv": "csv",
    "parquet": "parquet",
}
"""Format names of the command line to builder modules."""


class Builder(Protocol):
    """What each module of ``hetero_test.report`` offers."""

    def build(self, record: Record, judgment: Judgment, *, redactor: Redactor) -> str | bytes:
        """The whole of one format."""


def build(name: str, record: Record, judgment: Judgment, *, out: Path, redact: bool) -> str:
    """Render a judged record with the builder of that name, which makes a text."""
    text = _built(name, record, judgment, redactor_for(record, out, redact=redact))
    assert isinstance(text, str), "only report prints what is no text"
    return text


def build_bytes(name: str, record: Record, judgment: Judgment, *, out: Path, redact: bool) -> bytes:
    """The same for any builder: the bytes of a file."""
    made = _built(name, record, judgment, redactor_for(record, out, redact=redact))
    return made if isinstance(made, bytes) else made.encode("utf-8", "backslashreplace")


def _built(name: str, record: Record, judgment: Judgment, redactor: Redactor) -> str | bytes:
    builder = cast("Builder", import_module(f"hetero_test.report.{name}"))
    return builder.build(record, judgment, redactor=redactor)


def report_renderer(manifest: Manifest, out: Path) -> Callable[[Record, Judgment], str]:
    """The function that renders ``report.md``; loads its libraries at the first call."""

    def render(record: Record, judgment: Judgment) -> str:
        return build("markdown", record, judgment, out=out, redact=manifest.redact)

    return render


def redactor_for(record: Record, out: Path, *, redact: bool) -> Redactor:
    """What must not be published of this record, where it was made."""
    if not redact:
        return Redactor.off()
    return Redactor(pairs=(*record.manifest.secrets, *_here(out)))


def _here(out: Path) -> tuple[tuple[str, str], ...]:
    """The run directory may have moved since."""
    return ((str(out.absolute()), "<out>"), (str(out.resolve()), "<out>"))
