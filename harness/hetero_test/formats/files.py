"""Files that a user or an earlier run left: read up to a bound, and only if they are files.

A path may lead to ``/dev/zero``, which never ends, to a pipe that nobody writes to, or to a log
of many gigabytes. Whoever reads such a file whole ends for want of memory, or never. What is
refused here is an ``OSError``, as for a file that may not be read, so that each caller tells it
in the same words as the others.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20
WRITTEN_BY_HAND = 4 * MIB
"""Bytes of a matrix, a rig or the facts of a model; those that exist have some thousands."""
GIVEN = 64 * MIB
"""Bytes of token ids (eight million of them, longer than any context) or of a prediction."""
STORED = 512 * MIB
"""Bytes of a file that this program wrote: a run of a long stream with its probabilities."""

_KINDS = (
    (stat.S_ISDIR, errno.EISDIR, "it is a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "it is a pipe, not a file"),
    (stat.S_ISSOCK, errno.EINVAL, "it is a socket, not a file"),
    (stat.S_ISCHR, errno.EINVAL, "it is a device, not a file"),
    (stat.S_ISBLK, errno.EINVAL, "it is a device, not a file"),
)


def open_file(path: Path, *, most: int | None = None) -> BinaryIO:
    """Open a regular file for reading; nothing is waited for.

    Args:
        path: the file.
        most: bytes that it may have; None for what is read in pieces, however long it is.

    Raises:
        OSError: it cannot be opened, is not a regular file, or is longer; ``strerror`` says which.
    """
    try:
        # Without O_NONBLOCK a pipe is waited for until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a NUL in its name
        raise OSError(errno.EINVAL, "no file can have this name", str(path)) from error
    status = os.fstat(descriptor)
    kinds = ((number, what) for is_kind, number, what in _KINDS if is_kind(status.st_mode))
    wrong = next(kinds, None)
    if wrong is None and most is not None and status.st_size > most:
        wrong = errno.EFBIG, f"it is larger than {most // MIB} MiB"
    if wrong is not None:
        os.close(descriptor)
        raise OSError(*wrong, str(path))
    return os.fdopen(descriptor, "rb")


def inside(root: Path, relative: str) -> Path:
    """A path below a folder, of which no link and no ``..`` leads elsewhere.

    Raises:
        OSError: it leads elsewhere, or a link on it cannot be followed.
    """
    try:
        path = root / relative
        if not relative.startswith("/") and path.resolve() == root.resolve() / relative:
            return path
    except (ValueError, RuntimeError) as error:  # a NUL in its name; a loop of links
        raise OSError(errno.EINVAL, "no file can have this name", relative) from error
    raise OSError(errno.EXDEV, "it leads out of its own place", str(path))


def read_bytes(path: Path, *, most: int) -> bytes:
    """The whole of a regular file.

    Args:
        path: the file.
        most: bytes that it may have.

    Raises:
        OSError: as :func:`open_file`, or it is longer.
    """
    with open_file(path, most=most) as file:
        content = file.read(most + 1)
    if len(content) > most:  # it grows, or the kernel tells no size, as below /proc
        raise OSError(errno.EFBIG, f"it is larger than {most // MIB} MiB", str(path))
    return content
