"""How a residency is forced, and which size two runs can share."""

from __future__ import annotations

import pytest

from hetero_test.engines.strata.adapter import Strata
from hetero_test.values.reading import CacheSize, Residency
from hetero_test.values.run import Purpose, Run, RunState
from tests.runs import made

CARD = "CUDA GTX 1080 Ti"


def run(
    slots: int | None,
    *,
    native: bool | None = False,
    forced: int | None = None,
    auto: int | None = None,
    shrunk: bool = False,
    kind: str = CARD,
) -> Run:
    """A run with this cache."""
    facts = () if slots is None else (("slots", slots),)
    return made(
        variant="0",
        of="0",
        probe="default",
        repeat=1,
        order=0,
        purpose=Purpose.ROUND,
        state=RunState.OK,
        residency=Residency(
            facts=facts, main_kind=kind, unknown="no line tells" if slots is None else None
        ),
        cache=CacheSize(forced=forced, opened=slots),
        context={
            "native_pack": native,
            "auto_slots": auto,
            "cache_shrunk": shrunk,
        },
    )


def force(wanted: Run, *flags: str) -> tuple[str, ...] | None:
    """The adapter's flags for that residency."""
    return Strata().force(flags, wanted)


def share(baseline: Run, got: Run, *flags: str) -> tuple[str, ...] | None:
    """The adapter's flags with a common size."""
    return Strata().share(flags, baseline, got)


def test_a_canonical_pack_is_forced_by_its_final_count() -> None:
    """There a size is a number of slots, whatever the auto-sizer estimated."""
    assert force(run(4400, auto=4390), "--pack", "p") == ("--pack", "p", "--expert-cache", "4400")


def test_a_native_pack_is_forced_by_its_estimate() -> None:
    """There a size is a budget of largest experts: 10581 of them hold 12288."""
    assert force(run(12288, native=True, auto=10581)) == ("--expert-cache", "10581")


def test_a_native_pack_that_was_forced_is_forced_alike() -> None:
    """The user's own size yields what it yielded."""
    assert force(run(9000, native=True, forced=8000, auto=10581)) == ("--expert-cache", "8000")


@pytest.mark.parametrize(
    "given",
    [
        ("--expert-cache", "auto"),
        ("--expert-cache", "9"),
        ("--expert-cache", "auto", "--expert-cache", "9"),
    ],
)
def test_a_size_that_was_given_is_replaced(given: tuple[str, ...]) -> None:
    """A cache size is never passed twice: the forced one replaces the given one."""
    flags = force(run(44), "-a", *given, "-b")

    assert flags == ("-a", "-b", "--expert-cache", "44")


def test_helper_caches_are_kept() -> None:
    """Only the main device's cache is forced."""
    helpers = ("--expert-cache-device1", "3600", "--expert-cache-device2", "9")

    assert force(run(44), *helpers) == (*helpers, "--expert-cache", "44")


@pytest.mark.parametrize(
    "wanted",
    [
        run(None),
        run(44, native=None),
        run(44, native=None, auto=40),
        run(44, native=True),
        run(44, native=True, auto=40, shrunk=True),
        run(44, native=True, auto=0),
    ],
)
def test_what_cannot_be_known_is_not_forced(wanted: Run) -> None:
    """Without a known size behind a residency nothing is guessed."""
    assert force(wanted) is None
    assert share(wanted, run(40, native=wanted.reading.context["native_pack"] is True)) is None


def test_a_canonical_pack_that_had_to_shrink_is_forced_by_what_was_left() -> None:
    """Its final count is a size all the same."""
    assert force(run(44, auto=60, shrunk=True)) == ("--expert-cache", "44")


def test_no_cache_is_forced_only_where_zero_means_none() -> None:
    """With a profile, a size of 0 means automatic."""
    assert force(run(0)) == ("--expert-cache", "0")
    assert force(run(0), "--expert-profile", "p") is None


def test_a_canonical_pair_shares_the_smaller_count() -> None:
    """Both cards can hold it."""
    assert share(run(4400), run(4000, forced=4400)) == ("--expert-cache", "4000")
    assert share(run(4400), run(5011, forced=5011)) == ("--expert-cache", "4400")


def test_a_native_pair_shares_a_budget_in_proportion() -> None:
    """A clipped budget is cut by the share of slots that came of it."""
    baseline = run(12288, native=True, auto=10581)
    clipped = run(11000, native=True, forced=10581)

    assert share(baseline, clipped, "-a") == ("-a", "--expert-cache", str(10581 * 11000 // 12288))


def test_a_native_pair_never_shares_more_than_was_forced() -> None:
    """A budget that opened more than was wanted is not raised further."""
    baseline = run(12288, native=True, auto=10581)

    assert share(baseline, run(12300, native=True, forced=10581)) == ("--expert-cache", "10581")


def test_a_native_baseline_shares_its_own_size_where_none_was_forced() -> None:
    """An anchor whose flags tell no size was forced to the baseline's."""
    baseline = run(100, native=True, auto=80)

    assert share(baseline, run(90, native=True)) == ("--expert-cache", "72")


@pytest.mark.parametrize(("got", "shared"), [(50, "50"), (49, None)])
def test_less_than_half_is_no_shared_size(got: int, shared: str | None) -> None:
    """So little would test another machine than the user's."""
    expected = None if shared is None else ("--expert-cache", shared)

    assert share(run(100), run(got, forced=100)) == expected


@pytest.mark.parametrize(("got", "shared"), [(50, "40"), (49, None)])
def test_less_than_half_of_a_budget_neither(got: int, shared: str | None) -> None:
    """The bound is on the size that is forced."""
    expected = None if shared is None else ("--expert-cache", shared)
    baseline = run(100, native=True, auto=80)

    assert share(baseline, run(got, native=True, forced=80)) == expected


@pytest.mark.parametrize(
    ("baseline", "got"),
    [
        (run(100), run(None)),
        (run(None), run(100)),
        (run(100), run(0)),
        (run(0), run(100)),
        (run(100), run(90, kind="CUDA RTX 3060")),
    ],
)
def test_what_no_size_can_make_equal_is_not_shared(baseline: Run, got: Run) -> None:
    """An unknown or empty cache, or another kind of card, is not mended by a number."""
    assert share(baseline, got) is None


def test_the_size_of_a_run_is_its_final_count() -> None:
    """What is opened, not what was asked."""
    assert Strata().size(run(4400, forced=5000)) == 4400
    assert Strata().size(run(None)) is None
