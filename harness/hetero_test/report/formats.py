"""The one table of report formats, and how the builder of each is found.

A judged record and the name of a format come in; a text goes out, or the bytes of a file. A
builder is a module of ``hetero_test.report`` with ``build(record, judgment, *, redactor)``. It is
loaded when it is asked for, so that the road never depends on what renders its end.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol, cast, get_args

from hetero_test.publish.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hetero_test.values.record import Manifest, Record
    from hetero_test.values.verdict import Judgment

TextForm = Literal["md", "json", "html", "junit", "csv"]
"""Formats that are a text."""
Form = Literal[TextForm, "parquet"]
"""All formats."""
FORMATS: tuple[Form, ...] = get_args(Form)
_MODULES: dict[Form, str] = {"md": "markdown"}
"""Modules that are not called like their format."""


class Builder(Protocol):
    """What each module of ``hetero_test.report`` offers."""

    def build(self, record: Record, judgment: Judgment, *, redactor: Redactor) -> str | bytes:
        """The whole of one format."""


def build(form: TextForm, record: Record, judgment: Judgment, *, out: Path, redact: bool) -> str:
    """Render a judged record in a format that is a text; ``out`` is its run directory."""
    text = _built(form, record, judgment, redactor_for(record, out, redact=redact))
    assert isinstance(text, str), "a TextForm's builder makes a text"
    return text


def build_bytes(
    form: Form, record: Record, judgment: Judgment, *, out: Path, redact: bool
) -> bytes:
    """The same for any format: the bytes of a file."""
    made = _built(form, record, judgment, redactor_for(record, out, redact=redact))
    return made if isinstance(made, bytes) else made.encode("utf-8", "backslashreplace")


def _built(form: Form, record: Record, judgment: Judgment, redactor: Redactor) -> str | bytes:
    module = import_module(f"hetero_test.report.{_MODULES.get(form, form)}")
    builder = cast("Builder", module)
    return builder.build(record, judgment, redactor=redactor)


def report_renderer(manifest: Manifest, out: Path) -> Callable[[Record, Judgment], str]:
    """The function that renders ``report.md``; loads its libraries at the first call."""

    def render(record: Record, judgment: Judgment) -> str:
        return build("md", record, judgment, out=out, redact=manifest.redact)

    return render


def redactor_for(record: Record, out: Path, *, redact: bool) -> Redactor:
    """What must not be published of this record, where it was made."""
    if not redact:
        return Redactor.off()
    return Redactor(pairs=(*record.manifest.secrets, *_here(out)))


def _here(out: Path) -> tuple[tuple[str, str], ...]:
    """The run directory may have moved since."""
    return ((str(out.absolute()), "<out>"), (str(out.resolve()), "<out>"))
