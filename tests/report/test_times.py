"""Times are information, quoted with care, and never change a verdict."""

from __future__ import annotations

from dataclasses import replace

from hetero_test.values.reading import Timings
from hetero_test.values.run import RunState
from tests.runs import altered

from .factories import (
    flipped,
    two_cards,
)
from .reading import report, row, rows, section


def test_times_have_median_range_and_number() -> None:
    """The unit is in the heading, n beside the name."""
    table = rows(section(report(two_cards()), "Times"))

    assert table[0][:3] == ["variant (n)", "decode tok/s", "Δ decode"]
    assert table[1] == [
        "0 (2)",
        "7.23 [7.22-7.24]",
        "baseline",
        "17.85 [17.80-17.90]",
        "4.63",
        "12-24, 4096",
    ]


def test_a_change_is_shown_only_beside_an_equal_stream() -> None:
    """Against the baseline where streams are equal, else against the first variant that is."""
    table = section(report(two_cards()), "Times")

    assert row(table, "1")[2] == "not comparable: other stream"
    assert row(table, "2")[2] == "`~`"
    assert row(table, "3")[2] == "`~` (vs 1)"
    assert row(table, "4")[2] == "+8.3 % (vs 1)"
    assert row(table, "1f")[2] == "`~`"


def test_a_stream_that_fails_has_no_change() -> None:
    """A speed beside a wrong text says nothing."""
    table = section(report(flipped(two_cards(), "4", 17)), "Times")

    assert row(table, "4")[2] == "not comparable: other stream"


def test_no_number_is_read_off_a_run_that_is_not_ok() -> None:
    """Times and draft statistics of a crashed run are not shown, nor counted into a median."""
    record = two_cards()
    fast = Timings(decode_tok_s=999.0, prefill_tok_s=999.0, draft_ms_per_round=999.0)
    runs = tuple(
        altered(r, state=RunState.CRASHED, reason="signal", timings=fast)
        if r.variant == "4" or (r.variant == "3" and r.repeat == 2)
        else r
        for r in record.runs
    )

    text = report(replace(record, runs=runs))

    assert "999" not in text
    assert not [r for r in rows(section(text, "Times")) if r[0].startswith("4 ")]
    assert row(section(text, "Times"), "3")[0] == "3 (1)"


def test_prompts_have_tables_of_their_own() -> None:
    """Prompts of other lengths have other times, which are never pooled."""
    record = two_cards()
    probe = record.manifest.probes[0]
    asked = replace(record.manifest, probes=(probe, replace(probe, name="long")))
    more = tuple(altered(r, probe="long", order=r.order + 50) for r in record.runs)

    text = report(replace(record, manifest=asked, runs=(*record.runs, *more)))

    assert "\nProbe default:\n" in text
    assert "\nProbe long:\n" in text
    assert row(section(text, "Variants"), "0")[5].startswith("A / ")
