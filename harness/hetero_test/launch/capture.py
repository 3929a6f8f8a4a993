"""The two files that a process writes to, watched while it does.

The process gets the files themselves, not pipes: nothing of the harness stands between,
every byte is there even if the harness dies, and a process that closes its output is still
watched. The descriptors append, so a file that is cut while it grows stays as long as its cap.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hetero_test.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# How often the sizes are read. Each look takes a moment from an engine that computes on every
# core; between two looks a sudden flood can write as much as the disk takes.
_QUIET_S = 0.1
_FLOOD_S = 0.002


class Capture:
    """The output of one process.

    Attributes:
        stdout: descriptor for the process's standard output.
        stderr: descriptor for its standard error.
        grew_at: when a file was last seen to have changed, on the monotonic clock.
        over_cap: whether a file has ever exceeded the cap.
    """

    def __init__(self, *, stdout: int, stderr: int, cap_bytes: int) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.over_cap = False
        self.grew_at = self._looked_at = time.monotonic()
        self._cap_bytes = cap_bytes
        self._sizes = (0, 0)
        self._rate_bytes_s = 0.0

    def look(self) -> None:
        """Read the sizes; cut what exceeds the cap."""
        now = time.monotonic()
        sizes = (os.fstat(self.stdout).st_size, os.fstat(self.stderr).st_size)
        if sizes != self._sizes:
            self.grew_at = now
        grown = max(new - old for new, old in zip(sizes, self._sizes, strict=True))
        self._rate_bytes_s = grown / max(now - self._looked_at, 1e-6)
        self._sizes = sizes
        self._looked_at = now
        for descriptor, size in zip((self.stdout, self.stderr), sizes, strict=True):
            if size > self._cap_bytes:
                self.over_cap = True
                os.truncate(descriptor, self._cap_bytes)

    def next_look_s(self) -> float:
        """Seconds until the sizes should be read again: fewer, the sooner the cap is met."""
        if self._rate_bytes_s <= 0:
            return _QUIET_S
        left_s = (self._cap_bytes - max(self._sizes)) / self._rate_bytes_s
        return min(_QUIET_S, max(_FLOOD_S, left_s / 2))


@contextmanager
def capturing(*, stdout: Path, stderr: Path, cap_bytes: int) -> Iterator[Capture]:
    """Open the two files, empty, and close them in the end.

    Raises:
        StoreError: one of them cannot be opened for writing.
    """
    with _opened(stdout) as out, _opened(stderr) as err:
        yield Capture(stdout=out, stderr=err, cap_bytes=cap_bytes)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        raise StoreError(
            f"cannot write the engine's output to {path}: {error.strerror}",
            hint="check that the output folder still exists, is writable and has room",
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
