"""``python -m hetero_test`` is ``hetero-test``."""

from __future__ import annotations

from hetero_test.cli.main import entry

if __name__ == "__main__":
    entry()
