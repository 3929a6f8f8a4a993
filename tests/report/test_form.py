"""A report renders anywhere, the same each time, whatever is in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetero_test.judge.judge import judge
from hetero_test.publish.redact import Redactor
from hetero_test.report.markdown import build
from hetero_test.values.reading import Residency, Timings
from hetero_test.values.record import Ending, Record
from hetero_test.values.run import (
    Effect,
    Purpose,
    Run,
    RunState,
)

from .factories import (
    every_state,
    flipped,
    hostile,
    manifest,
    run,
    slots,
    two_cards,
)
from .hostile import ALL_AT_ONCE
from .reading import report, rows
from .rendered import cmark

EVERY = pytest.mark.parametrize(
    "record",
    [two_cards(), flipped(two_cards(), "4", 17), every_state(), hostile(ALL_AT_ONCE)],
    ids=["pass", "fail", "states", "hostile"],
)


@EVERY
def test_folds_have_room_around_them(record: Record) -> None:
    """A blank line after each summary and before each end, or tables inside do not render."""
    lines = report(record).splitlines()

    for place, line in enumerate(lines):
        if line.startswith("<details>"):
            assert line.endswith("</summary>")
            assert lines[place + 1] == ""
        if line == "</details>":
            assert lines[place - 1] == ""
            assert lines[place + 1] == ""


@EVERY
def test_visible_tables_are_narrow(record: Record) -> None:
    """At most six columns outside of folds."""
    visible = re.sub(r"<details>.*?</details>", "", report(record), flags=re.DOTALL)

    assert all(len(r) <= 6 for r in rows(visible))


@EVERY
def test_rendering_again_gives_the_same_bytes(record: Record) -> None:
    """No clock, no locale, no order of a set."""
    assert report(record) == report(record)


@pytest.mark.process
def test_another_process_gives_the_same_bytes() -> None:
    """Neither hash seed nor locale nor time zone shows."""
    program = (
        "from tests.report.test_form import *; import sys;"
        "sys.stdout.buffer.write(report(hostile(ALL_AT_ONCE)).encode())"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed, locale, zone in (("1", "C", "UTC"), ("2", "C.UTF-8", "Asia/Tokyo"))
    }

    assert texts == {report(hostile(ALL_AT_ONCE)).encode()}


STREAMS = st.lists(st.integers(0, 3), min_size=1, max_size=6).map(tuple)


@st.composite
def any_run(draw: st.DrawFn) -> Run:
    """A run of any variant in any state; an OK one has a stream."""
    state = draw(st.sampled_from(RunState))
    name = draw(st.sampled_from(["0", "1", "2", "1f"]))
    return run(
        name,
        draw(st.integers(1, 3)),
        state=state,
        stream=draw(STREAMS if state is RunState.OK else st.none() | STREAMS),
        residency=draw(st.sampled_from([slots(1), slots(2), Residency(unknown="x")])),
        purpose=Purpose.ANCHOR if name == "1f" else Purpose.ROUND,
        exit_code=draw(st.none() | st.integers(-9, 250)),
        signal=draw(st.none() | st.just("SIGKILL")),
        timings=Timings(decode_tok_s=draw(st.none() | st.floats())),
        effect=draw(st.none() | st.sampled_from(Effect)),
        major_faults=draw(st.none() | st.integers(0, 9)),
    )


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(any_run(), max_size=12, unique_by=lambda r: r.key), st.sampled_from(Ending))
def test_any_set_of_runs_can_be_rendered(runs: list[Run], ending: Ending) -> None:
    """Whatever ran, in whatever state: the conclusion's word leads, and it renders."""
    record = Record(manifest=manifest(), runs=tuple(runs), ending=ending)
    judgment = judge(record)

    text = build(record, judgment, redactor=Redactor.off())

    assert re.match(rf"## \S+ {judgment.conclusion} — ", text)
    assert cmark(text).tags[0] == "h2"
