"""Decoding: windows, lookup, sampling, the end of a sequence."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hetero_test.bundled.drafter import look_up
from tests.bundled.engine import Engine

FORCED = ("--expert-cache", "44")


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(0, 4), st.integers(0, 6))
def test_lookup_proposes_what_followed_the_same_tokens(
    history: list[int], width: int, count: int
) -> None:
    """A proposal follows an earlier occurrence of the last tokens, the latest there is."""
    found = look_up(history, width=width, count=count)
    assert len(found) <= count
    starts = [
        start
        for start in range(len(history) - width)
        if width and history[start : start + width] == history[len(history) - width :]
    ]
    if starts:
        after = starts[-1] + width
        assert found == history[after : after + count]
    else:
        assert found == []


def test_a_prompt_that_repeats_itself_is_looked_up(equal: Engine) -> None:
    """Lookup windows are counted apart, may be wider, and change no token."""
    stream = equal().stream
    ids = (*equal.probe, *stream, *equal.probe)
    tokens = ("--tokens", ",".join(map(str, ids)))
    on, off = equal(*FORCED, *tokens), equal(*FORCED, *tokens, "--suffix-draft", "0")
    windows, accepted, offered = map(
        int, on.found(r"^suffix drafts +(\d+) windows, drafts accepted (\d+) of (\d+)$")
    )
    assert windows > 0
    assert offered == 5 * windows
    assert 0 <= accepted <= offered
    assert on.stream == off.stream
    assert on.says("captured the 6-token window")
    assert not off.says("^suffix drafts")
    assert off.rounds[1] == 4


def test_the_histogram_adds_up(equal: Engine) -> None:
    """Rounds and accepted drafts of the speculation line are those of the histogram."""
    run = equal()
    (text,) = run.found(r"^accepted per round((?: +\d+:\d+)+)$")
    counts = {int(n): int(rounds) for n, rounds in re.findall(r"(\d+):(\d+)", text)}
    assert list(counts) == list(range(6))
    assert sum(counts.values()) == run.rounds[0]
    assert sum(n * rounds for n, rounds in counts.items()) == run.drafts[0]
    (per_round,) = run.found(r", ([\d.]+) tokens per round$")
    assert per_round == f"{(run.drafts[0] + run.rounds[0]) / run.rounds[0]:.2f}"


def test_drafts_enter_while_their_probability_holds(equal: Engine) -> None:
    """A least probability offers fewer drafts, a larger share of which is accepted."""
    every, few = equal(), equal("--spec-min-p", "0.4")
    assert few.drafts[1] < every.drafts[1]
    assert few.drafts[0] / few.drafts[1] > every.drafts[0] / every.drafts[1]
    assert few.says(r"^window sizes +(T\d:\d+ )+ \(min draft probability 0\.40\)$")
    assert not every.says("^window sizes")


def test_without_drafts_each_window_makes_one_token(equal: Engine) -> None:
    """A cap of one token leaves the window alone with the last token."""
    run = equal("--mtp-max-t", "1", "--suffix-draft", "0")
    assert run.drafts == (0, 0)
    assert run.rounds[0] == 59  # the first token of a canonical pack comes without a window
    assert run.says(r"drafts accepted 0 of 0 \(0\.000\), 1\.00 tokens per round$")
    assert run.says(r"^mtp +-nan ms/round drafting \(0 rounds\), ")


def test_one_token_needs_no_round_on_a_canonical_pack(equal: Engine, native: Engine) -> None:
    """The first token is the token path's; on a native pack it is a window of its own."""
    canonical, sized = equal("--max-new", "1"), native("--max-new", "1")
    assert not canonical.says("^speculation|^mtp ")
    assert sized.rounds == (1, 6)
    assert sized.says(r"^mtp +-nan ms/round drafting \(0 rounds\), ")
    assert canonical.stream == equal().stream[:1]
    assert sized.stream == native().stream[:1]


def test_a_prompt_of_one_token_has_no_prefill(equal: Engine) -> None:
    """Nothing is read before the only token, so there is no prefill line."""
    run = equal("--tokens", "1234")
    assert run.prompt == (1234,)
    assert len(run.stream) == 60
    assert not run.says("^prefill|: prefill ")


def test_an_id_beyond_the_vocabulary_is_echoed_as_given(equal: Engine) -> None:
    """Ids are not checked against the vocabulary, and the echo is what was asked."""
    assert equal("--tokens", "248319,5").prompt == (248319, 5)


def test_generation_ends_at_an_end_of_sequence_if_asked(equal: Engine) -> None:
    """The ending token is the last of the stream; without the flag it is a token like others."""
    stream = equal().stream
    ends = (stream[20], stream[30])
    ids = ",".join(map(str, ends))
    stopped = equal("--stop-eos", "--eos-ids", ids)
    assert stopped.stream == stream[:21]
    assert stopped.says(rf"^strata generate: end of sequence: token {ends[0]} at position ")
    assert stopped.says("^decode +21 tokens in ")
    assert equal("--eos-ids", ids).stream == stream
    assert equal("--stop-eos").stream == stream


def test_a_seed_samples_and_the_log_says_so(equal: Engine) -> None:
    """Another seed gives another stream, the same seed the same, whatever is drafted."""
    seeded = equal(*FORCED, "--seed", "5")
    assert seeded.says(r"^strata generate: sampling temperature=1 top_k=20 top_p=0\.95 seed=5$")
    assert seeded.stream != equal().stream
    assert seeded.stream == equal(*FORCED, "--seed", "5", "--spec", "2").stream
    assert seeded.stream != equal(*FORCED, "--seed", "6").stream


def test_a_seed_with_no_choice_left_is_greedy(equal: Engine) -> None:
    """One candidate, or no temperature, leaves the most probable token."""
    assert equal(*FORCED, "--seed", "5", "--top-k", "1").stream == equal().stream
    cold = equal(*FORCED, "--seed", "5", "--temperature", "0")
    assert cold.says("^strata generate: sampling greedy$")
    assert cold.stream == equal().stream


def test_the_format_of_keys_and_values_counts(equal: Engine) -> None:
    """A coarser format is another arithmetic and takes less memory."""
    fp16 = equal("--expert-cache", "44")
    for kind in ("int8", "q4_0", "k8v4"):
        run = equal("--kv", kind, "--expert-cache", "44")
        assert run.code == 0
        assert run.stream != fp16.stream
    long = ("--max-context", "32768")
    assert equal("--kv", "int8", *long).slots > equal(*long).slots
