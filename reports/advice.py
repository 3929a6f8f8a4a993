"""What to run next where a question stayed open, as commands to paste."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.engines import ENGINES, engine
from harness.groups import Bond, groups
from harness.model import RunState
from harness.verdict import Result, Tie

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.model import Run

    from .view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A sentence, and the command line that follows it."""

    text: str
    command: str


def advice(view: View) -> tuple[Advice, ...]:
    """At most one piece of advice a cause."""
    if not view.record.manifest.variants:
        return ()
    found = (_pinned(view), _one_size(view), _other_probe(view))
    return tuple(item for item in found if item is not None)


def _pinned(view: View) -> Advice | None:
    """A known cause of a difference can be taken away by the matrix's recipe."""
    pinned = view.record.manifest.pinned
    causes = dict.fromkeys(
        verdict.cause
        for verdict in view.judgment.verdicts
        if verdict.cause
        and (
            verdict.result is Result.INCONCLUSIVE
            # A near tie is nothing that a recipe could hold still.
            or (verdict.result is Result.FAIL and verdict.cause != Tie.NEAR_TIE)
        )
    )
    if not causes or not pinned.exists or pinned.asked:
        return None
    why = view.say("; ".join(filter(None, causes)), 300)
    return Advice(
        text=f"a known cause of a difference was seen ({why}); run with the pinned recipe",
        command=_command(view, extra=("--pinned",)),
    )


def _one_size(view: View) -> Advice | None:
    """Automatic sizes that move between repeats make more residencies than can be anchored."""
    manifest = view.record.manifest
    excess = any(
        group.bond is Bond.EXCESS
        for probe in manifest.probes
        for group in groups(view.record, probe.name)
    )
    smallest = _smallest(view) if excess else None
    if smallest is None or manifest.engine.name not in ENGINES:
        return None
    flags = engine(manifest.engine.name).force(manifest.model_flags, smallest)
    if flags is None:
        return None
    return Advice(
        text="the runs have more residencies than are anchored; give all of them one size",
        command=_command(view, flags=flags),
    )


def _smallest(view: View) -> Run | None:
    """The usable run with the fewest slots, which every other one can hold."""
    sized = [
        (slots, run)
        for run in view.record.runs
        if run.usable and isinstance(slots := run.residency.fact("slots"), int)
    ]
    return min(sized, key=lambda pair: pair[0])[1] if sized else None


def _other_probe(view: View) -> Advice | None:
    """Equal garbage is no exactness."""
    if not any(run.state is RunState.DEGENERATE for run in view.record.runs):
        return None
    return Advice(
        text="a stream only repeats itself, which shows nothing; "
        "try another prompt, or real text as token ids with --tokens-file",
        command=_command(view, extra=("--seed", "8")),
    )


def _command(view: View, *, extra: Sequence[str] = (), flags: Sequence[str] | None = None) -> str:
    """The harness's own command with something added before, or put after, the first ``--``."""
    argv = view.record.manifest.argv
    place = argv.index("--") if "--" in argv else len(argv)
    after = argv[place + 1 :] if flags is None else flags
    tail = ("--", *after) if after else ()
    return view.command((*_without_out(argv[:place]), *extra, *tail))


def _without_out(argv: Sequence[str]) -> tuple[str, ...]:
    """The output folder is taken by now; another run gets one of its own."""
    kept: list[str] = []
    skip = False
    for arg in argv:
        if not (skip or arg == "--out" or arg.startswith("--out=")):
            kept.append(arg)
        skip = arg == "--out" and not skip
    return tuple(kept)
