"""JUnit XML: one suite a residency, one case a variant, and one case for the conclusion.

The form is the one that Jenkins and GitLab read (xunit2): properties before cases. A variant
that diverges is a failure of type DIVERGED; what could not be compared is an error, since a
dashboard must not show it green; what was not run is skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hetero_test.report import page
from hetero_test.report.view import View
from hetero_test.values.verdict import Conclusion, Kind, Result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hetero_test.publish.redact import Redactor
    from hetero_test.values.record import Record
    from hetero_test.values.run import Run
    from hetero_test.values.verdict import Judgment, Verdict

MATRIX = "matrix"
"""The suite of the conclusion and of the variants without a run."""


def build(record: Record, judgment: Judgment, *, redactor: Redactor) -> str:
    """The XML document of a judged record; valid whatever characters came in."""
    view = View.of(record, judgment, redactor)
    root = ET.Element("testsuites", name="hetero-test")
    suites = [_conclusion(view), *_residencies(view)]
    root.extend(suites)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


# ---- suites -----------------------------------------------------------------------------------


def _conclusion(view: View) -> ET.Element:
    """The suite that says what the whole matrix came to."""
    judgment = view.judgment
    case = _case(view, MATRIX, "conclusion", 0.0)
    reason = view.say(judgment.reason, 1000)
    headline = view.say(judgment.headline, 300)
    match judgment.conclusion:
        case Conclusion.FAIL:
            ET.SubElement(case, "failure", type="DIVERGED", message=headline).text = reason
        case Conclusion.INCONCLUSIVE:
            ET.SubElement(case, "error", type="INCONCLUSIVE", message=headline).text = reason
        case Conclusion.PASS:
            pass
    cases = [case]
    for entry in view.record.manifest.variants:
        if not view.ran.get(entry.variant.id):
            cases.append(case := _case(view, MATRIX, entry.variant.id, 0.0))
            if entry.planned:
                ET.SubElement(case, "error", type="NOT_RUN", message="planned, but not run")
            else:
                why = view.say(entry.why_not or "no reason recorded", 300)
                ET.SubElement(case, "skipped", message=why)
    return _suite(view, MATRIX, cases, properties=_properties(view))


def _residencies(view: View) -> list[ET.Element]:
    """A suite for each residency in which anything ran."""
    groups: dict[object, dict[str, list[Run]]] = {}
    labels: dict[object, str] = {}
    for name, runs in view.ran.items():
        for run in runs:
            known = run.residency.known
            place = run.residency.key if known else None
            labels.setdefault(place, view.say(run.residency.label, 160) if known else "unknown")
            groups.setdefault(place, {}).setdefault(name, []).append(run)
    return [
        _suite(
            view,
            labels[place],
            [_variant(view, labels[place], name, runs) for name, runs in members.items()],
        )
        for place, members in groups.items()
    ]


def _suite(
    view: View,
    name: str,
    cases: list[ET.Element],
    *,
    properties: Iterable[tuple[str, str]] = (),
) -> ET.Element:
    suite = ET.Element("testsuite", name=f"residency {name}" if name != MATRIX else MATRIX)
    for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(kind, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
    suite.set("timestamp", view.say(view.record.manifest.started.removesuffix("Z"), 40))
    named = list(properties)
    if named:
        holder = ET.SubElement(suite, "properties")
        for key, value in named:
            ET.SubElement(holder, "property", name=key, value=value)
    suite.extend(cases)
    return suite


def _properties(view: View) -> list[tuple[str, str]]:
    """The fact table, for those who only get this file."""
    return [(name, text) for name, text in page.facts(view) if name != "verdict"]


# ---- cases ------------------------------------------------------------------------------------


def _case(view: View, suite: str, name: str, time_s: float) -> ET.Element:
    matrix = view.say(view.record.manifest.matrix.name, 80)
    title = view.say(name, 80)
    if meaning := view.names.get(name):
        title = view.say(f"{name}: {meaning}", 160)
    return ET.Element("testcase", classname=f"{matrix}.{suite}", name=title, time=f"{time_s:.3f}")


def _variant(view: View, label: str, name: str, runs: list[Run]) -> ET.Element:
    """One variant at one residency: its worst verdict there."""
    case = _case(view, label, name, sum(run.outcome.elapsed_s for run in runs))
    mine = _verdicts(view, name, runs)
    results = {verdict.result for verdict in mine}
    broken = [run for run in runs if not run.state.harmless]
    if Result.FAIL in results:
        _child(view, case, "failure", "DIVERGED", mine, Result.FAIL)
    elif Result.INCONCLUSIVE in results:
        _child(view, case, "error", "INCONCLUSIVE", mine, Result.INCONCLUSIVE)
    elif broken:
        # Nobody may see green where a run crashed, whatever the comparisons said.
        reason = view.say(broken[0].reason or "no reason recorded", 300)
        ET.SubElement(case, "error", type=str(broken[0].state), message=reason)
    elif (effect := view.effect(name)) is not None and effect.unmoved is not None:
        ET.SubElement(case, "skipped", message=f"equal, but it {effect.unmoved}")
    elif Result.PASS not in results:
        said = next((verdict.reason for verdict in mine), "nothing was compared")
        ET.SubElement(case, "skipped", message=view.say(said, 300))
    if quotes := [view.say(run.quote, 400) for run in runs if run.quote]:
        ET.SubElement(case, "system-err").text = "\n".join(dict.fromkeys(quotes))
    return case


def _verdicts(view: View, name: str, runs: list[Run]) -> list[Verdict]:
    """The verdicts of these runs; one over all repeats belongs to each residency."""
    keys = {(run.probe, run.repeat) for run in runs}
    probes = {run.probe for run in runs}
    return [
        verdict
        for verdict in view.verdicts.get(name, ())
        if (verdict.repeat is None and verdict.probe in probes)
        or (verdict.probe, verdict.repeat) in keys
    ]


def _child(
    view: View, case: ET.Element, tag: str, kind: str, verdicts: list[Verdict], result: Result
) -> None:
    said = [verdict for verdict in verdicts if verdict.result is result]
    first = min(said, key=lambda verdict: verdict.kind is Kind.REPEAT)
    child = ET.SubElement(case, tag, type=kind, message=view.say(first.reason, 300))
    child.text = "\n".join(dict.fromkeys(_line(view, verdict) for verdict in said))


def _line(view: View, verdict: Verdict) -> str:
    run = "" if verdict.repeat is None else f" run {verdict.repeat}"
    against = "" if verdict.against is None else f" against {verdict.against[0]}"
    text = f"{verdict.kind} {verdict.variant}{run}{against}: {verdict.reason}"
    if verdict.difference is not None:
        text += f"; token {verdict.difference.index}: "
        text += f"{_ids(verdict.difference.this)} instead of {_ids(verdict.difference.reference)}"
    return view.say(text, 600)


def _ids(ids: tuple[int, ...]) -> str:
    return " ".join(map(str, ids)) or "the end"
