"""The whole page: a view comes in, all its parts go out, as plain text and tables, no markup.

:func:`parts` gives them in the order of the page; Markdown and HTML differ in how they write
them, not in what they say. The rest is the page's own: heading, fact table, and what a report
says of its own limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.report import sections, tables, times, verbatim
from hetero_test.report.escape import UNKNOWN
from hetero_test.report.sections import advice
from hetero_test.report.tables import memory
from hetero_test.report.times import predicted
from hetero_test.report.verbatim import splits
from hetero_test.values.record import Ending
from hetero_test.values.run import Purpose
from hetero_test.values.verdict import Kind, Result

if TYPE_CHECKING:
    from hetero_test.report.budget import Cuts, Detail
    from hetero_test.report.view import View
    from hetero_test.values.record import ModelFile


def parts(view: View, detail: Detail, cuts: Cuts) -> dict[str, object]:
    """Everything that a template names; ``cuts`` is complete when this returns."""
    return {
        "heading": heading(view),
        "partial": partial(view),
        "counts": counts(view),
        "made_of": made_of(view),
        "reason": view.say(view.judgment.reason, 1000),
        "facts": tables.table(facts(view), ("field", "value")),
        "variants": _variants(view, detail, cuts),
        "legend": sections.legend(view, detail, cuts),
        "anchors": sections.anchors(view),
        "only_anchored": sections.only_anchored(view),
        "without_trace": sections.without_trace(view),
        "clusters": _clusters(view, detail, cuts),
        "splits": splits(view, detail, cuts),
        "times": _times(view, detail, cuts),
        "memory": memory(view, detail, cuts),
        "predicted": predicted(view, detail, cuts),
        "verdicts": sections.open_verdicts(view, detail, cuts),
        "troubles": sections.troubles(view, detail, cuts),
        "not_run": sections.not_run(view, detail, cuts),
        "missing": cuts.take(missing(view), detail.notes, "variants with runs not made"),
        "warnings": sections.warnings(view, detail, cuts),
        "evidence": sections.evidence(view, detail, cuts),
        "advice": advice(view),
        "runs": _runs(view, detail, cuts),
        "engine_lines": verbatim.engine_lines(view, detail, cuts),
        "harness_command": verbatim.own_command(view, detail),
        "commands": verbatim.commands(view, detail, cuts),
        "rig": verbatim.rig_lines(view, detail, cuts),
        "probes": verbatim.probe_lines(view, detail, cuts),
        "tails": verbatim.tails(view, detail, cuts),
        "limits": limits(view),
        "version": view.record.manifest.harness,
        "cuts": cuts.notes,
    }


def _variants(view: View, detail: Detail, cuts: Cuts) -> tables.Table:
    names = view.telling_first(tuple(view.ran))
    shown = set(cuts.take(names, detail.rows, "variants, those that passed first"))
    rows = [tables.variant_row(view, name) for name in view.ran if name in shown]
    return tables.table(rows, tables.VARIANTS)


def _clusters(view: View, detail: Detail, cuts: Cuts) -> tables.Table:
    rows = cuts.take(tables.cluster_rows(view), detail.rows, "streams")
    return tables.table(rows, tables.CLUSTERS)


def _times(view: View, detail: Detail, cuts: Cuts) -> list[dict[str, object]]:
    """One table a probe, since prompts of other lengths have other times."""
    probes = dict.fromkeys(probe for _, probe in view.pairs)
    timed = [pair for pair in view.pairs if times.usable(view, *pair)]
    rows = cuts.take(timed, detail.rows, "rows of times")
    out: list[dict[str, object]] = []
    for probe in probes:
        mine = [times.time_row(view, name, at) for name, at in rows if at == probe]
        if mine:
            title = view.say(probe, 60) if len(probes) > 1 else ""
            out.append({"title": title, "table": tables.table(mine, times.TIMES)})
    return out


def _runs(view: View, detail: Detail, cuts: Cuts) -> tables.Table:
    record = view.record
    every = [run for runs in view.ran.values() for run in runs]
    every += [*record.warmup, *record.rechecks]
    shown = cuts.take(every, detail.run_rows, "rows of single runs")
    several = len(record.manifest.probes) > 1
    rows = [tables.run_row(view, run, several_probes=several) for run in shown]
    return tables.table(rows, tables.RUNS)


def heading(view: View) -> str:
    """The verdict in words, with its sign."""
    return f"{view.judgment.conclusion.sign} {view.say(view.judgment.headline, 300)}"


def counts(view: View) -> str:
    """Comparisons by result; what was not claimed is counted apart."""
    number = view.judgment.count
    text = ", ".join(
        f"{number(result)} {result}"
        for result in (Result.PASS, Result.FAIL, Result.INCONCLUSIVE, Result.SKIPPED)
    )
    if claimed := number(Result.NOT_CLAIMED):
        text += f"; apart from these, {claimed} NOT CLAIMED"
    return text


def made_of(view: View) -> str:
    """``16 runs; passed: 8 repeat, 10 exact, 2 anchor``."""
    passed = [v for v in view.judgment.verdicts if v.result is Result.PASS]
    kinds = [(kind, sum(v.kind is kind for v in passed)) for kind in Kind]
    text = ", ".join(f"{count} {kind}" for kind, count in kinds if count)
    runs = f"{len(view.record.runs)} run{'' if len(view.record.runs) == 1 else 's'}"
    return f"{runs}; passed: {text}" if text else f"{runs}; nothing passed"


def partial(view: View) -> str | None:
    """How far an unfinished matrix got; None for a complete one."""
    record = view.record
    if record.ending is Ending.COMPLETE:
        return None
    planned = sum(entry.planned for entry in record.manifest.variants)
    cells = planned * len(record.manifest.probes) * record.manifest.repeats
    done = sum(run.purpose is Purpose.ROUND for run in record.runs)
    why = f": {view.say(record.ending_reason, 300)}" if record.ending_reason else ""
    if record.ending is Ending.RUNNING:
        return f"not finished yet: {done} of {cells} planned runs are in"
    return f"partial, {record.ending}{why}; {done} of {cells} planned runs were made"


def missing(view: View) -> tuple[str, ...]:
    """Planned runs without a record, by variant."""
    manifest = view.record.manifest
    out = []
    for entry in manifest.variants:
        name = entry.variant.id
        asked = len(manifest.probes) * manifest.repeats
        made = len({run.key for run in view.ran.get(name, ()) if run.purpose is Purpose.ROUND})
        if entry.planned and made < asked:
            out.append(f"variant {view.say(name, 40)}: {asked - made} of {asked} runs not made")
    return tuple(out)


def facts(view: View) -> tuple[tuple[str, str], ...]:
    """(field, value) of the first table."""
    manifest = view.record.manifest
    return (
        ("verdict", f"{view.judgment.conclusion}: {counts(view)}"),
        ("engine", engine(view)),
        ("model", "; ".join(model_file(view, file) for file in manifest.model) or UNKNOWN),
        ("rig", rig(view)),
        ("run", asked(view)),
        ("comparable", COMPARABLE),
        ("scope", SCOPE),
    )


COMPARABLE = (
    "runs of one residency: the same experts computed on the same devices, "
    "and the same kind of main device"
)
SCOPE = (
    "this supports only the model, prompts, lengths and placements named here, "
    "with this engine on this rig"
)


def engine(view: View) -> str:
    """Name, version, size and hash of the binary, and the matrix it was driven by."""
    build, matrix = view.record.manifest.engine, view.record.manifest.matrix
    version = build.version or next(
        (run.reading.version for run in view.record.runs if run.reading.version), None
    )
    told = f"{build.name} {version}" if version else f"{build.name}, version unknown"
    return view.say(
        f"{told}, sha256 {build.sha256[:12]}, {size(build.size_bytes)}; "
        f"matrix {matrix.name}, sha256 {matrix.sha256[:12]}",
        300,
    )


def model_file(view: View, file: ModelFile) -> str:
    """One file or folder of the model flags."""
    text = f"{file.flag} {file.path}"
    if file.size_bytes is not None:
        text += f" ({size(file.size_bytes)})"
    if file.edge_sha256:
        text += f", first and last MiB sha256 {file.edge_sha256[:12]}"
    return view.say(text, 300)


def rig(view: View) -> str:
    """Devices by model, then the machine."""
    found = view.record.manifest.rig
    models: dict[str, int] = {}
    for device in found.devices:
        memory = "" if device.memory_bytes is None else f" ({size(device.memory_bytes)})"
        models[f"{device.name}{memory}"] = models.get(f"{device.name}{memory}", 0) + 1
    parts = [f"{count} × {name}" for name, count in models.items()]
    if not parts:
        known = found.device_count
        parts = ["devices unknown" if known is None else f"{known} devices, names unknown"]
    parts += [f"{name} {value}" for name, value in found.facts]
    return view.say("; ".join(parts), 500)


def asked(view: View) -> str:
    """Prompts, lengths, repeats."""
    manifest = view.record.manifest
    tokens = sorted({len(probe.ids) for probe in manifest.probes})
    lengths = sorted({probe.max_new for probe in manifest.probes})
    count = len(manifest.probes)
    return view.say(
        f"{count} prompt{'' if count == 1 else 's'} of {_span(tokens)} tokens, "
        f"{_span(lengths)} new tokens each, greedy; {manifest.repeats} repeats, "
        f"{manifest.warmup} warm-up; {added(view)}started {manifest.started or 'unknown'}",
        400,
    )


def added(view: View) -> str:
    """What ``--pinned`` and ``--strict`` changed."""
    manifest, pinned = view.record.manifest, view.record.manifest.pinned
    text = "strict; " if manifest.strict else ""
    if pinned.asked:
        recipe = [*(f"{name}={value}" for name, value in pinned.env), *pinned.flags]
        text += f"pinned with {' '.join(recipe)}; "
        if pinned.left_out:
            text += f"left out, since unknown to this engine: {' '.join(pinned.left_out)}; "
    return text


def _span(values: list[int]) -> str:
    if not values:
        return UNKNOWN
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


def size(count: int) -> str:
    """Bytes in the largest binary unit that leaves a whole part."""
    if count < 1024:
        return f"{count} B"
    value, units = count / 1024, iter(("KiB", "MiB", "GiB"))
    for unit in units:
        if value < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def limits(view: View) -> str:
    """What this report cannot tell."""
    count = len(view.record.manifest.probes)
    prompts = "one prompt" if count == 1 else f"{count} prompts"
    return (
        f"greedy decoding of {prompts} on one rig only; equal streams show that these placements "
        "agree here, not that the output is right, and other lengths, prompts or builds may differ"
    )
