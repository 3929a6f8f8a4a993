"""What a process is asked to be; what came of it is a value, :class:`values.outcome.Outcome`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hetero_test.launch.dialogue import Dialogue


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
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
    limits: ProcessLimits
    mark: str
    dialogue: Dialogue | None = None

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("an empty argument vector")
