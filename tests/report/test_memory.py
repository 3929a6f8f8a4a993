"""Memory by device, graph splits and log-probabilities: shown where an engine tells them."""

from __future__ import annotations

from dataclasses import replace

from hetero_test.judge.judge import judge
from hetero_test.publish.redact import Redactor
from hetero_test.report import html
from hetero_test.values.reading import Row, TokenChance
from hetero_test.values.record import Ending, Record
from hetero_test.values.run import Run
from tests.report.factories import manifest, planned, run, slots, stream, two_cards
from tests.report.reading import report, rows, section
from tests.runs import altered

TITLE = "Memory, graph splits, log-probabilities"
SIZES = (
    "CPU 0.38 / 0.00 / 0.00 MiB; RPC0 20.00 / 0.50 / 0.16 GiB; draft RPC1 0.33 / 0.12 / 1.51 MiB"
)
ROWS = (
    Row(label="weights / KV / compute by device", value=SIZES),
    Row(label="graph splits", value=17),
)


def told(*, noise: float = 0.0, ids: tuple[int, ...] | None = None) -> Record:
    """Two variants of an engine that tells all this; variant 1's log-probabilities are moved."""
    return Record(
        manifest=manifest(variants=planned()[:2], repeats=1),
        ending=Ending.COMPLETE,
        runs=(_run("0", 0.0, stream(1)), _run("1", noise, ids or stream(1))),
    )


def _run(variant: str, noise: float, ids: tuple[int, ...]) -> Run:
    chances = tuple(
        TokenChance(id=n, logprob=-0.5 + noise, top=((n, -0.5 + noise), (7, -0.75))) for n in ids
    )
    return run(variant, stream=ids, chances=chances, rows=ROWS, residency=slots(1))


def test_row() -> None:
    """Sizes by device with the draft model's apart, splits, drafts, and what ids do not tell."""
    table = rows(section(report(told()), TITLE))
    assert table[-1] == [
        "1",
        SIZES,
        "17",
        "38 / 62",
        "ids equal, log-probabilities bit-identical",
    ]


def test_moved_log_probabilities() -> None:
    """Equal ids whose log-probabilities moved are told from bit-identical ones."""
    assert "ids equal, log-probabilities differ by up to 0.004" in report(told(noise=0.004))


def test_best_candidates_of_both_sides() -> None:
    """At a difference the candidates of both sides are shown, and that they were a near tie."""
    ids = (*stream(1)[:40], 7, *stream(2)[:19])
    other = told(noise=0.001, ids=ids)
    first = other.runs[0]
    assert first.reading.chances is not None
    near = (TokenChance(id=stream(1)[40], logprob=-0.7, top=((stream(1)[40], -0.7), (7, -0.7005))),)
    chances = (*first.reading.chances[:40], *near, *first.reading.chances[41:])
    second = other.runs[1]
    assert second.reading.chances is not None
    mine = (TokenChance(id=7, logprob=-0.7, top=((7, -0.7), (stream(1)[40], -0.7002))),)
    changed = (
        altered(first, chances=chances),
        altered(
            second, chances=(*second.reading.chances[:40], *mine, *second.reading.chances[41:])
        ),
    )
    text = report(replace(other, runs=changed))
    assert f"Best of the reference: {stream(1)[40]} at -0.7, 7 at -0.7005." in text
    assert f"Best of the judged run: 7 at -0.7, {stream(1)[40]} at -0.7002." in text
    assert f"Near tie: 7 and {stream(1)[40]} are" in text


def test_engines_that_tell_nothing() -> None:
    """Where no log tells any of it there is no such section."""
    assert TITLE not in report(two_cards())


def test_page() -> None:
    """The page shows the same."""
    found = told()
    page = html.build(found, judge(found), redactor=Redactor.off())
    assert TITLE in page
    assert "RPC0 20.00 / 0.50 / 0.16 GiB" in page
