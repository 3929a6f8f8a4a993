"""The largest memory that this process has had."""

from __future__ import annotations

import re
from pathlib import Path


def peak_mib() -> float:
    """Peak resident set in MiB, of this program alone.

    ``ru_maxrss`` would start with that of the process which this one was forked from.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found.group(1)) / 1024
