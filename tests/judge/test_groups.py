"""Which runs may be compared, and what ties them to the baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hetero_test.judge.groups import (
    Bond,
    Group,
    comparable,
    first_baseline,
    groups,
    strayed,
)
from hetero_test.values.reading import Residency
from hetero_test.values.record import Record
from hetero_test.values.run import Purpose, RunState
from hetero_test.values.run_ids import extra_ids
from tests.judge.factories import changed, context, planned, record, residency, run


def bonds(made: Record) -> dict[str, Bond]:
    """The bond of each group, by its first variant and slots."""
    return {f"{g.first}@{g.residency.fact('slots')}": g.bond for g in groups(made, "default")}


def members(group: Group) -> list[str]:
    return [f"{each.variant}{each.repeat}" for each in group.runs]


def test_runs_of_one_residency_are_a_group() -> None:
    """Equal residency makes runs comparable: final slots and main kind decide, nothing else."""
    found = groups(record("0: A A", "1: B@5011 A", "2: A B@5011"), "default")

    assert [members(group) for group in found] == [["01", "02", "12", "21"], ["11", "22"]]


@pytest.mark.parametrize(
    "facts",
    [
        (("slots", 4400), ("resident", 24576)),
        (("slots", 4400), ("stage 1", "layers 24-47, 12288 slots on cuda 3060")),
        (("slots", 4400), ("helper 1", "3600 experts on cuda 3060")),
    ],
    ids=lambda facts: str(facts[-1][0]),
)
def test_every_fact_of_the_key_counts(facts: tuple[tuple[str, str | int], ...]) -> None:
    """Resident pairs, layer-split stages and helper caches are part of the residency."""
    made = changed(record("0: A A", "1: A A"), "1", residency=replace(residency(), facts=facts))

    assert bonds(made) == {"0@4400": Bond.BASELINE, "1@4400": Bond.ANCHOR}


@pytest.mark.parametrize(
    "beside",
    [{"forced_cache": 4400}, {"pcie_share": 0.26}, {"swaps": 312}, {"lent_slots": 210}],
    ids=lambda beside: next(iter(beside)),
)
def test_what_is_recorded_beside_the_key_does_not_count(beside: dict[str, object]) -> None:
    """Forced or auto, PCIe share, swaps and lent slots are no part of equality."""
    made = context(record("0: A A", "1: A A"), "1", **beside)

    assert bonds(made) == {"0@4400": Bond.BASELINE}


def test_two_cards_of_one_model_are_one_kind_two_models_are_two() -> None:
    """The kind of the main device is part of the key: a 3090 and a 3060 are two."""
    made = record("0: A A", "1: A~RTX A~RTX")

    assert bonds(made) == {"0@4400": Bond.BASELINE, "1@4400": Bond.HOME}


def test_an_unknown_residency_is_equal_to_nothing() -> None:
    """A run whose residency is unknown is in no group, not even with another unknown one."""
    unknown = residency("?")

    assert groups(record("0: A@? A@?", "1: A@? A@?"), "default") == ()
    assert not unknown.equals(unknown)


@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.OK])
def test_only_ok_runs_are_grouped(state: RunState) -> None:
    """A run is usable only if it is OK, whatever it printed."""
    made = record("0: A A", f"1: A!{state} A")

    assert [members(group) for group in groups(made, "default")] == [["01", "02", "12"]]


@pytest.mark.parametrize("ids", [None, ()])
def test_a_run_without_a_token_is_no_evidence(ids: tuple[int, ...] | None) -> None:
    """No stream, or an empty one, cannot be compared even if a stored state says OK."""
    assert not comparable(run("1", stream=ids))
    assert comparable(run("1", stream=(7,)))


def test_only_runs_of_the_rounds_are_grouped() -> None:
    """Anchors, pairs and home baselines tie groups together; they are members of none."""
    made = record("0: A A", "1: B@5011 B@5011", "1f: A A", "0s: A A", "1s: A A", "0-home-1: A A")

    assert [members(group) for group in groups(made, "default")] == [["01", "02"], ["11", "12"]]


def test_a_variant_that_claims_nothing_is_in_no_group() -> None:
    """A placement that is not claimed to be exact neither serves as a reference nor needs one."""
    made = record(
        "0: A A",
        "1: B@5011 B@5011",
        "2: B@5011 B@5011",
        variants=(planned("0"), planned("1", claims=False), planned("2")),
    )

    assert [members(group) for group in groups(made, "default")] == [["01", "02"], ["21", "22"]]


def test_a_variant_that_is_not_planned_is_in_no_group() -> None:
    """What was not to run has no verdict of its own, so nothing may be held against it."""
    left_out = planned("1", planned=False, why_not="left out by --skip")
    entries = (planned("0"), left_out, planned("2"))
    made = record("0: A A", "1: B@5011 B@5011", "2: B@5011 B@5011", variants=entries)

    assert [members(group) for group in groups(made, "default")] == [["01", "02"], ["21", "22"]]


def test_prompts_are_grouped_apart() -> None:
    """Runs of another prompt are never compared: each prompt has groups of its own."""
    made = record("0: A A", "1: A A")
    other = changed(made, "1", probe="long")
    assert [members(group) for group in groups(other, "default")] == [["01", "02"]]
    assert [members(group) for group in groups(other, "long")] == [["11", "12"]]


def test_the_first_variant_is_the_first_in_matrix_order_not_in_order_of_running() -> None:
    """A group's first usable variant is told by the matrix, not by which ran first."""
    made = record("0: A A", "1: B@5011!CRASHED B@5011!CRASHED", "2: B@5011 B@5011", "3: B@5011 -")
    backwards = replace(made, runs=made.runs[::-1])

    assert groups(made, "default")[1].first == "2"
    assert groups(backwards, "default") == groups(made, "default")


# ---- bonds --------------------------------------------------------------------------------


def test_a_group_with_the_baseline_in_it_needs_no_tie() -> None:
    """Only a group that lacks the baseline gets an anchor."""
    (group,) = groups(record("0: A A", "1: A A"), "default")

    assert (group.bond, group.tie) == (Bond.BASELINE, "")


def test_every_group_without_the_baseline_gets_an_anchor_of_its_first_variant() -> None:
    """Every group that lacks the baseline, not only variant 1's, gets an anchor."""
    made = record("0: A A", "1: A A", "2: B@5011 B@5011", "3: C@4800 C@4800", "4: B@5011 B@5011")

    assert [(group.first, group.tie) for group in groups(made, "default")] == [
        ("0", ""),
        ("2", "2f"),
        ("3", "3f"),
    ]


def test_at_most_three_groups_are_anchored() -> None:
    """Beyond three (auto sizes that move between repeats) a group has no tie."""
    made = record("0: A A", *(f"{n}: B@500{n} B@500{n}" for n in "12345"))

    assert list(bonds(made).values()) == [
        Bond.BASELINE,
        *[Bond.ANCHOR] * 3,
        *[Bond.EXCESS] * 2,
    ]
    assert groups(made, "default")[-1].tie == ""


def test_two_groups_with_one_first_variant_share_an_anchor() -> None:
    """A variant in several residencies is tied once, and counts once among the three."""
    lines = ("1: B@5001 C@5002", "2: B@5003 C@5004", "3: B@5005 C@5006", "4: B@5007 C@5008")
    made = record("0: A A", *lines)

    found = groups(made, "default")

    assert [group.tie for group in found[1:7]] == ["1f", "1f", "2f", "2f", "3f", "3f"]
    assert {group.bond for group in found[7:]} == {Bond.EXCESS}


def test_a_baseline_in_several_residencies_is_tied_by_its_first_usable_run() -> None:
    """The first usable repeat of the baseline is the one that anchors are to match."""
    made = record("0: A@4100!CRASHED A@4200 A@4300", "1: B@5011 B@5011 B@5011")

    first = first_baseline(made, "default")

    assert first is not None
    assert (first.repeat, first.residency) == (2, residency(4200))
    assert [group.bond for group in groups(made, "default")] == [
        Bond.BASELINE,
        Bond.BASELINE,
        Bond.ANCHOR,
    ]


@pytest.mark.parametrize("dead", ["0: !CRASHED !CRASHED", "0: A@? A@?", "0: - -"])
def test_without_a_baseline_nothing_is_tied(dead: str) -> None:
    """A baseline that is dead, unknown or missing ties nothing."""
    made = record(dead, "1: A A", "2: B@5011 B@5011")

    assert set(bonds(made).values()) == {Bond.NONE}


def test_a_stored_run_of_another_purpose_is_no_baseline() -> None:
    """A run under the baseline's id counts as the baseline only if it is of the rounds."""
    made = changed(record("0: A A", "1: A A"), "0", purpose=Purpose.WARMUP)

    assert first_baseline(made, "default") is None


# ---- home baselines -----------------------------------------------------------------------


def test_a_main_model_that_moved_to_another_kind_is_tied_at_its_new_home() -> None:
    """Its reference is variant 0 on that device alone; an anchor there could never be equal."""
    group = groups(record("0: A A", "2: C@5011~RTX C@5011~RTX"), "default")[1]

    assert (group.bond, group.tie) == (Bond.HOME, "0-home-2")


def test_homes_do_not_use_up_the_three_anchors() -> None:
    """The limit is against sizes that move; another kind of device is no such case."""
    homes = (f"{n}: C@500{n}~RTX C@500{n}~RTX" for n in "1234")
    made = record("0: A A", *homes, "5: B@5011 B@5011")

    assert list(bonds(made).values()) == [Bond.BASELINE, *[Bond.HOME] * 4, Bond.ANCHOR]


def test_a_home_behind_three_anchors_is_no_excess() -> None:
    """In whatever order the groups come."""
    made = record("0: A A", *(f"{n}: B@500{n} B@500{n}" for n in "123"), "4: C~RTX C~RTX")

    assert list(bonds(made).values()) == [Bond.BASELINE, *[Bond.ANCHOR] * 3, Bond.HOME]


@pytest.mark.parametrize(
    ("moved_to", "on_device"),
    [(None, True), ("0", True), ("1", False)],
    ids=["device unknown", "not moved", "matrix has no mask"],
)
def test_a_home_baseline_is_planned_only_when_the_log_shows_the_move(
    moved_to: str | None, *, on_device: bool
) -> None:
    """Where no log shows the move, or the matrix cannot mask devices, kinds are not claimed."""
    made = record("0: A A", "2: C~RTX C~RTX", **({} if on_device else {"on_device": ()}))
    made = context(made, "2", main_device=moved_to)

    assert list(bonds(made).values()) == [Bond.BASELINE, Bond.UNCLAIMED]


# ---- strays and names ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "stray"),
    [
        ("A", False),
        ("A@4100", True),
        ("A@4400~RTX", True),
        ("A@?", False),
        ("A@4100!TRUNCATED", True),
        ("A@4100!DEGENERATE", True),
        ("A@4100!CRASHED", False),
    ],
)
def test_an_anchor_strays_when_its_log_shows_another_residency(word: str, *, stray: bool) -> None:
    """An unknown residency is not another one, and that of a crashed run is not final."""
    assert strayed(run("1f", word=word), run("0")) is stray


def test_extra_runs_have_ids_of_their_own() -> None:
    """Each extra run is told apart from every variant and from each other."""
    assert extra_ids("0", ["0", "1"]) == {
        *("0f", "1f", "0s", "1s", "0w"),
        *("0-home-0", "0-home-1", "0s-0", "0s-1"),
    }


def test_an_unknown_residency_says_why() -> None:
    """What is not known is not compared, and its reason is kept."""
    assert Residency(unknown="no line tells").known is False
