"""Lines that nobody had in a list, drawn into healthy runs: what the program makes of them."""

from __future__ import annotations

import pytest

from hetero_test.values.run import RunState
from tests.corpus.lines import Drawn, corpus, drawn, healthy
from tests.corpus.score import Score, Taken, score, taken

NOTICED_OF_KEPT, QUIET_OF_KEPT = 0.90, 0.77
"""Shares of the kept half when it was scored (200 of 222, 152 of 195); they may only grow."""
WARNED = 0.02
"""Of harmless lines, at most so many may be warned of."""


def misses(*counts: list[Taken]) -> list[str]:
    """What was not taken as it should be, to be read where a test fails."""
    return [each.drawn.line.text for others in counts for each in others]


@pytest.fixture(scope="module")
def opened() -> Score:
    """The half that was in sight while the rules were written."""
    return score("open", drawn())


@pytest.fixture(scope="module")
def kept() -> Score:
    """The half that was not."""
    return score("kept", drawn())


def test_the_corpus_is_large_and_each_line_has_a_source() -> None:
    """At least 150 failures and 150 harmless lines, of every engine, each half with its share."""
    lines = corpus()
    assert len({line.id for line in lines}) == len({line.text for line in lines}) == len(lines)
    for half in ("open", "kept"):
        mine = [line for line in lines if line.half == half]
        assert sum(line.harmless for line in mine) >= 150
        assert sum(not line.harmless for line in mine) >= 150
        assert {line.engine for line in mine} == {"strata", "llama_cpp", "ik_llama", "any"}
    assert all(line.source and line.text.strip() for line in lines)


@pytest.mark.parametrize("engine", ["strata", "llama_cpp"])
def test_the_logs_into_which_lines_are_drawn_are_healthy(
    engine: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without a drawn line the run is OK, and no line of the log says anything."""
    reading = healthy(engine).read(tmp_path_factory.mktemp("healthy"), None)
    each = taken(Drawn(line=corpus()[0], engine=engine, reading=reading))
    assert each.state is RunState.OK
    assert each.quiet


def test_no_failure_of_the_open_half_gives_a_pass_without_a_quoted_warning(opened: Score) -> None:
    """Printed by one variant or by all: quoted in a PASS, and no PASS under ``--strict``."""
    assert misses(*(count.others for count in opened.noticed.values())) == []


def test_harmless_lines_make_nothing_worse_and_are_hardly_ever_warned_of(opened: Score) -> None:
    """No run that is not OK, no INCONCLUSIVE, no FAIL; a warning for 2 % at most."""
    assert misses(opened.undisturbed.others) == []
    assert len(opened.quiet.others) <= WARNED * opened.quiet.all, misses(opened.quiet.others)


def test_the_kept_half_is_taken_as_well_as_when_it_was_scored(kept: Score) -> None:
    """Rules may be improved, but not at the price of lines that they were not written for."""
    counts = kept.noticed.values()
    share = sum(count.good for count in counts) / sum(count.all for count in counts)
    assert share >= NOTICED_OF_KEPT
    assert kept.quiet.good >= QUIET_OF_KEPT * kept.quiet.all


@pytest.mark.nightly
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(1, 11))
def test_it_does_not_matter_where_in_the_log_a_line_stands(seed: int) -> None:
    """The same lines at other places: before the model is loaded, while it decodes, at the end."""
    made = score("open", drawn(seed))
    assert misses(*(count.others for count in made.noticed.values())) == []
    assert misses(made.undisturbed.others) == []
