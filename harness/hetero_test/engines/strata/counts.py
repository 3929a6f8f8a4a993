"""What Strata counts and times of a run, and whether that agrees with the stream beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hetero_test.engines.lines import number
from hetero_test.engines.remarks import template
from hetero_test.engines.strata.flags import whole
from hetero_test.values.reading import Speculation, Timings
from hetero_test.values.remark import Remark, Weight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hetero_test.engines.base import LaunchedCell
    from hetero_test.engines.strata.log import Entry, Log

_COUNT = re.compile(r"[0-9]{1,18}")
_SHOWN = 0.006
"""Tokens a second that may be lost where a rate is printed with two digits."""
_SHOWN_MS = 0.06
"""Milliseconds that may be lost where a time is printed with one digit."""


def speculation(log: Log) -> Speculation | None:
    """The draft statistics; None without their line."""
    entry = log.last("speculation")
    if entry is None:
        return None
    return Speculation(
        rounds=_whole(entry, 0),
        window=_whole(entry, 1),
        accepted=_whole(entry, 2),
        offered=_whole(entry, 3),
        tokens_per_round=number(entry.groups[4]),
    )


def timings(log: Log) -> Timings:
    """Times and rates; a rate that its own tokens and time contradict is what these give."""
    decode, prefill, drafting = log.last("decode"), log.last("prefill"), log.last("drafting")
    return Timings(
        decode_tok_s=_rate(decode),
        prefill_tok_s=_rate(prefill),
        ttft_ms=_measured(prefill, 3) or None,
        draft_ms_per_round=_measured(drafting, 0),
    )


def odd_rates(log: Log) -> list[str]:
    """A sentence for each rate that is not what its tokens over its time give."""
    found = []
    for name in ("decode", "prefill"):
        entry = log.last(name)
        printed, given = _printed(entry), _given(entry)
        if entry is None or printed is None or given is None or _agree(entry, printed, given):
            continue
        found.append(
            f"the {name} line says {printed:.2f} tok/s, and {entry.groups[0]} tokens in "
            f"{entry.groups[1]} ms are {given:.2f} tok/s"
        )
    return found


def contradictions(
    log: Log, stream: tuple[int, ...] | None, asked: LaunchedCell
) -> tuple[Remark, ...]:
    """The counts beside a stream that do not agree with it, as lines that cast doubt on the run.

    A count that is not one of this run tells that the log, or a part of the work, is another's.
    """
    return tuple(
        Remark(template=template(text), line=text, weight=Weight.DOUBTFUL)
        for text in _contradictions(log, stream, asked)
    )


def _contradictions(log: Log, stream: tuple[int, ...] | None, asked: LaunchedCell) -> Iterator[str]:
    prefill, decode = log.last("prefill"), log.last("decode")
    # The prompt's last token is read with the first step of decoding.
    read = len(asked.probe.ids) - 1
    if (told := _count(prefill)) is not None and told != read:
        yield f"the prefill line counts {told} tokens, and the prompt has {read} before its last"
    if (drafts := speculation(log)) is not None:
        offered, accepted = drafts.offered or 0, drafts.accepted or 0
        if accepted > offered:
            yield f"the draft statistics count {accepted} drafts accepted of {offered} offered"
    if stream is None:
        return
    if (told := _count(decode)) is not None and told != len(stream):
        yield f"the decode line counts {told} tokens, and {len(stream)} ids were printed"
    if drafts is not None and drafts.rounds is not None:
        # The first id of a canonical pack comes before the first round.
        made = drafts.rounds + (drafts.accepted or 0) + (log.last("native") is None)
        if made < len(stream):
            yield f"the draft statistics account for {made} ids, {len(stream)} were printed"


def _count(entry: Entry | None) -> int | None:
    text = None if entry is None else entry.groups[0]
    return int(text) if text is not None and _COUNT.fullmatch(text) else None


def _rate(entry: Entry | None) -> float | None:
    """Tokens a second; unknown where no time passed, or where no number is printed."""
    printed, given = _printed(entry), _given(entry)
    if entry is None or printed is None:
        return None
    took = number(entry.groups[1])
    if took is not None and took <= 0:
        return None
    if given is not None and (not printed or not _agree(entry, printed, given)):
        return given
    return printed or None


def _printed(entry: Entry | None) -> float | None:
    return _measured(entry, 2)


def _given(entry: Entry | None) -> float | None:
    """What tokens over time give; None where either is not known."""
    tokens, took = _count(entry), _measured(entry, 1)
    return tokens / took * 1000 if tokens and took else None


def _agree(entry: Entry, printed: float, given: float) -> bool:
    """Whether two rates are one, but for the digits that a line leaves out."""
    took = number(entry.groups[1])
    lost = _SHOWN + (given * _SHOWN_MS / took if took else 0)
    return abs(printed - given) <= lost


def _measured(entry: Entry | None, group: int) -> float | None:
    """A time or a rate; one below nothing comes of a clock that was set back."""
    value = None if entry is None else number(entry.groups[group])
    return None if value is None or value < 0 else value


def _whole(entry: Entry, group: int) -> int:
    return whole(entry.groups[group] or "")
