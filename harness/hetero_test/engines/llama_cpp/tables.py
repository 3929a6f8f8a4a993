"""Tables and lists that one log fills; bounded, whatever the log holds."""

from __future__ import annotations

from typing import Final, TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")

MOST: Final = 100_000
"""Entries of one table beyond which a log is not that of a model."""
KEPT: Final = 20
"""How many lines of one sort are kept for the report."""


class Tables:
    """Fills tables and lists up to :data:`MOST` entries each.

    Attributes:
        overflow: one of them would have grown beyond that, so it does not hold everything.
    """

    def __init__(self) -> None:
        self.overflow = False

    def put(self, table: dict[_K, _V], key: _K, value: _V) -> None:
        """Set an entry; of several values for one key the last stays."""
        if key in table or len(table) < MOST:
            table[key] = value
        else:
            self.overflow = True

    def add(self, entries: list[_V], entry: _V) -> bool:
        """Append an entry; False where there is no room for it."""
        if len(entries) >= MOST:
            self.overflow = True
            return False
        entries.append(entry)
        return True
