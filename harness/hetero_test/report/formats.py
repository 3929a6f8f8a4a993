"""Finds report builders by name, so that the road never depends on what renders its end.

A builder is a module of ``hetero_test.report`` with
``build(record, judgment, *, redactor) -> str``.
"""

from __future__ import annotations

import getpass
import socket
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from hetero_test.publish.redact import Redactor, secrets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Judgment

FORMATS = {"md": "markdown", "json": "json", "html": "html", "junit": "junit"}
"""Format names of the command line to builder modules."""


class Builder(Protocol):
    """What each module of ``hetero_test.report`` offers."""

    def build(self, record: Record, judgment: Judgment, *, redactor: Redactor) -> str:
        """The whole text of one format."""


def build(name: str, record: Record, judgment: Judgment, *, out: Path, redact: bool) -> str:
    """Render a judged record with the builder of that name."""
    builder = cast("Builder", import_module(f"hetero_test.report.{name}"))
    return builder.build(record, judgment, redactor=redactor_for(record, out, redact=redact))


def redactor_for(record: Record, out: Path, *, redact: bool) -> Redactor:
    """What must not be published of this record, where it was made."""
    if not redact:
        return Redactor.off()
    return Redactor(pairs=(*record.manifest.secrets, *_here(out)))


def _here(out: Path) -> tuple[tuple[str, str], ...]:
    """The run directory may have moved since."""
    return ((str(out.absolute()), "<out>"), (str(out.resolve()), "<out>"))


def host_secrets(
    *,
    argv: tuple[str, ...],
    model_flags: tuple[str, ...],
    env: tuple[tuple[str, str], ...],
    build_dir: Path,
    out: Path,
) -> tuple[tuple[str, str], ...]:
    """Texts of this machine and this command that are replaced before publishing."""
    user = host = home = ""
    with suppress(OSError, RuntimeError):  # no HOME, and a user that the system does not know
        home = str(Path.home())
    with suppress(OSError, KeyError):
        user = getpass.getuser()
    with suppress(OSError):
        host = socket.gethostname()
    pairs = secrets_of(
        argv=argv,
        model_flags=model_flags,
        env=env,
        build_dir=str(build_dir.absolute()),
        out_dir=str(out.absolute()),
        home=home,
        user=user,
        host=host,
    )
    return (*pairs, *_behind_links(pairs, model_flags))


def _behind_links(
    pairs: tuple[tuple[str, str], ...], model_flags: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Where folders and model files really lie: an engine may print a path with links resolved.

    A relative path has such a place too, below the current folder.
    """
    places = dict(pairs)
    for text, place in pairs:
        if text.startswith("/") and place in {"<build>", "<out>", "~"}:
            yield from _elsewhere(Path(text), place, places)
    for arg in model_flags:
        value = arg.partition("=")[2] if arg.startswith("-") else arg
        folder = value.rstrip("/").rpartition("/")[0]
        try:
            if value and Path(value).exists():
                place = places.get(folder, "<model>")
                yield from _elsewhere(Path(value), place, places, folder=True)
        except (OSError, ValueError):  # a value need not be a path at all
            continue


def _elsewhere(
    path: Path, place: str, places: Mapping[str, str], *, folder: bool = False
) -> Iterator[tuple[str, str]]:
    with suppress(OSError, RuntimeError):  # a loop of links
        real = path.resolve().parent if folder else path.resolve()
        if str(real) not in places and real != Path("/"):
            yield str(real), place
