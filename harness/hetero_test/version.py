"""The version of this program."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


def version() -> str:
    """The installed version; that of a bare checkout is unknown."""
    try:
        return installed("hetero-test")
    except PackageNotFoundError:
        return "unknown (not installed)"
