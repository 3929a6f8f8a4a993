"""Scores the model of time on points: ``python -m hetero_test.triage.learn.evaluate [FILE …]``.

Without a file the shipped points are scored; with files, those in them. Either way the model is
fitted to the shipped points without those of the scored point's own repository or thread. See
`hetero_test.triage.learn.points` for the format of a file. Prints Markdown on stdout.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.errors import HeteroTestError, UsageError
from hetero_test.triage.learn.points import Quantity, Use, read_points, shipped_points
from hetero_test.triage.learn.scoring import left_out, score, summarize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.triage.learn.points import Point
    from hetero_test.triage.learn.scoring import Scored, Summary


def evaluation(points: Sequence[Point]) -> str:
    """The whole text: a row a point, the sums, and what is left out and why.

    Raises:
        UsageError: no point can be scored.
    """
    if not any(point.use is Use.SCORE for point in points):
        raise UsageError(
            "none of these points can be scored", hint='a scored point has use = "score"'
        )
    scored = score(points)
    lines = [
        "| point | predicted b/a | 80 % interval | measured b/a | error | call |",
        "|:--|--:|:-:|--:|--:|:--|",
        *(_row(s) for s in sorted(scored, key=lambda s: s.point.id)),
        "",
        *summary_lines(scored),
    ]
    if out := left_out(points):
        lines += ["", f"Left out ({len(out)}):", ""]
        lines += [f"- {name}: {why}" for name, why in sorted(out.items())]
    return "\n".join(lines) + "\n"


def summary_lines(scored: Sequence[Scored]) -> list[str]:
    """The sums beside the aims, as a table of Markdown."""
    every = summarize(scored)
    inside = f"80 % ± {every.binomial_half_width:.0%}"
    lines = [
        "| leave-one-source-out | reached | aim |",
        "|:--|--:|:--|",
        f"| points scored | {every.points} from {every.sources} sources | |",
        f"| decided (GO or NO-GO) | {_of(every.decided, every.points)} | at least half |",
        f"| right sign of those decided | {_of(every.right, every.decided)} | at least 90 % |",
        f"| right sign of all middles | {_of(every.signs, every.points)} | |",
        f"| median error | {every.median_error:.1%} | at most 10 % |",
        f"| worst error | {every.worst_error:+.0%} ({every.worst_id}) | |",
        f"| inside the 80 % interval | {_of(every.inside, every.points)} | {inside} |",
        f"| median width (high/low − 1) | {every.median_width:.0%} | |",
    ]
    return [*lines, "", *_shortfalls(every, scored)]


def _shortfalls(every: Summary, scored: Sequence[Scored]) -> list[str]:
    """Which aims are not reached, and which points are to blame."""
    found = []
    if every.decided * 2 < every.points:
        names = [s.point.id for s in scored if s.right is None]
        found.append(f"Fewer than half are decided; undecided: {', '.join(names)}.")
    if every.decided and every.right < 0.9 * every.decided:
        names = [s.point.id for s in scored if s.right is False]
        found.append(f"Too many wrong signs: {', '.join(names)}.")
    if every.median_error > 0.1:
        worst = sorted(scored, key=lambda s: -abs(s.predicted - s.measured))[:5]
        names = [f"{s.point.id} ({s.error:+.0%})" for s in worst]
        found.append(f"The median error is above 10 %; largest: {', '.join(names)}.")
    if abs(every.inside / every.points - 0.8) > every.binomial_half_width:
        names = [s.point.id for s in scored if not s.inside]
        found.append(f"The intervals do not hold 80 %; outside: {', '.join(names) or 'none'}.")
    return found or ["All aims are reached."]


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "0 of 0"


def _row(scored: Scored) -> str:
    low = math.exp(scored.predicted - scored.half_width)
    high = math.exp(scored.predicted + scored.half_width)
    name = scored.point.id
    if scored.point.quantity is Quantity.PREFILL:
        name += " (prefill)"
    wrong = {True: "", False: ", wrong", None: ""}[scored.right]
    outside = "" if scored.inside else ", outside"
    return (
        f"| {name} | {math.exp(scored.predicted):.3f} | {low:.3f} to {high:.3f} "
        f"| {math.exp(scored.measured):.3f} | {scored.error:+.1%} "
        f"| {scored.call}{wrong}{outside} |"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the evaluation of files, or of the shipped points; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m hetero_test.triage.learn.evaluate",
        description="Score the model of time on published points, each with its source left out.",
    )
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="points to score (default: the shipped)"
    )
    files = parser.parse_args(argv).files
    try:
        points = tuple(p for path in files for p in read_points(path))
        sys.stdout.write(evaluation(points if files else shipped_points()))
    except HeteroTestError as error:
        sys.stderr.write(f"hetero-test: error: {error}\n")
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
