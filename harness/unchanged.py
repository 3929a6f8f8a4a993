"""Whether the engine that is launched is still the one that was named in the manifest."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from harness.errors import HeteroTestError
from harness.rig import file_sha256

if TYPE_CHECKING:
    from pathlib import Path

    from harness.record import Manifest


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
