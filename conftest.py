"""Lets the suite run from a bare checkout as well as from an installed one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import harness

if find_spec("harness.matrices") is None:
    # Nothing is installed: harness.matrices and harness.reports are the top-level folders.
    harness.__path__.append(str(Path(__file__).parent))
