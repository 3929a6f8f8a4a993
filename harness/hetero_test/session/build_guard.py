"""Whether engine, libraries and models are still those that were named in the manifest."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hetero_test.errors import HeteroTestError
from hetero_test.rig.host import file_sha256

if TYPE_CHECKING:
    from hetero_test.values.record import Manifest


class SameEngine:
    """Looks at a binary before each launch; hashes it again only where it was touched.

    A build that is made anew while a matrix runs would otherwise compare two engines, and a
    difference, or its absence, would be told of a placement.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._path = path
        self._sha256 = manifest.engine.sha256
        self._hashed_at = datetime.fromisoformat(manifest.started).timestamp()
        self._seen: tuple[int, ...] | None = None

    def check(self) -> None:
        """Look.

        Raises:
            HeteroTestError: another file is there, or none.
        """
        try:
            stat = self._path.stat()
            seen = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
            if seen == self._seen:
                return
            # The time of the last change to the file or its inode: nobody can set it back. But a
            # clock may be, so that it only tells of what happened before the first look.
            touched = self._seen is not None or stat.st_ctime >= self._hashed_at
            if touched and file_sha256(self._path) != self._sha256:
                raise HeteroTestError(
                    f"{self._path}: the engine was replaced while the matrix ran",
                    hint="runs of two engines cannot be compared: go on with the old one and "
                    "--resume, or begin again in another --out",
                )
        except OSError as error:
            raise HeteroTestError(
                f"{self._path}: the engine cannot be read any more: {error.strerror}",
                hint="put it back, then go on with --resume",
            ) from error
        self._seen = seen


_GGUF: Final = b"GGUF"
_WHOLE_SECOND_S: Final = 1.0
"""The manifest's start is written without its fraction."""


class SameFiles:
    """Looks at the shared libraries beside an engine, which hold most of it, and at the models.

    They are too large to be hashed, so that sizes and times decide; a file that was only
    touched counts as another one.
    """

    def __init__(self, engine: Path, manifest: Manifest) -> None:
        self._started_at = datetime.fromisoformat(manifest.started).timestamp()
        self._libraries = {path: _stamp(path) for path in sorted(_libraries(engine))}
        models = (Path(model.path) for model in manifest.model)
        self._models = {path: _stamp(path) for path in models if _is_model(path)}
        self._looked = False

    def check(self) -> None:
        """Look.

        Raises:
            HeteroTestError: one of them was replaced, changed or taken away.
        """
        files = {**self._libraries, **self._models}
        other = next((path for path, seen in files.items() if _stamp(path) != seen), None)
        if other is None and not self._looked:
            other = self._made_anew()
        if other is not None:
            raise HeteroTestError(
                f"{other}: this file was changed or replaced while the matrix ran",
                hint="runs of two engines, or of two models, cannot be compared: begin again in "
                "another --out",
            )
        self._looked = True

    def _made_anew(self) -> Path | None:
        """A library that was written between the start of a matrix and its going on."""
        now = time.time()
        times = ((path, stamp[-1] / 1e9) for path, stamp in self._libraries.items() if stamp)
        since = self._started_at + _WHOLE_SECOND_S
        # A time that is yet to come tells of a wrong clock, not of a new file.
        return next((path for path, written in times if since < written <= now), None)


def _libraries(engine: Path) -> set[Path]:
    """Shared libraries in an engine's own folder, also where a link leads to it."""
    found: set[Path] = set()
    for folder in {engine.parent, engine.resolve().parent}:
        try:
            found.update(path for path in folder.iterdir() if ".so" in path.suffixes)
        except OSError:
            continue
    return found


def _is_model(path: Path) -> bool:
    """Whether it is a file of weights; others may be the engine's own to write to."""
    try:
        with path.open("rb") as file:
            return file.read(len(_GGUF)) == _GGUF
    except OSError:
        return False


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What changes with a file's content; the time of its last change stands last."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
