"""The report that is pasted into an issue: verdict, facts, variants and streams."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hetero_test.judge.judge import judge
from hetero_test.publish.redact import Redactor
from hetero_test.report.markdown import build
from hetero_test.values.reading import Residency
from hetero_test.values.record import Ending, Pinned, Record
from hetero_test.values.run import Effect, RunState
from hetero_test.values.variant import PlannedVariant, Variant
from hetero_test.values.verdict import Explanation
from tests.runs import altered

from .factories import (
    flipped,
    manifest,
    planned,
    stream,
    two_cards,
)
from .reading import report, row, rows, section


@pytest.mark.parametrize(
    ("record", "start"),
    [
        (two_cards(), "## ✅ PASS — 5 of 5 variants exact (4 at their own residency, "),
        (flipped(two_cards(), "4", 17), "## ❌ FAIL — 1 of 5 variants differs"),
        (Record(manifest=manifest()), "## ⚠️ INCONCLUSIVE — "),
    ],
    ids=["PASS", "FAIL", "INCONCLUSIVE"],
)
def test_the_verdict_comes_first_and_in_words(record: Record, start: str) -> None:
    """The first line carries the word; a sign repeats it."""
    assert report(record).startswith(start)


def test_comparisons_are_counted_second() -> None:
    """The line after the heading counts results, then what the passed ones are made of."""
    line = report(two_cards()).splitlines()[2]

    assert line.startswith(
        "17 PASS, 0 FAIL, 0 INCONCLUSIVE, 1 SKIPPED. 14 runs; passed: 7 repeat, 8 exact, 2 anchor. "
    )


def test_what_is_not_claimed_is_counted_apart() -> None:
    """A placement on another kind of device is shown, but not among the results."""
    record = two_cards()
    other = replace(record.manifest.variants[2].variant, claims=False)
    variants = tuple(
        replace(e, variant=other) if e.variant.id == "2" else e for e in record.manifest.variants
    )
    record = replace(record, manifest=replace(record.manifest, variants=variants))

    text = report(record)

    assert "1 SKIPPED; apart from these, 2 NOT CLAIMED" in text
    assert "- **NOT CLAIMED** variant 2: exact against 0: not claimed to be equal" in text


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (Ending.INTERRUPTED, "**Partial, interrupted: Ctrl-C; 3 of 12 planned runs were made.**"),
        (Ending.RUNNING, "**Not finished yet: 3 of 12 planned runs are in.**"),
        (Ending.WEDGED, "**Partial, rig wedged: Ctrl-C; 3 of 12 planned runs were made.**"),
    ],
)
def test_an_unfinished_matrix_says_so(ending: Ending, said: str) -> None:
    """How far it got stands above the counts, and what was not run is listed."""
    record = replace(two_cards(), runs=two_cards().runs[:3], ending=ending, ending_reason="Ctrl-C")

    text = report(record)

    assert text.splitlines()[2] == said
    assert "- variant 1: 1 of 2 runs not made" in text
    assert "- variant 6: 2 of 2 runs not made" in text


def test_facts_say_what_was_compared_with_what() -> None:
    """Engine, model, rig and lengths stand in one table, with what makes runs comparable."""
    facts = dict(rows(report(two_cards()))[1:8])

    assert facts["engine"].startswith("strata 0.1.40.3, sha256 `ab12ab12ab12`, 12.0 MiB")
    assert facts["rig"].startswith("2 × NVIDIA GeForce GTX 1080 Ti (11.0 GiB); CPU Intel")
    assert facts["run"].startswith("1 prompt of 95 tokens, 60 new tokens each, greedy; 2 repeats")
    assert facts["comparable"].startswith("runs of one residency")
    assert facts["scope"].startswith("this supports only")


def test_a_pinned_and_strict_matrix_says_so() -> None:
    """Flags that the harness added are no secret."""
    asked = manifest(
        strict=True, pinned=Pinned(flags=("--adapt-every", "0"), asked=True, left_out=("--old",))
    )
    facts = dict(rows(report(replace(two_cards(), manifest=asked)))[1:8])

    assert "strict" in facts["run"]
    assert "`--adapt-every` 0" in facts["run"]
    assert "`--old`" in facts["run"]


def test_the_first_table_tells_the_effect_of_each_variant() -> None:
    """Variant, placement, effect, verdict, residency and stream; an unknown effect is a dash."""
    table = section(report(two_cards()), "Variants")

    assert rows(table)[0] == ["variant", "placement", "effect", "verdict", "residency", "stream"]
    assert row(table, "0")[2] == "–"
    assert row(table, "1")[2] == "PROVEN: draft 1"
    assert row(table, "2")[2] == "UNOBSERVABLE: leaves no trace"
    assert row(table, "4")[3] == "✅ PASS: exact"
    assert row(table, "1")[5] == "B `65533ba033c5`"


@pytest.mark.parametrize("effect", [Effect.NOT_SEEN, Effect.CONTRADICTED])
def test_an_effect_that_is_not_proven_tells_what_was_wanted(effect: Effect) -> None:
    """The part, where it should be, and where it was seen."""
    record = two_cards()
    runs = tuple(
        replace(
            r,
            effect=effect,
            effect_parts=tuple(replace(p, effect=effect, seen=None) for p in r.effect_parts),
        )
        if r.variant == "4"
        else r
        for r in record.runs
    )

    table = section(report(replace(record, runs=runs)), "Variants")

    assert row(table, "4")[2] == f"{effect}: draft: 1 wanted, nothing seen"


def test_what_an_anchor_proves_is_said() -> None:
    """A variant tied only by its anchor was never compared at its own residency."""
    text = section(report(two_cards()), "Variants")

    assert "- An anchor (1f) runs a variant with the baseline's residency forced" in text
    assert "never compared at their own residency: 1." in text
    assert "leave no trace in the log, so only their streams can be judged: 2." in text


def test_variants_that_were_not_run_say_why() -> None:
    """Nothing is hidden: a variant that cannot run here is listed with the reason."""
    extra = PlannedVariant(
        variant=Variant(id="7", name="one card"), planned=False, why_not="needs at most 1 device"
    )
    refused = PlannedVariant(
        variant=Variant(id="8", name="new"),
        planned=False,
        refused=True,
        why_not="no such flag",
    )
    asked = manifest(variants=(*planned(), extra, refused))

    text = section(report(replace(two_cards(), manifest=asked)), "Not OK, not compared, not run")

    assert "- **SKIPPED** variant 7 (one card): needs at most 1 device" in text
    assert "- **REFUSED** variant 8 (new): no such flag" in text


def test_streams_are_grouped_by_residency() -> None:
    """Letter, md5, members, and where each parts; only a split within a residency is a defect."""
    table = rows(section(report(flipped(two_cards(), "4", 17)), "Streams by residency"))

    assert [r[1] for r in table[1:]] == ["A", "B", "C"]
    assert table[1][0].startswith("I: 4400 slots on NVIDIA")
    assert table[1][2:] == ["`55b8ebc603a0`", "0 ×2, 2 ×2, 1f ×2", "–"]
    assert table[2][4] == "token 0 against A: another residency, may be rounding"
    assert table[3][3:] == ["4 ×2", "token 17 against B: the same residency"]


def test_a_split_shows_its_index_and_both_continuations() -> None:
    """Equal ids before, then the reference with a minus and the judged run with a plus."""
    text = report(flipped(two_cards(), "4", 17))
    ids = stream(2)

    head, diff = text.split("<details><summary>FAIL: 4 run 1 against 1 run 1, ")[1].split(
        "</summary>\n\n```diff\n"
    )
    lines = diff.split("\n```")[0].splitlines()

    assert head == f"first split at token 17 ({ids[17] + 1} instead of {ids[17]})"
    assert lines[0].endswith(f" {ids[15]} {ids[16]}")
    assert lines[1].split()[:3] == ["-", str(ids[17]), str(ids[18])]
    assert lines[2].split()[:3] == ["+", str(ids[17] + 1), str(ids[18])]


def test_a_prefix_is_called_one() -> None:
    """A stream that only ends earlier is not shown as one that differs."""
    record = two_cards()
    runs = tuple(
        altered(r, state=RunState.TRUNCATED, reason="40 of 60 tokens", stream=stream(2)[:40])
        if r.variant == "4"
        else r
        for r in record.runs
    )

    text = report(replace(record, runs=runs))

    assert "- " + " ".join(map(str, stream(2)[40:72])) in text
    assert "+ (end of the stream)\n# the judged run ends here: a strict prefix" in text


def test_a_known_cause_is_named_and_the_way_out_is_offered() -> None:
    """Cause and log-probabilities stand below the split, the pinned command at the end."""
    record = replace(
        flipped(two_cards(), "4", 17),
        manifest=manifest(pinned=Pinned(flags=("--adapt-every", "0"))),
    )
    judgment = judge(record)
    verdicts = tuple(
        replace(
            v,
            result=type(v.result).INCONCLUSIVE,
            cause="PCIe share (51 against 60)",
            explanation=Explanation(text="the two candidates were 0.01 nat apart"),
        )
        if v.difference is not None
        else v
        for v in judgment.verdicts
    )

    text = build(record, replace(judgment, verdicts=verdicts), redactor=Redactor.off())

    assert "Known cause: PCIe share (51 against 60)." in text
    assert "The two candidates were 0.01 nat apart." in text
    assert "/build --pinned -- --pack " in section(text, "What next")


def test_an_unknown_residency_is_compared_with_nothing() -> None:
    """Its stream is listed, but no split is claimed."""
    record = two_cards()
    runs = tuple(
        altered(r, residency=Residency(unknown="no slots line"), stream=stream(9))
        if r.variant == "4"
        else r
        for r in record.runs
    )

    table = section(report(replace(record, runs=runs)), "Streams by residency")

    assert "| not compared: the residency is unknown |" in table
