"""Placement: exact under equal residency, legitimately different under another."""

from __future__ import annotations

import pytest

from hetero_test.bundled.build import demo_pack
from hetero_test.bundled.pack import Layout
from tests.bundled.engine import NEW_TOKENS, Engine, fault_env

ZERO_ONE = ("--main-device", "0", "--draft-device", "1")
ONE_ZERO = ("--main-device", "1", "--draft-device", "0")
BOTH = ("--draft-prefill-parallel", "--draft-chain-batch")
PLACEMENTS = (
    ZERO_ONE,
    ONE_ZERO,
    (*ZERO_ONE, BOTH[0]),
    (*ZERO_ONE, BOTH[1]),
    (*ZERO_ONE, *BOTH),
    ("--auto-roles",),
)
BASELINE_SLOTS, APART_SLOTS = 44, 50


@pytest.mark.parametrize("flags", PLACEMENTS, ids=" ".join)
def test_placements_of_one_residency_give_one_stream(equal: Engine, flags: tuple[str, ...]) -> None:
    """On two cards of one kind all placements land in one residency, bit for bit one stream."""
    run = equal(*flags)
    assert run.code == 0
    assert run.slots == APART_SLOTS
    assert run.stream == equal(*ZERO_ONE).stream
    assert run.drafts == equal(*ZERO_ONE).drafts


def test_the_drafters_memory_goes_to_the_cache(equal: Engine) -> None:
    """Without the drafter beside it the automatic cache has more slots, and another stream."""
    baseline, apart = equal(), equal(*ZERO_ONE)
    assert (baseline.slots, apart.slots) == (BASELINE_SLOTS, APART_SLOTS)
    assert baseline.estimate == baseline.slots
    assert baseline.stream != apart.stream


@pytest.mark.parametrize("flags", [*PLACEMENTS, ("--draft-chain-batch",)], ids=" ".join)
def test_the_baselines_cache_forced_gives_the_baselines_stream(
    equal: Engine, flags: tuple[str, ...]
) -> None:
    """On a canonical pack the baseline's final count, forced, reproduces it in any placement."""
    forced = equal(*flags, "--expert-cache", str(BASELINE_SLOTS))
    assert forced.slots == BASELINE_SLOTS
    assert not forced.says("expert cache auto")
    assert forced.stream == equal().stream


@pytest.mark.parametrize(
    "drafting",
    [
        ("--spec", "2"),
        ("--spec", "8"),
        ("--mtp-max-t", "1"),
        ("--mtp-max-t", "3"),
        ("--suffix-draft", "0"),
        ("--suffix-draft", "1"),
        ("--spec-min-p", "0.4"),
    ],
    ids=" ".join,
)
def test_drafting_never_changes_the_stream(equal: Engine, drafting: tuple[str, ...]) -> None:
    """Whatever is drafted, the residency being equal, the stream is the same."""
    run = equal("--expert-cache", str(BASELINE_SLOTS), *drafting)
    assert run.stream == equal().stream
    assert (*run.rounds, *run.drafts) != (*equal().rounds, *equal().drafts)


def test_no_drafting_at_all_gives_the_same_stream(equal: Engine) -> None:
    """Token by token, without speculation, the stream is that of the windows."""
    plain = equal.without("--mtp", "--spec")("--expert-cache", str(BASELINE_SLOTS))
    assert plain.stream == equal().stream
    assert not plain.says("^speculation")
    assert plain.says(r"^strata generate: token graph captured \(4 layers, one launch per token\)$")


@pytest.mark.parametrize("prefill", ["0", "7", "32", "auto:16384"])
def test_the_prompt_may_be_read_in_any_chunks(equal: Engine, prefill: str) -> None:
    """Chunks of the prompt change nothing."""
    assert equal("--prefill", prefill).stream == equal().stream


def test_a_wrong_drafter_shows_in_its_statistics_only(equal: Engine) -> None:
    """A drafter whose drafts are rejected costs rounds, never a token."""
    weak = equal(env=fault_env("weak-drafter", argument=1))
    assert weak.drafts[0] == 0
    assert weak.stream == equal().stream


def test_main_really_moves(equal: Engine, unequal: Engine) -> None:
    """The ambient device is the one asked for; on a card of another kind the bits differ."""
    assert equal(*ONE_ZERO).device == 1
    assert equal(*ZERO_ONE).device == 0
    forced = ("--expert-cache", str(BASELINE_SLOTS))
    zero, one = unequal(*ZERO_ONE, *forced), unequal(*ONE_ZERO, *forced)
    assert (zero.slots, one.slots) == (BASELINE_SLOTS, BASELINE_SLOTS)
    assert (zero.device, one.device) == (0, 1)
    assert zero.stream != one.stream
    assert one.stream == equal().stream  # the second card is of the demo's kind


def test_a_drafter_of_another_kind_drafts_differently(equal: Engine, unequal: Engine) -> None:
    """Moving only the drafter to another kind changes drafts, not the stream."""
    forced = ("--expert-cache", str(APART_SLOTS))
    other, same = unequal(*ONE_ZERO, *forced), equal(*ONE_ZERO, *forced)
    assert other.stream == same.stream
    assert other.drafts != same.drafts


def test_a_home_baseline_reproduces_a_moved_model(unequal: Engine) -> None:
    """The baseline on the second card alone, with the variant's slots, gives its stream."""
    moved = unequal(*ONE_ZERO)
    home = unequal("--expert-cache", str(moved.slots), env={"CUDA_VISIBLE_DEVICES": "1"})
    assert home.slots == moved.slots
    assert home.device == 0
    assert home.says(r"^strata generate: GPU 0: Emulated EX-8, compute capability 6\.1$")
    assert home.stream == moved.stream


def test_a_native_pack_opens_more_than_it_estimates(native: Engine) -> None:
    """Sized slots: the final number exceeds the estimate; the estimate forced gives it again."""
    baseline = native()
    assert (baseline.estimate, baseline.slots) == (44, 51)
    for flags in (ZERO_ONE, ONE_ZERO):
        assert (native(*flags).estimate, native(*flags).slots) == (50, 58)
        forced = native(*flags, "--expert-cache", str(baseline.estimate))
        assert forced.slots == baseline.slots
        assert forced.stream == baseline.stream
    assert native(*ZERO_ONE).stream != baseline.stream


def test_a_native_pack_clips_a_forced_size_silently(native: Engine) -> None:
    """What does not fit is cut, without a line, with exit code 0."""
    clipped = native("--expert-cache", "64")
    assert clipped.code == 0
    assert clipped.slots < 64
    assert not clipped.says("(?i)clip|warning|ExpertCache:")


def test_a_canonical_pack_refuses_a_forced_size_that_does_not_fit(equal: Engine) -> None:
    """The ExpertCache line and exit code 1, before any dump."""
    run = equal("--expert-cache", "64")
    assert run.code == 1
    assert run.says(
        r"^strata generate: ExpertCache: 64 slots x 121634816 B = 7\.25 GiB, but only "
        r"5\.83 GiB of VRAM is free \(.*\)\. Lower --expert-cache\.$"
    )
    assert run.out == ""


def test_adaptive_swaps_follow_the_drafts(equal: Engine, unequal: Engine) -> None:
    """With swaps on, equal drafts give equal swaps; other drafts may move the stream."""
    forced = ("--expert-cache", str(BASELINE_SLOTS), "--adapt-every", "4")
    runs = [equal(*forced), equal(*ZERO_ONE, *forced), equal(*ONE_ZERO, *forced)]
    assert len({run.stream for run in runs}) == 1
    (swapped,) = runs[0].found(r"^adaptive tier +(\d+) experts swapped .*\(every 4 rounds, ")
    assert int(swapped) > 0
    assert runs[0].stream != equal().stream
    assert not equal().says("^adaptive tier")
    assert not equal(*forced, "--adapt-swaps", "0").says("^adaptive tier")
    other = unequal(*ONE_ZERO, *forced)
    accepted = r"^accepted per round( .*)$"
    assert other.found(accepted) != runs[0].found(accepted)
    assert other.stream != runs[0].stream


def test_the_share_read_over_the_link_is_another_arithmetic(equal: Engine) -> None:
    """The share of missed experts that the device computes itself changes the stream."""
    none, every = equal("--pcie-frac", "0"), equal("--pcie-frac", "1")
    assert len({none.stream, every.stream, equal().stream}) == 3
    assert not none.says("^pcie experts")
    assert every.says(r"^pcie experts .* \(share 256/256 of the misses\)$")
    assert every.says(r"CPU experts 0\.00 distinct / 0\.00 routed per layer$")


def test_helper_caches_add_residents_on_other_devices(equal: Engine) -> None:
    """Experts on a helper device count as resident and round as that device does."""
    helped = equal("--expert-cache", str(BASELINE_SLOTS), "--expert-cache-device1", "6")
    assert helped.says(r"^strata generate: CUDA1: 6 additional experts, 0\.68 GiB; results")
    assert helped.says("hit path: 50 resident experts")
    assert helped.slots == BASELINE_SLOTS
    assert helped.stream == equal("--expert-cache", str(APART_SLOTS)).stream


def test_a_run_repeats_itself_token_for_token(equal: Engine) -> None:
    """The same command in the same place gives the same stream and drafts."""
    again = equal("--greedy")
    assert again.stream == equal().stream
    assert again.drafts == equal().drafts
    assert len(again.stream) == NEW_TOKENS


def test_the_packs_sizes_are_charged_to_the_right_device(equal: Engine) -> None:
    """What is free after the binding is the card less what was put on it."""
    pack = demo_pack(Layout.CANONICAL)
    run = equal(*ONE_ZERO)
    session = pack.session_mib + 4 * pack.kv_mib_per_1024
    on_main = pack.weights_mib + session + APART_SLOTS * pack.largest_mib
    assert run.says(rf"role device 1 after the binding: {7900 - on_main} MiB free of 8192$")
    assert run.says(rf"role device 0 after the binding: {7900 - 530 - 160} MiB free of 8192$")
