"""A path on the command line, refused there if the system cannot even be asked about it."""

from __future__ import annotations

import argparse
from pathlib import Path


def path(text: str) -> Path:
    """The type of every option that names a file or folder, there or yet to be made.

    Raises:
        argparse.ArgumentTypeError: it is empty, too long, a loop of links or behind a folder
            that cannot be entered, or it is relative and the current folder is gone.
    """
    if not text:
        raise argparse.ArgumentTypeError("a path cannot be empty")
    found = Path(text)
    try:
        found.absolute()
    except OSError as error:
        why = "it is relative, and the current folder is gone"
        raise argparse.ArgumentTypeError(f"{text!r}: {why}") from error
    try:
        found.stat()
    except (FileNotFoundError, NotADirectoryError):
        return found
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise argparse.ArgumentTypeError(f"{_short(text)!r}: {why}") from error
    return found


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:60]}…{text[-19:]}"
