"""From what a Strata log holds to a :class:`~hetero_test.engines.base.Reading`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hetero_test.engines.lines import KEEP_BYTES, End, number, tail
from hetero_test.engines.remarks import WIDTH, signs_of
from hetero_test.engines.strata import counts
from hetero_test.engines.strata.flags import last_value, whole
from hetero_test.engines.strata.log import Entry, Log
from hetero_test.engines.strata.residency import Whereabouts
from hetero_test.values.reading import Factor, Place, Reading

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hetero_test.engines.base import LaunchedCell
    from hetero_test.values.reading import Scalar, Speculation

_MOST_DIGITS = 10
_LARGEST_ID = 2**31 - 1
_SHARES = 256  # the engine keeps the share of experts read over PCIe in 256ths


def read(stdout: Path, stderr: Path, asked: LaunchedCell) -> Reading:
    """Everything that one run's output says; what it cannot read is unknown."""
    most = 4 * asked.probe.max_new + 1000
    longest = max(most, len(asked.probe.ids)) * (_MOST_DIGITS + 1) + 64
    keep_bytes = max(KEEP_BYTES, longest)
    log = Log()
    log.read(stderr, printed=False, keep_bytes=keep_bytes)
    log.read(stdout, printed=True, keep_bytes=keep_bytes)
    where = Whereabouts(log, asked)
    stream, trouble = _stream(log, most, asked)
    remarks = (*log.remarks, *counts.contradictions(log, stream, asked))
    speculation = counts.speculation(log)
    session, vocabulary = log.last("session"), log.last("vocabulary")
    return Reading(
        stream=stream,
        stream_trouble=trouble,
        echo=_echo(log),
        end_of_sequence=_ended(stream, asked.flags),
        vocabulary=None if vocabulary is None else _whole(vocabulary, 0),
        signs=signs_of(remarks),
        remarks=remarks,
        residency=where.residency,
        main=where.main,
        draft=_draft(log, where, asked.flags),
        movers=_movers(log, asked.flags),
        cache=where.cache,
        context=_context(log),
        sightings=where.sightings,
        places=_places(where, asked.flags),
        picked=where.picked,
        speculation=speculation,
        timings=counts.timings(log),
        version=None if session is None else _version(session.groups[0] or ""),
        devices=where.devices,
        lines=tuple(log.shown),
        tail=(*_tail(stdout), *_tail(stderr)),
        warnings=_warnings(log, stream, speculation, asked),
    )


def _places(where: Whereabouts, flags: Sequence[str]) -> dict[str, str]:
    """Devices of main model and drafter, and what later stages and helpers hold.

    A drafter without a line of its own is on the main path: the engine prints one only for a
    drafter that is elsewhere.
    """
    draft = where.draft.device if "--mtp" in flags else None
    found = {"main": where.main.device, "draft": draft}
    placed = {part: device for part, device in found.items() if device is not None}
    beside = {name: str(value) for name, value in where.residency.facts if " " in name}
    return placed | beside


def _stream(log: Log, most: int, asked: LaunchedCell) -> tuple[tuple[int, ...] | None, str | None]:
    """The ids of the only dump, or why there is none that can be trusted."""
    if log.unread:
        return None, "the output could not be read: " + "; ".join(log.unread)
    count = log.counts.get("output", 0)
    if count == 0:
        return None, "no line of standard output begins with 'output  :'"
    dump = log.all("output")[0]
    if count > 1:
        return None, f"standard output holds {count} output dumps"
    ids, trouble = _dump(dump, "output  :", most)
    if trouble is None and log.loose_ids is not None:
        trouble = f"the output dump goes on in another line: {log.loose_ids!r}"
    wanted = asked.probe.max_new
    if trouble is None and log.foreign and len(ids) < wanted and not _ended(ids, asked.flags):
        # The rest of the ids may stand behind the text of a line like any other.
        trouble = f"the output dump is cut by foreign text after {len(ids)} ids: {log.foreign!r}"
    return (ids, None) if trouble is None else (None, trouble)


def _dump(entry: Entry, label: str, most: int) -> tuple[tuple[int, ...], str | None]:
    """The ids of one dump line, and what is wrong with it."""
    if entry.end is End.LENGTH:
        return (), f"the {label!r} dump has more than {most} ids, its line is not kept whole"
    if entry.end is not End.NEWLINE:
        return (), f"the {label!r} dump is cut: it ends with {entry.end.value}"
    first, *words = entry.line[len(label) :].rstrip(" \t").split(" ")
    if len(words) > most:
        return (), f"the {label!r} dump has {len(words)} ids"
    whole = "".join(words)
    wrong = None
    if "" in words or not (whole.isascii() and whole.isdigit()):  # else none of them is wrong
        wrong = next((word for word in words if not (word.isascii() and word.isdigit())), None)
    if first:
        wrong = first
    if wrong is not None:
        what = "a negative id" if wrong[:1] == "-" and wrong[1:].isdigit() else "foreign text"
        return (), f"{what} stands in the {label!r} dump: {wrong[:40]!r}"
    short = max(map(len, words), default=0) <= _MOST_DIGITS
    ids = tuple(map(int, words)) if short else ()
    if not short or max(ids, default=0) > _LARGEST_ID:
        return (), f"the {label!r} dump holds an id that is no 32-bit number"
    return ids, None


def _echo(log: Log) -> tuple[int, ...] | None:
    """The prompt as the engine repeats it, if it does so once and in one whole line."""
    if log.counts.get("prompt") != 1:
        return None
    entry = log.all("prompt")[0]
    ids, trouble = _dump(entry, "prompt  :", len(entry.line))
    return ids if trouble is None else None


def _ended(stream: Sequence[int] | None, flags: Sequence[str]) -> bool:
    """Whether the last id is one at which the engine was told to stop."""
    ends = last_value(flags, "--eos-ids")
    if not stream or ends is None or "--stop-eos" not in flags:
        return False
    return str(stream[-1]) in ends.replace(",", " ").split()


_DEVICE_IN_VERSION = re.compile(
    r"[\s,;@/(]+(?:on\s.*|(?:CUDA|HIP|ROCm|Vulkan|SYCL|Metal|MTL|(?:GPU|device) ?)\d{1,6}$)"
)
"""``0.1.34 on CUDA1``, ``0.1.34, HIP0``, ``0.1.34 (GPU 1``: the device is no part of a version."""


def _version(text: str) -> str:
    """An engine's version, without the device of which its line may tell as well."""
    return _DEVICE_IN_VERSION.sub("", text) or text


def _draft(log: Log, where: Whereabouts, flags: Sequence[str]) -> Place:
    return where.draft if "--mtp" in flags and log.last("ignored") is None else Place()


def _movers(log: Log, flags: Sequence[str]) -> tuple[Factor, ...]:
    """Known to change rounding; the words are what a report says of them."""
    swaps = log.last("swaps")
    return (
        Factor(
            name="pcie_share",
            value=_pcie_share(log, flags),
            words="the share of experts read over the link",
        ),
        Factor(
            name="swaps",
            value=None if swaps is None else _whole(swaps, 0),
            words="the adaptive expert swaps",
        ),
    )


def _context(log: Log) -> dict[str, Scalar]:
    """What is recorded beside the residency; None is unknown or not applicable."""
    estimate, borrowed = log.last("estimate"), log.last("borrowed")
    probe, loaded = log.last("probe"), log.last("loaded")
    lent = 0 if log.last("own_buffers") is not None else None
    native: bool | None = log.last("native") is not None
    if not native and log.last("session") is None:
        native = None  # the engine did not come far enough to tell
    return {
        "native_pack": native,
        "auto_slots": None if estimate is None else _whole(estimate, 0),
        "cache_shrunk": log.last("fewer") is not None or log.last("shrunk") is not None,
        "lent_slots": lent if borrowed is None else _whole(borrowed, 0),
        "pcie_probe_gb_s": None if probe is None else number(probe.groups[0]),
        "mtp_vram_mib": None if loaded is None else _whole(loaded, 0),
        "vram_free_after": _free_after(log),
    }


def _pcie_share(log: Log, flags: Sequence[str]) -> float | None:
    """The share of missed experts that the device reads itself, in steps of 1/256."""
    printed, probe = log.last("share"), log.last("probe")
    if printed is not None:
        return _whole(printed, 0) / _SHARES
    given = last_value(flags, "--pcie-frac")
    share = number(given) if given is not None else None
    if share is None and probe is not None:
        share = number(probe.groups[1])
    if share is None or not 0 <= share <= 1:
        return None
    return int(share * _SHARES + 0.5) / _SHARES


def _free_after(log: Log) -> str | None:
    """Memory of the role devices once all is loaded, as one text for comparing and showing."""
    after = {entry.groups[0]: entry for entry in log.all("bound")}
    return (
        ", ".join(f"{name}: {e.groups[1]} of {e.groups[2]} MiB" for name, e in after.items())
        or None
    )


def _warnings(
    log: Log, stream: tuple[int, ...] | None, speculation: Speculation | None, asked: LaunchedCell
) -> tuple[str, ...]:
    """What a reader should know although it decides nothing."""
    found = [f"the drafter is ignored: {entry.line[:WIDTH]}" for entry in log.all("ignored")[:1]]
    found += [f"not read to its end: {why}" for why in log.unread]
    if log.counts.get("prompt", 0) > 1:
        found.append(f"the prompt is repeated {log.counts['prompt']} times")
    if stream is None:
        return tuple(found)
    if log.last("decode") is None:
        found.append("no decode line is understood: the timing is unknown")
    if "--mtp" in asked.flags and speculation is None and not found and len(stream) > 1:
        found.append("--mtp was given, and the log holds no draft statistics")
    found += counts.odd_rates(log)
    if "--stop-eos" in asked.flags and last_value(asked.flags, "--eos-ids") is None:
        found.append("--stop-eos without --eos-ids: an early end cannot be told from a cut stream")
    return tuple(found)


def _whole(entry: Entry, group: int) -> int:
    return whole(entry.groups[group] or "")


def _tail(path: Path) -> tuple[str, ...]:
    try:
        return tail(path)
    except OSError:
        return ()
