"""The one table of Strata's log lines, and what a log holds of them.

Formats are those of engine 0.1.2x to 0.1.42. A line that the table does not know is passed
over; a fork may append to any line. Numbers are taken as text (``-nan`` is one of them) and
become values where they are used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hetero_test.engines.lines import End, blocks, decoded
from hetero_test.engines.meaning import weigh
from hetero_test.engines.remarks import WIDTH, Lines
from hetero_test.engines.scan import Hit, Scan
from hetero_test.engines.strata.signs import rule
from hetero_test.values.remark import Weight

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hetero_test.values.remark import Remark

_G = "strata generate: "
_MOST_ENTRIES = 64
_MOST_LINES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One kind of line.

    Attributes:
        name: by which :class:`Log` gives what was found.
        start: how the line begins, literally.
        rest: pattern of what follows; its groups are kept.
        every: each such line counts, not only the last one.
        printed: True for the result block, which is looked for on standard output only.
        shown: the line is kept for the report.
    """

    name: str
    start: str
    rest: str = ""
    every: bool = False
    printed: bool = False
    shown: bool = False


# fmt: off
ROWS = (
    # the result block
    Line(name="speculation", start="speculation ", printed=True, rest=r"\s*(\d+) rounds of (\d+), "
        r"drafts accepted (\d+) of (\d+) \([^)]*\), (\S+) tokens per round"),
    Line(name="swaps", start="adaptive tier ", printed=True, rest=r"\s*(\d+) experts swapped"),
    Line(name="share", start="pcie experts ", printed=True,
        rest=r"\s*\S+ distinct experts per layer read over PCIe \(share (\d+)/256 "),
    Line(name="drafting", start="mtp ", printed=True,
        rest=r"\s*(\S+) ms/round drafting(?:.*, (\d+) MiB of VRAM)?"),
    Line(name="prompt", start="prompt  :", printed=True, every=True),
    Line(name="output", start="output  :", printed=True, every=True),
    Line(name="decode", start="decode ", printed=True,
        rest=r"\s*(\S+) tokens in (\S+) ms\s+->\s+(\S+) tok/s"),
    Line(name="prefill", start="prefill ", printed=True, rest=r"\s*(\S+) tokens in (\S+) ms\s+->\s+"
        r"(\S+) tok/s(?:\s+\(time to first token (\S+) ms\))?"),
    # roles and devices
    Line(name="picked", start=_G + "--auto-roles picked: ", shown=True,
        rest=r"MAIN (\d+)\b.*?, DRAFT (\d+)\b"),
    Line(name="role", start=_G + "role device ", every=True, shown=True,
        rest=r"(\d+): (.+), cc \S+, dp4a \S+, free VRAM (\d+) MiB"),
    Line(name="bound", start=_G + "role device ", every=True, shown=True,
        rest=r"(\d+) after the binding: (\d+) MiB free of (\d+)"),
    Line(name="peer", start=_G + "peer access ", every=True, shown=True, rest=r"\d+ -> \d+: "),
    Line(name="roles", start=_G + "device roles: ", every=True, shown=True,
        rest=r"main (\d+), draft (\d+)\b"),
    Line(name="gpu", start=_G + "GPU ", every=True, shown=True,
        rest=r"(\d+): (.+?)(?:, (compute capability) \d+\.\d+| \((gfx\w+)[^)]*\))"
        r"(?: \((STRATA_EMULATE_CC)\b)?"),
    # the drafter
    Line(name="workspace", shown=True,
        start="strata mtp: the draft layer's gr workspace runs on the draft device"),
    Line(name="stays", start="strata mtp: ", every=True, shown=True,
        rest=r".*the drafter stays on the main path"),
    Line(name="loaded", start="strata mtp: draft layer loaded, ", shown=True,
        rest=r"(\d+) MiB of VRAM"),
    Line(name="ignored", start=_G + "--mtp", every=True, rest=r".*\bignored"),
    # the expert cache
    Line(name="native", start=_G + "native pack: "),
    Line(name="estimate", start=_G + "expert cache auto: ", shown=True, rest=r".*-> (\d+) slots"),
    Line(name="slots", start=_G + "expert cache ", shown=True,
        rest=r"(\d+) slots, \S+ GiB of VRAM"),
    Line(name="fewer", start=_G + "expert cache: ", shown=True,
        rest=r"(\d+) slots \(.*\) after \d+ smaller tr"),
    Line(name="shrunk", start=_G + "only ", shown=True,
        rest=r".*once the slots are written.*; shrinking the expert cache"),
    Line(name="no_room", start=_G + "no VRAM is left for the expert cache", shown=True),
    Line(name="filled", start=_G + "pre-filled ", rest=r"(\d+) of (\d+) slots from the profile"),
    Line(name="stage", start=_G + "layer split: ", every=True, shown=True,
        rest=r"[A-Za-z]+(\d+) runs layers (\d+-\d+), expert cache (\d+) slots\b"),
    Line(name="helper", start=_G + "CUDA", every=True, shown=True,
        rest=r"(\d+): (\d+) additional experts\b"),
    Line(name="resident", start=_G + "token graph hit path: ", rest=r"(\d+) resident experts\b"),
    Line(name="borrowed", start=_G + "prompt path borrows ", rest=r"(\d+) cache slots\b"),
    Line(name="own_buffers", start=_G + "prompt path allocates its own buffers"),
    # the rest
    Line(name="probe", start=_G + "PCIe probe: ",
        rest=r"(\S+) GB/s host->device .*-> pcie_frac (\S+)"),
    Line(name="session", start=_G + "session is up (engine ", every=True, rest=r"([^)]+)\)"),
    Line(name="vocabulary", start=_G + "per-window logits -> ", rest=r".*\(vocab (\d+)\)"),
    Line(name="trace", start="strata trace: ", every=True, shown=True),
    Line(name="capturing", start="strata verify: capturing the ", every=True, shown=True),
)
# fmt: on

_BY_START: dict[str, list[tuple[Line, re.Pattern[str]]]] = {}
for _row in ROWS:
    # What has more digits is no number that an engine counts up to, and may be too long to read.
    _rest = _row.rest.replace(r"\d+", r"\d{1,18}(?!\d)")
    _BY_START.setdefault(_row.start, []).append((_row, re.compile(_rest)))

# A dump that is wrapped, or cut by a foreign line, goes on in a line that begins with ids.
_BARE_IDS = rb"(?:[ \t]*[0-9][0-9 \t\r\n]*(?=\n|\Z)| [0-9])"
_FREE = rb"strata generate: [0-9]+ MiB of VRAM free"
_IDS = re.compile(r"[\d\s]*")
_LOOSE = re.compile(r"[ \t]*[0-9][0-9 \t]*$| [0-9]")
# How often these come tells how many processes wrote the log.
_COUNTED = {
    "prompt  :",
    "output  :",
    *(_G + start for start in ("GPU ", "device roles: ", "session is up (engine ")),
}
_DUMP = b"\noutput  :"
_EVERY = {row.start for row in ROWS if row.every}
_SCAN = Scan(
    last={row.start for row in ROWS} - _EVERY,
    distinct=_EVERY - _COUNTED,
    every=_COUNTED,
    shapes=(_BARE_IDS, _FREE),
)


def _known(text: str) -> Weight | None:
    """The rule on a line, but for those that a row reads: they are told by what they say."""
    said = rule(text)
    if said is None and _IDS.fullmatch(text):
        return Weight.KNOWN
    if said is None and any(
        rest.match(text, len(start))
        for start, rows in _BY_START.items()
        if text.startswith(start)
        for _, rest in rows
    ):
        # A row that reads a line does not silence a driver that is quoted in it.
        found = weigh(text)
        return found if found in {Weight.FATAL, Weight.NO_MEMORY} else Weight.KNOWN
    return said


class Entry(NamedTuple):  # there may be millions: a tuple is made in a third of the time
    """One line that a row knows.

    Attributes:
        groups: the groups of the row's pattern.
        line: the whole line.
        place: its place in the log; standard error goes before standard output.
        end: what ended it.
    """

    groups: tuple[str | None, ...]
    line: str
    place: tuple[int, int]
    end: End


@dataclass(slots=True)
class Log:
    """What both output files of one run hold.

    Attributes:
        shown: lines kept for the report, in order.
        loose_ids: a line that begins with ids and follows the output dump, if there is one.
        foreign: the line right behind the output dump, if no row knows it.
        unread: why a file could not be read to its end.
    """

    entries: dict[str, list[Entry]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    loose_ids: str | None = None
    foreign: str | None = None
    unread: list[str] = field(default_factory=list)
    _lines: Lines = field(default_factory=lambda: Lines(_known))
    _behind_dump: bool = False

    def all(self, name: str) -> list[Entry]:
        """The lines of a row, the first few of those of which each one counts."""
        return self.entries.get(name, [])

    def last(self, name: str) -> Entry | None:
        """The last line of a row."""
        entries = self.entries.get(name)
        return entries[-1] if entries else None

    def since(self, name: str, since: Entry | None) -> list[Entry]:
        """The lines of a row that follow another line."""
        return [entry for entry in self.all(name) if since is None or entry.place > since.place]

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """The different lines that no row knows."""
        return self._lines.found()

    def read(self, path: Path, *, printed: bool, keep_bytes: int) -> None:
        """Take in one file; whatever it holds, this does not raise."""
        try:
            for hit in _SCAN.lines(path, keep_bytes=keep_bytes):
                self._take(hit, printed=printed)
            for block in blocks(path, keep_bytes):
                lines = block.text.split(b"\n")
                self._lines.take(lines)
                if printed and (self._behind_dump or _DUMP in block.text):
                    self._look_behind_dump(lines[1:])
        except OSError as error:
            self.unread.append(f"{path.name}: {error.strerror or error}")

    def _take(self, hit: Hit, *, printed: bool) -> None:
        for row, rest in _BY_START.get(hit.start or "", ()):
            match = rest.match(hit.text, len(row.start)) if printed or not row.printed else None
            if match is not None:
                place = (int(printed), hit.place)
                self._enter(row, Entry(match.groups(), hit.text, place, hit.end))
                break
        if hit.start is None and printed and _LOOSE.match(hit.text) and self._in_dump():
            self.loose_ids = self.loose_ids or hit.text[:WIDTH]
        if hit.start is None and "MiB of VRAM free" in hit.text:
            self._show(hit.text)

    def _look_behind_dump(self, lines: Sequence[bytes]) -> None:
        """Keep the first line with text behind the output dump, unless the engine prints it."""
        for line in lines:
            if line.startswith(_DUMP[1:]):
                self._behind_dump = True
            elif self._behind_dump and line.strip():
                self._behind_dump = False
                text = decoded(line[:WIDTH]).rstrip()
                self.foreign = None if text.startswith(tuple(_BY_START)) else text

    def _in_dump(self) -> bool:
        """Whether the output dump has begun, and not yet the line that follows it."""
        dump, decode = self.last("output"), self.last("decode")
        return dump is not None and (decode is None or decode.place < dump.place)

    def _enter(self, row: Line, entry: Entry) -> None:
        entries = self.entries.setdefault(row.name, [])
        self.counts[row.name] = self.counts.get(row.name, 0) + 1
        if row.printed and row.every and entries:
            return  # one dump is enough to tell that there are two, and each may be long
        if not row.every:
            entries.clear()
        if len(entries) == _MOST_ENTRIES:
            del entries[1]  # the first and the latest ones
        entries.append(entry)
        if row.shown:
            self._show(entry.line)

    def _show(self, line: str) -> None:
        line = line[:WIDTH]
        if len(self.shown) < _MOST_LINES and line not in self.shown:
            self.shown.append(line)
