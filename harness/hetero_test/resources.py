"""Finds the data folders ``matrices`` and ``reports``, in a wheel as in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def folder(name: str) -> Path:
    """Where the shipped ``matrices`` or ``reports`` lie: in the package, else beside its root."""
    packaged = _PACKAGE / "data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent.parent / name
