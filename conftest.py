"""Settings that must stand before any test module is imported."""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    # Set before numpy is imported: the matrices here are small, threads only cost time.
    os.environ.setdefault(_variable, "1")
