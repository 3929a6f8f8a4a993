"""Progress on stderr: a live line on a terminal, one plain line a finished run elsewhere."""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Self

from hetero_test.publish.printable import printable
from hetero_test.session.schedule import launches
from hetero_test.values.run import RunState
from hetero_test.values.verdict import Result

if TYPE_CHECKING:
    from rich.live import Live

    from hetero_test.values.record import Record
    from hetero_test.values.run import Cell, Run
    from hetero_test.values.verdict import Judgment

WIDEST = 160


class Console:
    """Tells how a matrix gets on; silent when quiet.

    Whatever an engine brought goes through `hetero_test.publish.printable`, and rich is given
    finished text without markup, so that no log line can act on the terminal.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.live: Live | None = None
        self.done = 0
        self.took: list[float] = []
        self.started = time.monotonic()
        self.current: tuple[str, float] | None = None
        self.total = 0
        self.bad = 0
        self.verdicts = ""

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console as Rich
            from rich.live import Live

            rich = Rich(stderr=True, markup=False, highlight=False)
            self.live = Live(
                console=rich, get_renderable=self._line, refresh_per_second=4, transient=True
            )
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def say(self, text: str) -> None:
        """One line of talk."""
        if not self.quiet:
            self._print(text)

    def _print(self, text: str) -> None:
        line = printable(text, WIDEST)
        if self.live is not None:
            self.live.console.print(line, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def _line(self) -> str:
        """The live line: what runs, since when, what is left, what was found so far."""
        if self.current is None:
            return ""
        what, since = self.current
        parts = [f"{self.done + 1}/{max(self.total, self.done + 1)} {what}"]
        parts.append(_span(time.monotonic() - since))
        if self.took:
            left = max(0, self.total - self.done) * median(self.took) - (time.monotonic() - since)
            parts.append(f"about {_span(max(0.0, left))} to the end")
        if self.done:
            parts.append(f"{self.done - self.bad} OK, {self.bad} not")
        parts.append(self.verdicts)
        return printable(" · ".join(part for part in parts if part), WIDEST)

    def begins(self, record: Record, cell: Cell) -> None:
        """A cell is about to be launched."""
        self.done = len(record.runs) + len(record.warmup) + len(record.rechecks)
        self.total = max(launches(record.manifest), self.done + 1)
        self.current = (f"variant {cell.variant}, repeat {cell.repeat}", time.monotonic())

    def judged(self, judgment: Judgment) -> None:
        """What is known so far was judged and published."""
        self.verdicts = f"{judgment.count(Result.PASS)} PASS / {judgment.count(Result.FAIL)} FAIL"

    def ended(self, record: Record, run: Run) -> None:
        """A run was stored."""
        self.done = len(record.runs) + len(record.warmup) + len(record.rechecks)
        self.bad += run.state is not RunState.OK
        first = not self.took
        self.took.append(run.outcome.elapsed_s)
        if self.quiet:
            return
        speed = run.timings.decode_tok_s
        parts = [
            f"[{self.done}/{max(self.total, self.done)}]",
            f"variant {run.variant}, repeat {run.repeat}:",
            run.state.value,
            f"in {_span(run.outcome.elapsed_s)}",
            f"{speed:.2f} tok/s" if speed is not None else "",
            f"md5 {run.md5[:12]}" if run.md5 and run.usable else "",
            f"({run.reason})" if run.reason else "",
        ]
        self._print(" ".join(part for part in parts if part))
        if first and self.total > self.done:
            left = (self.total - self.done) * self.took[0]
            self._print(f"about {_span(left)} to go for {self.total - self.done} launches")


def _span(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
