"""What this machine and this command line hold that must not be published."""

from __future__ import annotations

import getpass
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.publish.redact import secrets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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
