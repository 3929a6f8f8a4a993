"""Whether the log proves that a placement happened."""

from __future__ import annotations

import pytest

from hetero_test.session.effect import effects, worst
from hetero_test.values.reading import Sighting
from hetero_test.values.run import Effect, EffectPart

CONTRADICTED, NOT_SEEN, UNOBSERVABLE, PROVEN = (
    Effect.CONTRADICTED,
    Effect.NOT_SEEN,
    Effect.UNOBSERVABLE,
    Effect.PROVEN,
)


def seen(part: str, value: str | None) -> Sighting:
    """A line that shows a part there."""
    return Sighting(part=part, value=value, line=f"{part} on {value}")


def effect(
    expected: dict[str, str], *sightings: Sighting, picked: dict[str, str] | None = None
) -> dict[str, Effect]:
    """The effect of each part."""
    parts = effects(tuple(expected.items()), sightings, picked or {})
    assert [part.part for part in parts] == list(expected)
    return {part.part: part.effect for part in parts}


def test_a_part_that_is_seen_where_it_should_be_is_proven() -> None:
    """With the place and the line that shows it."""
    assert effects((("main", "0"),), (seen("main", "0"),), {}) == (
        EffectPart(part="main", expected="0", seen="0", effect=PROVEN, line="main on 0"),
    )


def test_a_part_that_is_seen_elsewhere_is_contradicted() -> None:
    """With the place where it is."""
    assert effects((("main", "1"),), (seen("main", "0"),), {}) == (
        EffectPart(part="main", expected="1", seen="0", effect=CONTRADICTED, line="main on 0"),
    )


def test_one_contradiction_outweighs_any_proof() -> None:
    """Two lines that disagree prove nothing."""
    sightings = (seen("main", "0"), seen("main", "1"), seen("main", "0"))

    assert effect({"main": "0"}, *sightings) == {"main": CONTRADICTED}


def test_a_part_that_is_not_seen_is_not_seen() -> None:
    """A line that should be there and is not proves nothing."""
    assert effect({"main": "0", "draft": "1"}, seen("main", "0")) == {
        "main": PROVEN,
        "draft": NOT_SEEN,
    }
    assert effects((("draft", "1"),), (), {}) == (
        EffectPart(part="draft", expected="1", seen=None, effect=NOT_SEEN),
    )


def test_a_part_on_the_main_device_cannot_be_observed() -> None:
    """Nothing announces a drafter that stays where the main model is."""
    assert effect({"main": "1", "draft": "1"}, seen("main", "1"))["draft"] is UNOBSERVABLE
    assert effect({"draft": "0"}, seen("main", "0"))["draft"] is UNOBSERVABLE
    assert effect({"draft": "1"}, seen("main", "0"))["draft"] is NOT_SEEN


def test_the_main_device_is_the_one_that_is_claimed() -> None:
    """A swap of roles claims two devices, even if the engine stays on one."""
    assert effect({"main": "1", "draft": "0"}, seen("main", "0")) == {
        "main": CONTRADICTED,
        "draft": NOT_SEEN,
    }


def test_a_main_model_that_is_not_seen_is_never_unobservable() -> None:
    """Every run tells its main device."""
    assert effect({"main": "0"}) == {"main": NOT_SEEN}


def test_a_part_that_this_mode_never_tells_is_unobservable() -> None:
    """The adapter says so by a sighting without a place."""
    assert effect({"main": "0", "draft": "1"}, seen("draft", None))["draft"] is UNOBSERVABLE
    assert effect({"draft": "1"}, seen("draft", None), seen("draft", "1"))["draft"] is PROVEN


def test_no_trace_is_unobservable() -> None:
    """Whatever else the log shows."""
    assert effect({"chain": "no trace"}, seen("chain", "0")) == {"chain": UNOBSERVABLE}
    assert effects((("chain", "no trace"),), (), {}) == (
        EffectPart(part="chain", expected="no trace", seen=None, effect=UNOBSERVABLE),
    )


def test_what_the_engine_picked_is_what_is_expected() -> None:
    """The announcement is the claim, other lines are the proof."""
    wanted = {"main": "as picked", "draft": "as picked"}
    picked = {"main": "0", "draft": "1"}

    assert effect(wanted, seen("main", "0"), seen("draft", "1"), picked=picked) == {
        "main": PROVEN,
        "draft": PROVEN,
    }
    assert effect(wanted, seen("main", "0"), seen("draft", "2"), picked=picked) == {
        "main": PROVEN,
        "draft": CONTRADICTED,
    }
    assert effect(wanted, seen("main", "0"), picked=picked)["draft"] is NOT_SEEN
    same = {"main": "0", "draft": "0"}
    assert effect(wanted, seen("main", "0"), picked=same)["draft"] is UNOBSERVABLE


def test_without_an_announcement_nothing_is_proven() -> None:
    """An engine that did not say what it picked may have picked nothing."""
    parts = effects((("draft", "as picked"),), (seen("draft", "1"), seen("main", "0")), {})

    assert parts == (EffectPart(part="draft", expected="as picked", seen=None, effect=NOT_SEEN),)


def test_the_place_that_was_picked_is_shown() -> None:
    """The expectation stays in the matrix's words, the place in the engine's."""
    (part,) = effects((("draft", "as picked"),), (seen("draft", "1"),), {"draft": "1"})

    assert (part.expected, part.seen) == ("as picked", "1")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((), UNOBSERVABLE),
        ((PROVEN,), PROVEN),
        ((PROVEN, UNOBSERVABLE), UNOBSERVABLE),
        ((UNOBSERVABLE, NOT_SEEN, PROVEN), NOT_SEEN),
        ((NOT_SEEN, CONTRADICTED, UNOBSERVABLE, PROVEN), CONTRADICTED),
    ],
)
def test_a_variant_is_as_good_as_its_worst_part(
    found: tuple[Effect, ...], expected: Effect
) -> None:
    """A variant that claims nothing cannot be observed."""
    parts = [
        EffectPart(part=str(number), expected="0", seen=None, effect=effect)
        for number, effect in enumerate(found)
    ]

    assert worst(parts) is expected
    assert worst(reversed(parts)) is expected


def test_only_the_main_model_tells_where_a_silent_part_would_be_at_home() -> None:
    """Another part that is seen where this one should be says nothing of it."""
    sightings = (seen("cache", "1"), seen("main", "0"))

    assert effect({"draft": "1"}, *sightings) == {"draft": NOT_SEEN}
    assert effect({"draft": "0"}, *sightings) == {"draft": UNOBSERVABLE}
