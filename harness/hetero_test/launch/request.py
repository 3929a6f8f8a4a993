"""What a process is asked to be (:class:`Request`), and what came of it (:class:`Outcome`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from hetero_test.errors import StoreError
from hetero_test.launch.dialogue import Dialogue

#: Name and version of the JSON form of an outcome. 1: the first.
SCHEMA = "hetero-test/outcome/1"


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
class Limits:
    """How long, how quietly and how loudly a process may run.

    Attributes:
        run_s: seconds from start to end.
        idle_s: seconds in which neither output file grows.
        deadline: the moment of ``time.monotonic()`` at which everything must end.
        output_bytes: cap of each of the two output files; what exceeds it is cut.
        grace_s: seconds between INT and TERM, and between TERM and KILL.
    """

    run_s: float
    idle_s: float
    deadline: float | None = None
    output_bytes: int = 256 * 2**20
    grace_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One process to be run; nothing here ever passes through a shell.

    Attributes:
        argv: the argument vector. ``argv[0]`` without a slash is looked up on ``PATH``;
            a relative one with a slash is relative to `cwd`.
        cwd: the working directory, or None for the harness's own.
        env: what is set on top of the harness's environment; ``LC_ALL=C`` always is.
        unset: names that are removed from the harness's environment before `env` is set.
        stdout: the file that receives standard output; it is overwritten.
        stderr: the file that receives standard error; it is overwritten.
        limits: when to stop.
        mark: put into the environment, by which descendants are found later.
            Parts are separated by ``/``, from the general to the particular.
        dialogue: whom a server talks to while it lives.
    """

    argv: tuple[str, ...]
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    stdout: Path
    stderr: Path
    limits: Limits
    mark: str
    dialogue: Dialogue | None = None

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("an empty argument vector")


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

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values, `SCHEMA` among them."""
        values = asdict(self)
        values["cwd"] = None if self.cwd is None else str(self.cwd)
        values["stopped"] = None if self.stopped is None else self.stopped.value
        for name in ("argv", "unset", "leftovers"):
            values[name] = list(values[name])
        values["env_delta"] = dict(self.env_delta)
        return {"schema": SCHEMA, **values}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Outcome:
        """Return the outcome that `to_json` wrote.

        Raises:
            StoreError: another schema, or a value that is missing or of the wrong type.
        """
        schema = values.get("schema")
        if schema != SCHEMA:
            raise StoreError(
                f"expected an outcome of schema {SCHEMA!r}, found {schema!r}",
                hint="render it with the version of hetero-test that wrote it",
            )
        for name, fits in _FITS.items():
            if name not in values:
                raise StoreError(f"outcome: {name} is missing")
            if not fits(values[name]):
                raise StoreError(f"outcome: {name} cannot be {values[name]!r}")
        known = {name: values[name] for name in _FITS}
        for name in ("argv", "unset", "leftovers"):
            known[name] = tuple(known[name])
        known["cwd"] = None if known["cwd"] is None else Path(known["cwd"])
        known["stopped"] = None if known["stopped"] is None else StopReason(known["stopped"])
        return cls(**known)


# Not left to pydantic, which refuses text that is no UTF-8: an argument may be such text.
def _is(*types: type) -> Callable[[object], bool]:
    return lambda value: type(value) in types


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_delta(value: object) -> bool:
    return isinstance(value, dict) and _is_texts([*value, *value.values()])


def _is_reason(value: object) -> bool:
    return value is None or value in [reason.value for reason in StopReason]


_TEXT = _is(str, type(None))
_COUNT = _is(int, type(None))

_FITS: Mapping[str, Callable[[object], bool]] = {
    "argv": _is_texts,
    "env_delta": _is_delta,
    "unset": _is_texts,
    "cwd": _TEXT,
    "pid": _COUNT,
    "pid_started": _TEXT,
    "started": _is(str),
    "elapsed_s": _is(float, int),
    "exit_code": _COUNT,
    "signal": _TEXT,
    "stopped": _is_reason,
    "start_error": _TEXT,
    "major_faults": _COUNT,
    "blocks_read": _COUNT,
    "max_rss_bytes": _COUNT,
    "leftovers": _is_texts,
    "output_truncated": _is(bool),
    "dialogue_error": _TEXT,
}
