"""What the logs of one matrix say against each other: runs are each other's best reference.

A line that no reader knows is told by what it says and by who else printed it. A line that
speaks of a failure, a refusal, a fallback or a thing left undone speaks against the placement
whose runs print it while the baseline's never do; printed by the baseline too it speaks against
the matrix. Every other line is shown at most. Pure; nothing here knows an engine.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from hetero_test.values.remark import Weight
from hetero_test.values.verdict import Doubt, Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hetero_test.values.record import Record
    from hetero_test.values.run import Run

MOST_SHOWN = 5
"""Lines of one variant that a report shows; the rest is counted."""


def evidence(record: Record) -> Evidence:
    """Weigh the unknown lines of every stored run, warm-ups and rechecks among them."""
    runs = (*record.runs, *record.warmup, *record.rechecks)
    base = record.manifest.variants[0].variant.id
    harmless = _any_of(record.manifest.harmless)
    said: dict[str, str] = {}  # template to the line that is quoted
    weighed: dict[str, Weight] = {}
    printed: defaultdict[str, set[str]] = defaultdict(set)  # template to variants
    acknowledged: dict[str, None] = {}
    for run in runs:
        for remark in run.remarks:
            if harmless is not None and harmless.search(remark.line):
                acknowledged.setdefault(remark.line)
                continue
            said.setdefault(remark.template, remark.line)
            printed[remark.template].add(run.of)
            if remark.weight is not Weight.NOTHING:
                weighed.setdefault(remark.template, remark.weight)
    flags = {entry.variant.id: frozenset(entry.variant.flags) for entry in record.manifest.variants}
    doubts: defaultdict[str, list[Doubt]] = defaultdict(list)
    for template, weight in weighed.items():
        line = said[template]
        for variant in () if base in printed[template] else sorted(printed[template]):
            undone = weight is Weight.REFUSED or _names(line, flags.get(variant, frozenset()))
            doubts[variant].append(Doubt(line=line, undone=undone))
    only: defaultdict[str, list[str]] = defaultdict(list)
    for template, variants in printed.items():
        if base in variants or template in weighed:
            continue
        for variant in _owners(variants, flags):
            only[variant].append(said[template])
    return Evidence(
        doubts={name: tuple(lines) for name, lines in doubts.items()},
        everywhere=tuple(said[t] for t in weighed if base in printed[t]),
        only={name: tuple(lines) for name, lines in only.items()},
        missing=_missing(runs, base, said),
        acknowledged=tuple(acknowledged),
    )


def _names(line: str, flags: frozenset[str]) -> bool:
    """Whether a line names one of these flags."""
    return any(
        re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", line) is not None
        for flag in flags
        if flag.startswith("-")
    )


def _owners(variants: Iterable[str], flags: Mapping[str, frozenset[str]]) -> list[str]:
    """Those variants whose flags every other one that printed the line has, too."""
    some = [flags.get(name, frozenset()) for name in variants]
    return sorted(
        name for name in variants if all(flags.get(name, frozenset()) <= other for other in some)
    )


def _missing(runs: Sequence[Run], base: str, said: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Lines that every usable baseline run prints and no usable run of a variant does."""
    templates: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for run in runs:
        if run.usable:
            templates[run.of].append(frozenset(remark.template for remark in run.remarks))
    always = frozenset.intersection(*templates[base]) if templates[base] else frozenset()
    found = {}
    for name, sets in templates.items():
        left = (always & said.keys()) - frozenset().union(*sets)
        if name != base and left:
            found[name] = tuple(said[template] for template in said if template in left)
    return found


def _any_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
