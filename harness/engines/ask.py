"""A question to a binary before any launch: its help, its devices, its version."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.launch import launch
from harness.outcome import Limits, Outcome, Request, StopReason

if TYPE_CHECKING:
    from collections.abc import Sequence

ANSWER_BYTES = 1 << 20
"""What a help text or a list of devices may have at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a binary said to a question.

    Attributes:
        trouble: why the answer counts for nothing; None if it counts.
        outcome: how its process ended; None if there was no binary to ask.
    """

    stdout: str
    stderr: str
    trouble: str | None
    outcome: Outcome | None = None


def ask(argv: Sequence[str], *, limit_s: float) -> Answer:
    """Run a binary for its answer, within limits, and leave nothing of it running.

    Args:
        argv: the binary and its arguments; no shell is involved.
        limit_s: seconds after which it is ended, and :data:`ANSWER_BYTES` of output likewise.
    """
    with tempfile.TemporaryDirectory(prefix="hetero-test-") as folder:
        stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
        limits = Limits(run_s=limit_s, idle_s=limit_s, output_bytes=ANSWER_BYTES, grace_s=1.0)
        request = Request(
            argv=tuple(argv), stdout=stdout, stderr=stderr, limits=limits, mark="survey"
        )
        outcome = launch(request)
        said = _text(stderr)
        return Answer(
            stdout=_text(stdout), stderr=said, trouble=_trouble(outcome, said), outcome=outcome
        )


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(ANSWER_BYTES).decode("utf-8", "replace").replace("\0", "")


def _trouble(outcome: Outcome, stderr: str) -> str | None:
    said = next((f": {line.strip()[:200]}" for line in stderr.splitlines() if line.strip()), "")
    if outcome.start_error is not None:
        return f"it could not be started: {outcome.start_error}"
    if outcome.stopped is not None or outcome.output_truncated:
        why = (outcome.stopped or StopReason.OUTPUT_CAP).value
        return f"it was stopped ({why}) after {outcome.elapsed_s:.0f} s"
    if outcome.signal is not None:
        return f"it ended by {outcome.signal}{said}"
    if outcome.exit_code != 0:
        return f"exit code {outcome.exit_code}{said}"
    return None
