"""What stands for an option that is not given, and the bounds of those that are.

Constants alone: the help names them without loading anything else.
"""

from __future__ import annotations

from typing import Final

MATRIX: Final = "strata"
MAX_NEW: Final = 60
REPEATS: Final = 2
RUN_S: Final = 3600.0
IDLE_S: Final = 900.0
TOKENS: Final = 95
SEED: Final = 7
MOST_TOKENS: Final = 2**24
"""No engine has a context of more."""
MOST_REPEATS: Final = 1000
"""Each is a launch of every variant; more are a mistyped number."""
MANY_REPEATS: Final = 5
"""From this many repeats on one warm-up run is made unless another number is asked for."""
DEMO_FOLDER: Final = "demo"
"""What the demo puts into a run directory before the run itself begins."""


def is_whole(text: str) -> bool:
    """Whether a text is a number from 0 on, of a size that anything is counted in."""
    return text.isascii() and text.isdigit() and len(text) < 19
