"""Unknown lines: who printed them, what they say, and what that does to a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from hetero_test.judge.evidence import MOST_SHOWN, evidence
from hetero_test.judge.judge import judge
from hetero_test.values.remark import Remark, Weight
from hetero_test.values.run import Effect, RunState
from hetero_test.values.verdict import Conclusion
from tests.judge.factories import changed, record

if TYPE_CHECKING:
    from hetero_test.values.record import Record


def said(line: str, weight: Weight = Weight.DOUBTFUL) -> Remark:
    """A line that no reader knows."""
    return Remark(template=line, line=line, weight=weight)


def saying(made: Record, variant: str, *remarks: Remark, repeat: int | None = None) -> Record:
    """The record in which a variant's runs print these lines."""
    return changed(made, variant, repeat, remarks=remarks)


def strictly(made: Record) -> Record:
    """The same under ``--strict``."""
    return replace(made, manifest=replace(made.manifest, strict=True))


RIG = record("0: A A", "1: A A", "2: A A")
LOST = said("the second device was lost")


def test_a_doubtful_line_of_one_run_doubts_its_placement() -> None:
    """One run is enough: PASS with a warning that quotes the line, INCONCLUSIVE under strict."""
    made = saying(RIG, "1", LOST, repeat=2)
    judgment = judge(made)

    assert judgment.conclusion is Conclusion.PASS
    assert judgment.summaries[1].effect is Effect.DOUBTED
    assert judgment.summaries[1].doubts == (LOST.line,)
    assert any(LOST.line in warning for warning in judgment.warnings)
    assert judge(strictly(made)).conclusion is Conclusion.INCONCLUSIVE


def test_a_line_of_the_baseline_warns_of_the_matrix() -> None:
    """What the baseline prints, too, speaks against no placement, but is not passed over."""
    made = saying(saying(RIG, "0", LOST), "1", LOST)
    judgment = judge(made)

    assert judgment.summaries[1].effect is Effect.PROVEN
    assert any(LOST.line in warning for warning in judgment.warnings)
    assert judge(strictly(made)).conclusion is Conclusion.INCONCLUSIVE


def test_a_flag_that_was_not_carried_out_is_no_placement() -> None:
    """A line that names a flag of the variant, or refuses one, contradicts the placement."""
    flag = RIG.manifest.variants[1].variant.flags[0]
    for line in (said(f"{flag} is ignored"), said("unknown argument", Weight.REFUSED)):
        judgment = judge(saying(record("0: A A", "1: A A"), "1", line))
        assert judgment.summaries[1].effect is Effect.CONTRADICTED
        assert judgment.conclusion is Conclusion.INCONCLUSIVE


def test_an_extra_run_speaks_for_its_variant() -> None:
    """An anchor inherits its variant's lines, and its own count for the variant."""
    made = record("0: A A", "1: B@5011 B@5011", "1f: A A")
    assert evidence(saying(made, "1f", LOST)).doubts["1"][0].line == LOST.line


def test_lines_that_say_nothing_are_shown_at_most() -> None:
    """Only variant 1 printed it: shown, never weighed."""
    note = said("another allocator is used", Weight.NOTHING)
    judgment = judge(strictly(saying(RIG, "1", note)))

    assert judgment.conclusion is Conclusion.PASS
    assert judgment.warnings == judge(strictly(RIG)).warnings
    assert evidence(saying(RIG, "1", note)).only == {"1": (note.line,)}


def test_what_every_baseline_run_prints_and_a_variant_never_does_is_missing() -> None:
    """The other way round is evidence, too."""
    note = said("copies go straight to the other card", Weight.NOTHING)
    made = saying(saying(RIG, "0", note), "2", note)
    assert evidence(made).missing == {"1": (note.line,)}


def test_a_line_belongs_to_the_variant_whose_flags_all_others_have() -> None:
    """A variant that adds to another's flags may print the other's lines."""
    flags = RIG.manifest.variants[1].variant.flags
    variants = tuple(
        replace(entry, variant=replace(entry.variant, flags=(*flags, "--more")))
        if entry.variant.id == "2"
        else entry
        for entry in RIG.manifest.variants
    )
    made = replace(RIG, manifest=replace(RIG.manifest, variants=variants))
    note = said("mirrored", Weight.NOTHING)
    assert set(evidence(saying(saying(made, "1", note), "2", note)).only) == {"1"}


def test_what_the_matrix_calls_harmless_never_speaks_against_anything() -> None:
    """An acknowledged line is listed, and weighs nothing under strict either."""
    made = strictly(saying(RIG, "1", LOST))
    made = replace(made, manifest=replace(made.manifest, harmless=("device was lost",)))
    assert judge(made).conclusion is Conclusion.PASS
    assert evidence(made).acknowledged == (LOST.line,)


def test_many_lines_are_counted_and_not_all_quoted() -> None:
    """A chatty failure fills no report."""
    lines = [said(f"device {chr(97 + n)} was lost") for n in range(3 * MOST_SHOWN)]
    warnings = judge(saying(RIG, "1", *lines)).warnings
    assert sum("was lost" in warning for warning in warnings) == MOST_SHOWN
    assert any(f"{2 * MOST_SHOWN} more" in warning for warning in warnings)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["0", "1", "2"]),
            st.sampled_from(["a lost", "b lost", "c lost"]),
        ),
        max_size=8,
    )
)
def test_no_doubtful_line_is_silent(printed: list[tuple[str, str]]) -> None:
    """Whoever prints it: a doubtful line is quoted, and no strict matrix passes with it."""
    made = RIG
    for name in {name for name, _ in printed}:
        lines = dict.fromkeys(line for other, line in printed if other == name)
        made = saying(made, name, *(said(line) for line in lines))
    judgment = judge(made)
    for _, line in printed:
        assert any(line in warning for warning in judgment.warnings)
    assert (judge(strictly(made)).conclusion is Conclusion.PASS) == (not printed)


def test_a_doubt_never_makes_an_effect_better_nor_one_where_there_is_none() -> None:
    """A contradicted placement stays contradicted; without a usable run there is no effect."""
    for effect in (Effect.CONTRADICTED, Effect.NOT_SEEN):
        made = saying(changed(RIG, "1", effect=effect), "1", LOST)
        assert judge(made).summaries[1].effect is effect
    crashed = changed(RIG, "1", state=RunState.CRASHED)
    assert judge(saying(crashed, "1", LOST)).summaries[1].effect is None


def test_one_line_that_a_flag_was_left_out_outweighs_many_doubts() -> None:
    """Doubtful lines beside it do not make a refused flag a carried-out one."""
    refused = said("unknown argument", Weight.REFUSED)
    for lines in ((LOST, refused), (refused, LOST)):
        assert judge(saying(RIG, "1", *lines)).summaries[1].effect is Effect.CONTRADICTED
