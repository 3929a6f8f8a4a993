"""What came of one process, as values; how it is run is :mod:`hetero_test.launch`'s."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

OUTCOME_SCHEMA = "hetero-test/outcome/2"
"""Name and version of the file. 2: written and read like all that is stored."""


class StopReason(Enum):
    """Why the harness ended a process that had not ended by itself."""

    IDLE = "idle"
    RUN_LIMIT = "run-limit"
    TOTAL_LIMIT = "total-limit"
    OUTPUT_CAP = "output-cap"
    INTERRUPTED = "interrupted"
    DIALOGUE_DONE = "dialogue-done"
    DIALOGUE_FAILED = "dialogue-failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a request.

    Attributes:
        argv: as executed.
        env_delta: what was set on top of the harness's environment, the mark apart.
        unset: what was removed from it.
        cwd: as requested.
        pid: None if the process did not start.
        pid_started: what tells this process from a later one of the same pid
            (:func:`hetero_test.launch.leftovers.start_of`).
        started: UTC, ISO 8601.
        elapsed_s: from just before the start to the end of the process itself.
        exit_code: None if it did not start, was ended by a signal or could not be ended.
        signal: name of the signal that ended it, such as ``SIGSEGV``.
        stopped: why the harness ended it; None if it ended by itself.
        start_error: why it could not be started.
        major_faults: page faults that needed input, from ``wait4``.
        blocks_read: blocks of 512 bytes read from disks, from ``wait4``.
        max_rss_bytes: largest resident set. A process smaller than the harness shows the
            size of the harness, of which it is a fork.
        leftovers: one description each of the descendants that outlived it and were ended.
        output_truncated: an output file exceeded the cap and was cut.
        dialogue_error: why the dialogue did not come to its end.
    """

    argv: tuple[str, ...]
    env_delta: Mapping[str, str]
    unset: tuple[str, ...] = ()
    cwd: Path | None
    pid: int | None
    pid_started: str | None
    started: str
    elapsed_s: float
    exit_code: int | None
    signal: str | None
    stopped: StopReason | None
    start_error: str | None
    major_faults: int | None
    blocks_read: int | None
    max_rss_bytes: int | None
    leftovers: tuple[str, ...] = ()
    output_truncated: bool = False
    dialogue_error: str | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left behind; without pids, for it must read the same in every run."""
        if not self.leftovers:
            return ()
        names = dict.fromkeys(re.sub(r"^pid \d+: ", "", text) for text in self.leftovers)
        count = len(self.leftovers)
        what = "a process" if count == 1 else f"{count} processes"
        return (f"the engine left {what} behind, ended by the harness: {', '.join(names)}",)
