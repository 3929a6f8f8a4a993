"""Final timings and draft statistics."""

from __future__ import annotations

import pytest

from hetero_test.engines.llama_cpp.log import Drafts, Rate
from tests.engines.llama_cpp.samples import log, said


def test_timings() -> None:
    """The final timing lines are read with their number of tokens."""
    found = log("cpu")
    assert found.prompt.tokens == 25
    assert found.decode.tokens == 8
    assert found.decode.tok_s is not None
    assert found.decode.tok_s > 0


@pytest.mark.parametrize(
    ("line", "rate"),
    [
        (
            "slot print_timing: id  0 | task 0 |        eval time =      46.09 ms /    64 tokens "
            "(    0.73 ms per token,  1366.77 tokens per second)",
            Rate(tokens=64, ms=46.09, tok_s=1366.77),
        ),
        (
            "llama_print_timings:        eval time =    3194.22 ms /   783 runs   "
            "(    4.08 ms per token,   245.13 tokens per second)",
            Rate(tokens=783, ms=3194.22, tok_s=245.13),
        ),
        (
            "llama_perf_context_print:        eval time =     100.00 ms /    50 runs   "
            "(    2.00 ms per token,   500.00 tokens per second)",
            Rate(tokens=50, ms=100.0, tok_s=500.0),
        ),
        (
            "common_perf_print:        eval time =     100.00 ms /    50 runs   "
            "(    2.00 ms per token,   500.00 tokens per second)",
            Rate(tokens=50, ms=100.0, tok_s=500.0),
        ),
        (
            "INFO [           print_timings] generation eval time =    3194.22 ms /   783 runs   "
            '(    4.08 ms per token,   245.13 tokens per second) | tid="1" timestamp=1',
            Rate(tokens=783, ms=3194.22, tok_s=245.13),
        ),
        (
            # Before June 2023 no rate was printed.
            "llama_print_timings:        eval time =  1460.00 ms /   127 runs   "
            "(   11.50 ms per run)",
            Rate(tokens=127, ms=1460.0, tok_s=127 / 1460.0 * 1000),
        ),
        (
            "llama_print_timings:        eval time =       0.00 ms /     1 runs   "
            "(    0.00 ms per token,      inf tokens per second)",
            Rate(tokens=1),
        ),
        (
            "llama_print_timings:        eval time =     -nan ms /     1 runs   "
            "(    -nan ms per token,     -nan tokens per second)",
            Rate(tokens=1),
        ),
        (
            # A comma decimal where it can be nothing else.
            "llama_print_timings:        eval time =  3194,22 ms /   783 runs   "
            "(    4,08 ms per token,   245,13 tokens per second)",
            Rate(tokens=783, ms=3194.22, tok_s=245.13),
        ),
        (
            # Three digits behind a comma are read where no thousand begins so.
            "llama_print_timings:        eval time =     0,250 ms /     2 runs   "
            "(    0,125 ms per token, 8000,000 tokens per second)",
            Rate(tokens=2, ms=0.25, tok_s=8000.0),
        ),
        (
            "llama_print_timings:        eval time =    3,194 ms /   783 runs   "
            "(    4.08 ms per token,   245.13 tokens per second)",
            Rate(tokens=783),  # three milliseconds, or three thousand
        ),
    ],
)
def test_timing_dialects(line: str, rate: Rate) -> None:
    """Every dialect of the timing lines is read; "inf" and "0.00 ms" mean no timing."""
    assert said(line).decode == rate
    assert said(line).unread_timings == ()


def test_timing_of_an_unknown_dialect_is_no_zero() -> None:
    """A timing line that cannot be read is kept as such, and no timing comes of it."""
    found = said("llama_print_timings:        eval time = three seconds")
    assert found.decode == Rate()
    assert found.unread_timings == ("llama_print_timings:        eval time = three seconds",)


@pytest.mark.parametrize("word", ["n_decoded", "n_gen"])
def test_rolling_values_are_no_timings(word: str) -> None:
    """What the server says while it decodes is not its final rate, whatever its name."""
    line = (
        f"2.02.846.974 I slot print_timing: id  3 | task 0 | {word} =   1081, tg =  12.93 t/s, "
        "tg_3s =  12.57 t/s"
    )
    assert said(line).decode == Rate()
    assert said(line).unread_timings == ()


def test_of_several_requests_the_last_counts() -> None:
    """A server that answered twice reports the second; a fresh process answers once."""
    line = "slot print_timing: id  0 | task {} |        eval time = {} ms /    10 tokens"
    assert said(line.format(0, "100.00"), line.format(7, "50.00")).decode.ms == 50.0


def test_drafts_of_tools_without_a_server() -> None:
    """Counts that stand on lines of their own are read as well."""
    found = said("n_drafted = 61", "n_accept  = 47")
    assert found.drafts == Drafts(accepted=47, offered=61)


def test_older_name_of_draft_acceptance() -> None:
    """Where the line says that it is a rate, it is the same line."""
    line = "draft acceptance rate = 0.57576 (   19 accepted /    33 generated)"
    assert said(line).drafts == Drafts(accepted=19, offered=33)


STATISTICS = (
    "statistics {:>16}: #calls(b,g,a) =    1 {:>6} {:>6}, #gen drafts =      2, "
    "#acc drafts =     2, #gen tokens =      5, #acc tokens =     5, "
    "dur(b,g,a) = 0.000, {:.3f}, 0.002 ms"
)


def test_all_ways_of_speculation_are_added_up() -> None:
    """Each has a line of its own; of several lines on one of them the last counts."""
    found = said(
        STATISTICS.format("ngram-simple", 3, 3, 9.0),
        STATISTICS.format("ngram-simple", 5, 5, 0.5),
        STATISTICS.format("draft-simple", 9, 9, 1.25),
    )
    assert found.drafts == Drafts(rounds=14, draft_ms=1.75)
