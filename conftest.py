"""Lets the suite run from a bare checkout as well as from an installed one."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import harness

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    # Set before numpy is imported: the matrices here are small, threads only cost time.
    os.environ.setdefault(_variable, "1")

if find_spec("harness.matrices") is None:
    # Nothing is installed: harness.matrices and harness.reports are the top-level folders.
    harness.__path__.append(str(Path(__file__).parent))
