"""What can run here, and the cells of the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hetero_test.engines.base import Survey
from hetero_test.errors import ExitCode, NothingToCompareError, UsageError
from hetero_test.plan.matrix import Matrix
from hetero_test.plan.plan import (
    base_flags,
    cell,
    expand,
    plan_variants,
    refuse_owned,
    require_something,
    rounds,
)
from hetero_test.values.record import MatrixFacts, Pinned
from hetero_test.values.run import Device, Purpose
from hetero_test.values.variant import Needs, PlannedVariant, Variant
from tests.judge.factories import RECIPE, planned, probe
from tests.judge.rig import Flags, asked, engine

ROLE = Variant(
    id="1",
    name="main 0, draft 1",
    flags=("--main", "0", "--draft", "1"),
    needs=Needs(devices=(">=", 2), drafter=True),
)
CHAIN = Variant(
    id="7", name="chained", flags=("--chain",), needs=Needs(devices=("==", 1), drafter=True)
)


def matrix(*variants: Variant, owns: tuple[str, ...] = ()) -> Matrix:
    return Matrix(
        engine="values",
        note=None,
        owns=owns,
        baseline=Variant(id="0", name="the user's own"),
        on_device=(),
        variants=variants,
        pinned_flags=(),
        pinned_env=(),
        harmless=(),
        facts=MatrixFacts(name="mine", path="mine.toml", sha256="ab" * 32),
    )


def survey(
    count: int | None = 2, known: frozenset[str] | None = None, *, named: bool = True
) -> Survey:
    devices = tuple(Device(id=str(n), name="card", kind="card") for n in range(count or 0) if named)
    return Survey(devices=devices, device_count=count, how="asked", known_flags=known)


def plan(
    *variants: Variant, rig: Survey | None = None, drafter: bool = True, **options: Any
) -> dict[str, PlannedVariant]:
    """What is planned, by id."""
    found = plan_variants(matrix(*variants), variants, rig or survey(), drafter=drafter, **options)
    return {entry.variant.id: entry for entry in found}


def why_not(variant: Variant, **options: Any) -> tuple[str | None, bool, bool]:
    """(reason, refused, few devices) of one variant."""
    found = plan(variant, **options)[variant.id]
    return found.why_not, found.refused, found.few_devices


# ---- needs --------------------------------------------------------------------------------


def test_the_baseline_comes_first_and_always_runs() -> None:
    """Variant 0 is the user's own command."""
    found = list(plan(ROLE, rig=survey(1)).values())

    assert found[0] == PlannedVariant(variant=matrix().baseline, planned=True)


def test_what_can_run_is_planned() -> None:
    """Two devices and a drafter: the roles run, the variant for one card does not."""
    found = plan(ROLE, CHAIN)

    assert (found["1"].planned, found["7"].planned) == (True, False)
    assert plan(ROLE, CHAIN, rig=survey(1))["7"].planned


@pytest.mark.parametrize(
    ("needs", "count", "told"),
    [
        ((">=", 2), 1, "needs at least 2 devices, 1 found"),
        (("==", 1), 2, "needs 1 device, 2 found"),
        (("<=", 1), 2, "needs at most 1 device, 2 found"),
        ((">=", 1), 0, "needs at least 1 device, 0 found"),
    ],
)
def test_the_number_of_devices_rules_a_variant_out(
    needs: tuple[str, int], count: int, told: str
) -> None:
    """Too few or too many devices: SKIPPED with the reason, which strictness excuses."""
    variant = replace(ROLE, needs=Needs(devices=needs))

    assert why_not(variant, rig=survey(count)) == (told, False, True)


@pytest.mark.parametrize(
    ("needs", "count"), [((">=", 2), 2), ((">=", 2), 3), (("==", 1), 1), (("<=", 2), 1)]
)
def test_enough_devices_are_enough(needs: tuple[str, int], count: int) -> None:
    """At least, exactly, at most."""
    assert plan(replace(ROLE, needs=Needs(devices=needs)), rig=survey(count))["1"].planned


def test_an_unknown_number_of_devices_rules_out_what_counts_them() -> None:
    """A fact may be missing, never guessed; strictness does not excuse it."""
    assert why_not(ROLE, rig=survey(None)) == ("the number of devices is unknown", False, False)
    assert plan(replace(ROLE, needs=Needs()), rig=survey(None))["1"].planned


@pytest.mark.parametrize(
    ("needs", "drafter", "told"),
    [
        (True, False, "needs a drafter"),
        (False, True, "is for a model without a drafter"),
        (True, True, None),
        (False, False, None),
        (None, True, None),
        (None, False, None),
    ],
)
def test_a_drafter_is_there_or_not(needs: bool | None, told: str | None, *, drafter: bool) -> None:
    """The model flags say whether there is a drafter."""
    variant = replace(ROLE, needs=Needs(drafter=needs))

    assert why_not(variant, drafter=drafter) == (told, False, False)


@pytest.mark.parametrize(
    ("needs", "experts", "told"),
    [
        (True, False, "needs a model with experts"),
        (False, True, "needs a model without experts"),
        (True, True, None),
        (True, None, None),
        (False, None, None),
        (None, False, None),
    ],
)
def test_a_mixture_of_experts_is_one_or_not(
    needs: bool | None, experts: bool | None, told: str | None
) -> None:
    """What cannot be told rules nothing out: the engine will say."""
    variant = replace(ROLE, needs=Needs(experts=needs))

    assert why_not(variant, experts=experts) == (told, False, False)


# ---- flags that the engine does not know --------------------------------------------------


def test_flags_that_the_help_does_not_list_refuse_a_variant() -> None:
    """REFUSED without being run."""
    assert why_not(ROLE, rig=survey(2, frozenset({"--main"}))) == (
        "this engine's help does not list --draft",
        True,
        False,
    )
    assert plan(ROLE, rig=survey(2, frozenset({"--main", "--draft"})))["1"].planned
    assert plan(ROLE, rig=survey(2, None))["1"].planned


def test_values_are_no_flags() -> None:
    """A negative number, or the value behind an equals sign, is not looked up."""
    variant = replace(ROLE, flags=("--main=1", "--draft", "-1", "--split", "-1,1"))
    known = frozenset({"--main", "--draft", "--split"})

    assert plan(variant, rig=survey(2, known))["1"].planned


# ---- sizes --------------------------------------------------------------------------------


def test_what_cannot_fit_from_sizes_alone_is_not_run() -> None:
    """It is told as NO_MEMORY, and strictness does not excuse it."""
    told = {"1": "it needs 20 GiB, card 0 has 11"}

    found = plan(ROLE, replace(ROLE, id="2"), cannot_fit=lambda variant: told.get(variant.id))

    assert found["1"] == PlannedVariant(
        variant=ROLE, planned=False, why_not="NO_MEMORY: it needs 20 GiB, card 0 has 11"
    )
    assert found["2"].planned


def test_a_variant_that_cannot_run_anyway_keeps_its_reason() -> None:
    """Sizes are asked about only for what could run."""
    assert why_not(CHAIN, cannot_fit=lambda _: "too large")[0] == "needs 1 device, 2 found"


# ---- --only and --skip --------------------------------------------------------------------


def test_only_and_skip_choose_among_what_can_run() -> None:
    """What cannot run keeps its own reason."""
    two = replace(ROLE, id="2")
    only = plan(ROLE, two, CHAIN, only=("1",))
    skip = plan(ROLE, two, CHAIN, skip=("1", "7"))

    assert {name: entry.why_not for name, entry in only.items()} == {
        "0": None,
        "1": None,
        "2": "left out by --only",
        "7": "needs 1 device, 2 found",
    }
    assert (skip["1"].why_not, skip["1"].planned) == ("left out by --skip", False)
    assert (only["2"].planned, skip["2"].planned) == (False, True)
    assert plan(ROLE, only=("1",), skip=("1",))["1"].why_not == "left out by --skip"


@pytest.mark.parametrize("option", ["only", "skip"])
def test_a_variant_of_a_device_where_there_is_none_misses_the_device(option: str) -> None:
    """The name is right for a machine that has one, so that nothing is said of names."""
    none = Survey(devices=(), device_count=0, how="x --list-devices", known_flags=None)
    alone = replace(ROLE, id="alone")
    chosen: dict[str, Any] = {option: ("alone-CUDA1",)}
    with pytest.raises(NothingToCompareError, match="variant alone is made for each device"):
        plan(alone, rig=none, **chosen)
    with pytest.raises(UsageError, match="no such variant"):
        plan(alone, **chosen)
    with pytest.raises(UsageError, match="no such variant"):
        plan(ROLE, rig=none, **chosen)


@pytest.mark.parametrize("option", ["only", "skip"])
def test_a_variant_that_is_not_there_is_a_users_mistake(option: str) -> None:
    """With what is there, and the likeliest one."""
    chosen: dict[str, Any] = {option: ("spilt",)}
    with pytest.raises(UsageError) as caught:
        plan(replace(ROLE, id="split"), **chosen)

    assert f"--{option} spilt: no such variant" in str(caught.value)
    assert "split" in str(caught.value)
    assert "variants here: 0, split" in str(caught.value)


def test_the_baseline_cannot_be_skipped() -> None:
    """Nothing could be compared."""
    with pytest.raises(UsageError, match="the baseline cannot be skipped"):
        plan(ROLE, skip=("0",))


# ---- ids ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["1f", "1s", "0s", "0w", "0-home-1", "1p", "1c", "0p", "1fp", "0-home-1c", "0s-1"]
)
def test_an_id_that_extra_runs_need_is_refused(name: str) -> None:
    """Runs of a variant are never taken for the anchor of another one."""
    with pytest.raises(UsageError, match=f"calls a variant {name}, which is the id of another"):
        plan(ROLE, replace(ROLE, id=name))


@pytest.mark.parametrize("name", ["f", "2f", "2s", "1w", "home-1", "1x"])
def test_an_id_that_only_looks_like_one_is_not(name: str) -> None:
    """An anchor needs the variant that it is of."""
    assert name in plan(ROLE, replace(ROLE, id=name))


def test_two_variants_of_one_id_are_refused() -> None:
    """Once devices are filled in, two variants may have come to one id."""
    with pytest.raises(UsageError, match="gives two variants the id 1"):
        plan(ROLE, ROLE)


# ---- one variant for each device ----------------------------------------------------------

EACH = Variant(
    id="on",
    name="on {device}",
    flags=("--dev", "{device}"),
    env=(("MASK", "{device}"),),
    effect=(("main", "{device}"),),
    for_each="device",
)


def expanded(variant: Variant, rig: Survey) -> Sequence[Variant]:
    return expand(matrix(variant), rig, engine(), ())


def test_a_variant_is_repeated_for_each_device() -> None:
    """One file serves two cards or four; the device is filled in everywhere."""
    one, two = expanded(EACH, survey(2))

    assert (one.id, two.id) == ("on-0", "on-1")
    assert (two.name, two.flags, two.env, two.effect) == (
        "on 1",
        ("--dev", "1"),
        (("MASK", "1"),),
        (("main", "1"),),
    )


def test_a_variant_is_repeated_for_each_other_device() -> None:
    """All but the first."""
    assert [v.id for v in expanded(replace(EACH, for_each="other_device"), survey(3))] == [
        "on-1",
        "on-2",
    ]


def test_a_variant_for_each_of_no_devices_stays_in_the_plan_with_the_reason() -> None:
    """Nothing vanishes: the report says why it did not run."""
    other = replace(EACH, for_each="other_device")

    (left,) = expanded(other, survey(1))

    assert why_not(left, rig=survey(1)) == (
        "this rig has no device",
        False,
        True,
    )
    (unnamed,) = expanded(other, survey(2, named=False))
    assert why_not(unnamed, rig=survey(2, named=False))[2] is False
    assert why_not(unnamed, rig=survey(None))[2] is False


@pytest.mark.parametrize(
    "change",
    [
        {"flags": ("--dev", "{other}")},
        {"env": (("MASK", "{other}"),)},
        {"effect": (("main", "{other}"),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_second_device_that_is_not_there_rules_out_what_names_it(change: dict[str, Any]) -> None:
    """In flags, environment or effect; with a second device it is filled in."""
    one = replace(ROLE, needs=Needs(), **change)

    (left,) = expanded(one, survey(1))
    (filled,) = expanded(one, survey(2))

    assert why_not(left, rig=survey(1))[0] == "this rig has no second device"
    assert plan(filled)["1"].planned


def test_a_name_in_braces_that_stands_for_nothing_stays_as_it_is() -> None:
    """A pattern such as x{2,3} is no placeholder."""
    (kept,) = expanded(replace(ROLE, flags=("-ot", r"blk\.\d{1,2}=CPU")), survey())

    assert kept.flags == ("-ot", r"blk\.\d{1,2}=CPU")
    assert plan(replace(kept, needs=Needs()))["1"].planned


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("split over {device} and {other}", "split over 0 and the second device"),
        ("experts in {other_buffer}", "experts in the second device's buffer"),
        ("{half_layers} of them", "? of them"),
    ],
)
def test_a_name_says_in_words_what_is_not_there(name: str, told: str) -> None:
    """No placeholder is left in what a report shows."""
    each = replace(EACH, name=name, flags=("--dev", "{other}"))

    (left,) = expanded(each, survey(1))

    assert left.name == told
    assert why_not(left, rig=survey(1))[0] == "this rig has no second device"


def test_what_is_unknown_of_the_model_is_not_the_rigs_fault() -> None:
    """A number of layers that no file tells is unknown; no device is missing."""
    (left,) = expanded(replace(EACH, flags=("-ngl", "{half_layers}"), env=()), survey(1))

    assert why_not(left, rig=survey(1))[0] == "unknown here: half layers"


@pytest.mark.parametrize("option", ["only", "skip"])
def test_the_id_of_the_file_stands_for_all_that_is_made_of_it(option: str) -> None:
    """``--only on`` are ``on-0`` and ``on-1``; without a device it is the variant that has none."""
    for count, made in ((2, {"on-0", "on-1"}), (0, {"on"})):
        variants = (*expanded(EACH, survey(count)), ROLE)
        chosen: dict[str, Any] = {option: ("on",)}
        found = plan_variants(matrix(EACH, ROLE), variants, survey(count), drafter=True, **chosen)
        left_out = {e.variant.id for e in found if e.why_not == f"left out by --{option}"}
        expected = {"only": {"1"}, "skip": made}[option]
        assert left_out == (expected if count else set())


# ---- flags of the user's ------------------------------------------------------------------


@pytest.mark.parametrize("given", [("--main", "1"), ("--main=1",)])
def test_flags_that_the_matrix_owns_are_refused(given: tuple[str, ...]) -> None:
    """Exit 2, with the flag and what to do."""
    with pytest.raises(UsageError) as caught:
        refuse_owned(given, matrix(owns=("--main", "--seed")))

    assert caught.value.exit_code is ExitCode.USAGE
    assert "--main after --: the matrix mine sets this flag itself" in str(caught.value)


def test_all_owned_flags_are_named_once() -> None:
    """Everything that is wrong at once."""
    with pytest.raises(UsageError, match="--main, --seed after --: the matrix mine sets these"):
        refuse_owned(("--main", "--seed", "--main"), matrix(owns=("--main", "--seed")))


def test_other_flags_are_the_users() -> None:
    """The expert cache among them; beside one that is refused they are not complained about."""
    given, owning = ("--expert-cache", "4000", "main"), matrix(owns=("--main",))
    refuse_owned(given, owning)
    with pytest.raises(UsageError) as caught:
        refuse_owned((*given, "--main"), owning)

    assert str(caught.value).startswith("--main after --: ")


# ---- nothing to compare -------------------------------------------------------------------


def nothing(*entries: PlannedVariant, rig: Survey | None = None) -> NothingToCompareError:
    with pytest.raises(NothingToCompareError) as caught:
        require_something((planned("0"), *entries), engine(), rig or survey())
    assert caught.value.exit_code is ExitCode.NOTHING_TO_COMPARE
    return caught.value


def no(why: str, **more: Any) -> PlannedVariant:
    return planned("1", planned=False, why_not=why, **more)


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        (no("needs a drafter"), "give a drafter after -- (--draft DIR)"),
        (no("the number of devices is unknown"), "say how many devices there are with --devices N"),
        (
            no("this engine's help does not list --x", refused=True),
            "build an engine that has the flags (this engine's help does not list --x)",
        ),
        (no("left out by --skip"), "name variants that can run here with --only"),
    ],
)
def test_a_plan_without_a_placement_is_refused_before_any_launch(
    entry: PlannedVariant, hint: str
) -> None:
    """A plan without a placement ends with exit code 3 and names what is missing."""
    error = nothing(entry)

    assert f"no variant but the baseline can run here ({entry.why_not})" in str(error)
    assert error.hint == hint


def test_one_variant_that_was_left_out_is_enough_to_say_so() -> None:
    """Not only when all were."""
    error = nothing(no("left out by --skip"), no("needs a drafter"))

    assert error.hint == (
        "give a drafter after -- (--draft DIR); name variants that can run here with --only"
    )


def test_all_that_is_missing_is_named() -> None:
    """A drafter and the number of devices; each reason once."""
    error = nothing(
        no("needs a drafter"), no("needs a drafter"), no("the number of devices is unknown")
    )

    assert str(error).count("needs a drafter") == 1
    assert error.hint == (
        "give a drafter after -- (--draft DIR); say how many devices there are with --devices N"
    )
    assert nothing(no("needs a model with experts")).hint is None


def test_advice_is_what_can_help() -> None:
    """Without a device a drafter helps nobody who needs both; one who needs it alone is helped."""
    none = survey(0)
    lacking = plan(replace(ROLE, needs=Needs(drafter=True, devices=(">=", 1))), drafter=False)["1"]
    assert lacking.why_not == "needs a drafter"
    assert nothing(lacking).hint == "give a drafter after -- (--draft DIR)"

    hint = nothing(lacking, rig=none).hint

    assert hint is not None
    assert hint.startswith("no device was found (asked): use an engine that is built for")
    assert "drafter" not in hint


def test_one_placement_is_something() -> None:
    """Then there is something to compare; without it the same plan is refused."""
    entries = (planned("0"), no("needs a drafter"), planned("2"))
    require_something(entries, engine(), survey())

    assert nothing(*entries[1:-1]).hint == "give a drafter after -- (--draft DIR)"


# ---- cells --------------------------------------------------------------------------------


def test_a_cell_has_the_users_flags_and_then_the_variants() -> None:
    """The baseline is the user's own command, untouched."""
    base, one = rounds(asked(1, model_flags=("--pack", "my pack"), repeats=1), engine())

    assert base.flags == ("--pack", "my pack")
    assert one.flags == ("--pack", "my pack", "--place", "1")
    assert (one.variant, one.of, one.probe, one.repeat) == ("1", "1", "default", 1)
    assert one.purpose is Purpose.ROUND


def test_the_baselines_flags_are_combined_with_nothing() -> None:
    """An engine that takes the user's own placement away for a variant leaves it here."""

    class Taking(Flags):
        def combine(self, flags: Sequence[str], variant_flags: Sequence[str]) -> tuple[str, ...]:
            return (*flags[:1], *variant_flags)

    base, one = rounds(asked(1, repeats=1), Taking())  # type: ignore[arg-type]

    assert base.flags == ("--pack", "p")
    assert one.flags == ("--pack", "--place", "1")


def test_a_cells_environment_is_the_recorded_masks_and_the_variants() -> None:
    """Later ones win where a name is twice."""
    manifest = asked(1, env=(("CUDA_VISIBLE_DEVICES", "1"),), repeats=1)
    entry = planned("1")
    entry = replace(entry, variant=replace(entry.variant, env=(("A", "b"),)))
    manifest = replace(manifest, variants=(manifest.variants[0], entry))
    base, one = rounds(manifest, engine())

    assert base.env == (("CUDA_VISIBLE_DEVICES", "1"),)
    assert one.env == (("CUDA_VISIBLE_DEVICES", "1"), ("A", "b"))


def test_the_pinned_recipe_comes_after_the_users_flags_and_before_the_variants() -> None:
    """Of a repeated flag the last one counts, so the recipe wins over the user's."""
    manifest = asked(1, pinned=replace(RECIPE, asked=True), repeats=1)
    one = rounds(manifest, engine())[1]

    assert one.flags == ("--pack", "p", "--adapt-every", "0", "--place", "1")
    assert one.env == (("STRATA_IQ_MT_MIN", "1"),)
    assert base_flags(manifest, pinned=False) == ("--pack", "p")


def test_without_pinned_the_recipe_is_left_out() -> None:
    """It is there for re-checks only."""
    base, _ = rounds(asked(1, repeats=1), engine())

    assert base.flags == ("--pack", "p")
    assert base.env == ()


def test_a_cell_may_be_pinned_or_not_against_what_was_asked() -> None:
    """A re-check is pinned although the matrix is not."""
    manifest = asked(1)
    made = cell(
        manifest,
        engine(),
        manifest.variants[1].variant,
        ("1p", "default", 1),
        order=9,
        purpose=Purpose.RECHECK,
        pinned=True,
    )

    assert made.flags == ("--pack", "p", "--adapt-every", "0", "--place", "1")
    assert (made.variant, made.of, made.order) == ("1p", "1", 9)


@pytest.mark.parametrize(
    ("changed", "first"),
    [({}, 0), ({"warmup": 2}, 2), ({"warmup": 1, "pinned": Pinned(asked=True)}, 4)],
    ids=str,
)
def test_orders_go_on_behind_the_warm_ups(changed: dict[str, Any], first: int) -> None:
    """The planned order has no number twice."""
    cells = rounds(asked(2, probes=(probe("a"), probe("b")), **changed), engine())

    assert [each.order for each in cells] == list(range(first, first + 12))
