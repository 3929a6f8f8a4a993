"""Each command is launched under one name."""

from __future__ import annotations

from hetero_test.plan.copies import without_twins
from hetero_test.values.variant import PlannedVariant, Variant


def entry(name: str, *flags: str, planned: bool = True, **env: str) -> PlannedVariant:
    """A variant with these flags and variables."""
    variant = Variant(id=name, name=name, flags=flags, env=tuple(env.items()))
    return PlannedVariant(variant=variant, planned=planned, why_not=None if planned else "no")


def left(*entries: PlannedVariant) -> list[str]:
    """Ids of those that run."""
    found = without_twins(entries, lambda v: tuple(sorted(v.flags)))
    return [each.variant.id for each in found if each.planned]


def test_of_two_equal_commands_the_first_runs() -> None:
    """Flags as they are put together, and the environment, make the command."""
    assert left(entry("0"), entry("1", "-a"), entry("2", "-a"), entry("3", "-b")) == ["0", "1", "3"]
    assert left(entry("0"), entry("1", "-a", "-b"), entry("2", "-b", "-a")) == ["0", "1"]


def test_another_environment_is_another_command() -> None:
    """A variable, or its value, can place something as a flag does."""
    assert left(entry("0"), entry("1", "-a"), entry("2", "-a", X="1")) == ["0", "1", "2"]
    assert left(entry("0"), entry("1", X="1", Y="2"), entry("2", Y="2", X="1")) == ["0", "1"]


def test_what_does_not_run_has_no_copy() -> None:
    """A variant that cannot run here stands for no other one."""
    assert left(entry("0"), entry("1", "-a", planned=False), entry("2", "-a")) == ["0", "2"]


def test_a_copy_says_whose() -> None:
    """The report names the variant that runs in its place."""
    *_, copy = without_twins((entry("1", "-a"), entry("2", "-a")), lambda v: v.flags)

    assert copy.copy_of == "1"
    assert copy.why_not == "its flags and environment are those of variant 1"
