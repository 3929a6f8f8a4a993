"""Where two streams part, with both continuations, as blocks of a diff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.verdict import Result

from .blocks import Block

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.verdict import Verdict

    from .budget import Cuts, Detail
    from .view import View


def splits(view: View, detail: Detail, cuts: Cuts) -> tuple[Block, ...]:
    """The continuations of each difference that a verdict found; what failed comes first."""
    order = (Result.FAIL, Result.INCONCLUSIVE, Result.NOT_CLAIMED)
    found = [v for v in view.judgment.verdicts if v.difference is not None and v.result in order]
    found.sort(key=lambda verdict: order.index(verdict.result))
    distinct: dict[tuple[str, ...], Verdict] = {}
    for verdict in found:
        lines = _continuations(view, verdict, detail.ids)
        distinct.setdefault((verdict.result, verdict.probe, *lines), verdict)
    shown = cuts.take(list(distinct.items()), detail.splits, "first splits")
    return tuple(
        Block(
            title=_split_title(view, verdict),
            lines=key[2:],
            info="diff",
            remarks=_remarks(view, verdict, detail),
        )
        for key, verdict in shown
    )


def _remarks(view: View, verdict: Verdict, detail: Detail) -> tuple[str, ...]:
    """What is known of the cause of a difference."""
    told = [f"known cause: {verdict.cause}"] if verdict.cause else []
    if verdict.explanation is not None and verdict.explanation.text:
        told.append(verdict.explanation.text)
        told += _candidates("reference", verdict.explanation.reference_top)
        told += _candidates("judged run", verdict.explanation.this_top)
    return tuple(view.say(text, detail.quote) for text in told)


def _candidates(side: str, top: Sequence[tuple[int, float]]) -> list[str]:
    """The best candidates of one side at the difference, with their log-probabilities."""
    if not top:
        return []
    told = ", ".join(f"{token} at {logprob:.8g}" for token, logprob in top)
    return [f"best of the {side}: {told}"]


def _split_title(view: View, verdict: Verdict) -> str:
    assert verdict.difference is not None
    run = "" if verdict.repeat is None else f" run {verdict.repeat}"
    against = "its first run"
    if verdict.against is not None:
        against = f"{verdict.against[0]} run {verdict.against[1]}"
    mine, theirs = (side[:1] for side in (verdict.difference.this, verdict.difference.reference))
    text = (
        f"{verdict.result}: {verdict.variant}{run} against {against}, "
        f"first split at token {verdict.difference.index}"
    )
    if mine and theirs:
        text += f" ({mine[0]} instead of {theirs[0]})"
    if len(view.record.manifest.probes) > 1:
        text += f" of probe {verdict.probe}"
    return view.say(text, 240)


def _continuations(view: View, verdict: Verdict, count: int) -> tuple[str, ...]:
    """Two equal ids before the split as context, then both sides."""
    difference = verdict.difference
    assert difference is not None
    at = difference.index
    this, reference = difference.this, difference.reference
    run = None
    if verdict.repeat is not None:
        run = view.run_of.get((verdict.variant, verdict.probe, verdict.repeat))
    other = None
    if verdict.against is not None:
        other = view.run_of.get((verdict.against[0], verdict.probe, verdict.against[1]))
    if run is not None and run.stream is not None:
        this = run.stream[at : at + count]
    if other is not None and other.stream is not None:
        reference = other.stream[at : at + count]
    lines = [f"- {_ids(reference[:count])}", f"+ {_ids(this[:count])}"]
    if run is not None and run.stream is not None and at:
        before = run.stream[max(0, at - count // 2) : at]
        lines.insert(0, f"  {'… ' if len(before) < at else ''}{_ids(before)}")
    if difference.prefix is not None:
        shorter = "the judged run" if difference.prefix == "this" else "the reference"
        lines.append(f"# {shorter} ends here: a strict prefix of the other")
    return tuple(lines)


def _ids(ids: Iterable[int]) -> str:
    return " ".join(map(str, ids)) or "(end of the stream)"
