"""Whether engine, libraries and models are still those that were named in the manifest."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hetero_test.errors import HeteroTestError
from hetero_test.formats.files import open_file
from hetero_test.rig.host import content_sha256, file_sha256

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


class SameFiles:
    """Looks at the shared libraries beside an engine, which hold most of it, and at the models.

    Their contents decide, see :func:`hetero_test.rig.host.content_sha256`; they are read again
    only where a file was touched.
    """

    def __init__(self, manifest: Manifest) -> None:
        libraries = dict(manifest.engine.libraries)
        models = {model.path for model in manifest.model if _is_model(Path(model.path))}
        stamps = {path: _stamp(Path(path)) for path in models}  # before they are read
        self._contents = libraries | {path: content_sha256(Path(path)) for path in models}
        self._seen: dict[str, tuple[int, ...] | None] = dict.fromkeys(libraries) | stamps

    def check(self) -> None:
        """Look.

        Raises:
            HeteroTestError: one of them was replaced, changed or taken away.
        """
        for name, content in self._contents.items():
            path = Path(name)
            stamp = _stamp(path)
            if stamp is not None and stamp == self._seen[name]:
                continue
            try:
                same = content_sha256(path) == content
            except OSError:
                same = False
            if not same:
                raise HeteroTestError(
                    f"{path}: this file was changed or replaced while the matrix ran",
                    hint="runs of two engines, or of two models, cannot be compared: begin again "
                    "in another --out",
                )
            self._seen[name] = stamp


def _is_model(path: Path) -> bool:
    """Whether it is a file of weights; others may be the engine's own to write to."""
    try:
        with open_file(path) as file:
            return file.read(len(_GGUF)) == _GGUF
    except OSError:
        return False


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when a file is touched."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
