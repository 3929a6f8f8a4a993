"""Runs that went well, but for what a test changes, and what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hetero_test.session.state import state_of
from hetero_test.values.outcome import Outcome
from hetero_test.values.reading import Reading, Sign, Symptom
from hetero_test.values.run import Probe, StateFinding

IDS = tuple(3059 - (59 - place) * 37 % 60 for place in range(60))
PROBE = Probe(name="default", ids=(220, 5, 17), max_new=60)
TAIL = ("first words", "last words")


def outcome(**changes: Any) -> Outcome:
    """The outcome of a process that ended well, with changes."""
    values: dict[str, Any] = {
        "argv": ("strata",),
        "env_delta": {},
        "cwd": Path("/"),
        "pid": 1,
        "pid_started": None,
        "started": "2026-11-29T12:00:00.000+00:00",
        "elapsed_s": 12.34,
        "exit_code": 0,
        "signal": None,
        "stopped": None,
        "start_error": None,
        "major_faults": 0,
        "blocks_read": 0,
        "max_rss_bytes": 0,
    }
    return Outcome(**{**values, **changes})


def reading(**changes: Any) -> Reading:
    """The reading of a run that went well, with changes."""
    values: dict[str, Any] = {"stream": IDS, "echo": PROBE.ids, "tail": TAIL}
    return Reading(**{**values, **changes})


def sign(symptom: Symptom, line: str = "the line that shows it") -> Sign:
    """A sign."""
    return Sign(symptom=symptom, line=line)


def state(
    ended: Outcome | None = None, read: Reading | None = None, probe: Probe = PROBE
) -> StateFinding:
    """The state of a run that went well, but for what is given."""
    return state_of(ended or outcome(), read or reading(), probe)


NONE = reading(stream=None, stream_trouble="there is none", echo=None)
