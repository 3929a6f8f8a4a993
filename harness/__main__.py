"""``python -m harness`` is ``hetero-test``."""

from __future__ import annotations

from harness.cli import entry

if __name__ == "__main__":
    entry()
