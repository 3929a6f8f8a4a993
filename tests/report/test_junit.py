"""JUnit XML: what a dashboard may show green, and what it may not."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.judge.judge import judge
from hetero_test.publish.redact import Redactor
from hetero_test.report.junit import build
from hetero_test.values.record import Ending, Record
from hetero_test.values.run import Effect, RunState
from hetero_test.values.variant import PlannedVariant, Variant

from .factories import every_state, flipped, hostile, manifest, planned, two_cards
from .hostile import ALL_AT_ONCE, texts


def document(record: Record, *, redactor: Redactor | None = None) -> ET.Element:
    """The parsed document."""
    text = build(record, judge(record), redactor=redactor or Redactor.off())
    return ET.fromstring(text.encode())


def outcome(case: ET.Element) -> str:
    """The child that says how a case ended, with its type."""
    child = next((c for c in case if c.tag in {"failure", "error", "skipped"}), None)
    return "passed" if child is None else f"{child.tag} {child.get('type') or ''}".strip()


def outcomes(root: ET.Element) -> dict[str, str]:
    """Case by case: the id in front of each name, and how it ended."""
    return {
        (case.get("name") or "").partition(":")[0]: outcome(case) for case in root.iter("testcase")
    }


def test_each_residency_is_a_suite_and_each_variant_a_case() -> None:
    """The conclusion has a suite of its own, in front."""
    root = document(two_cards())

    assert {s.get("name"): len(s.findall("testcase")) for s in root} == {
        "matrix": 1,
        "residency 4400 slots on NVIDIA GeForce GTX 1080 Ti": 3,
        "residency 5011 slots on NVIDIA GeForce GTX 1080 Ti": 4,
    }
    assert set(outcomes(root).values()) == {"passed"}


def test_a_divergence_is_a_failure() -> None:
    """Of type DIVERGED, with the index and both continuations; the others stay green."""
    root = document(flipped(two_cards(), "4", 17))

    found = outcomes(root)
    case = next(c for c in root.iter("testcase") if (c.get("name") or "").startswith("4:"))

    assert found["4"] == "failure DIVERGED"
    assert found["conclusion"] == "failure DIVERGED"
    assert found["3"] == "passed"
    assert "exact 4 run 1 against 1: differs from token 17 on" in (case[0].text or "")
    assert "70318 9417" in (case[0].text or "")


@pytest.mark.parametrize(
    ("state", "ended"),
    [
        (RunState.OK, "passed"),
        (RunState.REFUSED, "skipped"),
        (RunState.NO_MEMORY, "skipped"),
        (RunState.CRASHED, "error INCONCLUSIVE"),
        (RunState.TIMED_OUT, "error INCONCLUSIVE"),
        (RunState.NO_STREAM, "error INCONCLUSIVE"),
        (RunState.TRUNCATED, "failure DIVERGED"),
        (RunState.DEGENERATE, "failure DIVERGED"),
        (RunState.WRONG_PROMPT, "error INCONCLUSIVE"),
        (RunState.NOT_GREEDY, "error INCONCLUSIVE"),
    ],
)
def test_every_state_has_its_outcome(state: RunState, ended: str) -> None:
    """What is not comparable is an error, never green; what does not exist here is skipped."""
    place = list(RunState).index(state)

    assert outcomes(document(every_state()))[str(place)] == ended


def test_a_matrix_in_which_nothing_moved_is_not_green() -> None:
    """Equal streams of what did not move are skipped, and the conclusion is an error."""
    record = two_cards()
    still = tuple(replace(r, effect=r.effect and Effect.NOT_SEEN) for r in record.runs)

    found = outcomes(document(replace(record, runs=still)))

    assert found.pop("conclusion") == "error INCONCLUSIVE"
    assert {name: told for name, told in found.items() if told == "passed"} == {"0": "passed"}
    assert found["6"] == "skipped"


def test_an_unfinished_matrix_is_not_green() -> None:
    """What was planned and not run is an error."""
    record = replace(two_cards(), runs=two_cards().runs[:2], ending=Ending.INTERRUPTED)

    found = outcomes(document(record))

    assert found["conclusion"] == "error INCONCLUSIVE"
    assert found["6"] == "error NOT_RUN"


def test_what_cannot_run_here_is_skipped_with_its_reason() -> None:
    """A variant for another number of cards is no failure."""
    extra = PlannedVariant(
        variant=Variant(id="7", name="one card"), planned=False, why_not="needs at most 1 device"
    )
    record = replace(two_cards(), manifest=manifest(variants=(*planned(), extra)))

    root = document(record)

    assert outcomes(root)["7"] == "skipped"
    assert "needs at most 1 device" in ET.tostring(root, encoding="unicode")


@pytest.mark.parametrize(
    "record",
    [two_cards(), flipped(two_cards(), "4", 17), every_state(), hostile(ALL_AT_ONCE)],
    ids=["pass", "fail", "states", "hostile"],
)
def test_the_counts_are_those_of_the_cases(record: Record) -> None:
    """Each suite, and the whole, count what is in them."""
    root = document(record)

    for holder in (root, *root):
        cases = [outcome(case).partition(" ")[0] for case in holder.iter("testcase")]
        assert holder.get("tests") == str(len(cases))
        assert holder.get("failures") == str(cases.count("failure"))
        assert holder.get("errors") == str(cases.count("error"))
        assert holder.get("skipped") == str(cases.count("skipped"))


def test_properties_stand_before_cases() -> None:
    """Strict readers want them first; they hold what the fact table holds."""
    matrix = document(two_cards())[0]

    assert [child.tag for child in matrix] == ["properties", "testcase"]
    assert matrix[0][0].get("name") == "engine"
    assert (matrix[0][0].get("value") or "").startswith("strata 0.1.40.3, sha256 ab12ab12ab12")


@given(texts)
def test_any_text_gives_valid_xml(text: str) -> None:
    """Whatever control characters came in, a parser takes it, and nothing became an element."""
    root = document(hostile(text))

    assert {element.tag for element in root.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error",
        "skipped", "system-err",
    }  # fmt: skip


@given(st.text(st.characters(codec=None), max_size=20))
def test_the_text_can_be_written_as_utf8(text: str) -> None:
    """Lone surrogates of odd file names included; a parser finds every case again."""
    record = hostile(text)
    written = build(record, judge(record), redactor=Redactor.off()).encode("utf-8")

    root = ET.fromstring(written.decode("utf-8"))
    assert root.get("tests") == str(len(list(root.iter("testcase"))))
    assert outcomes(root).keys() >= {"0"}


def test_names_are_replaced_here_too() -> None:
    """The same redaction as in the report."""
    record = hostile("alice at /home/alice")

    text = ET.tostring(document(record, redactor=Redactor(pairs=(("alice", "<user>"),))))

    assert b"alice" not in text
