"""The command line, read as the engine reads it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.bundled.failures import EngineStopError
from hetero_test.bundled.flags import (
    USAGE,
    Flags,
    HelpRequestedError,
    parse_flags,
    to_float,
    to_int,
)


def test_the_last_occurrence_wins() -> None:
    """A flag given twice has its last value."""
    flags = parse_flags(["--expert-cache", "auto", "--expert-cache", "512"])
    assert flags.expert_cache == 512
    assert parse_flags(["--expert-cache", "512", "--expert-cache", "auto"]).expert_cache is None


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("12x", 12), (" -3", -3), ("foo", 0), ("", 0), ("+7", 7)]
)
def test_whole_numbers_are_read_as_atoi_does(text: str, number: int) -> None:
    """What does not start with a number is 0, without a complaint."""
    assert to_int(text) == number


@pytest.mark.parametrize(
    ("text", "number"), [("0.5", 0.5), (".5x", 0.5), ("1e-2", 0.01), ("nan?", 0.0), ("-2", -2.0)]
)
def test_fractions_are_read_as_atof_does(text: str, number: float) -> None:
    """What does not start with a number is 0, without a complaint."""
    assert to_float(text) == number


@given(st.text())
def test_any_text_is_some_number(text: str) -> None:
    """Reading a number never fails."""
    assert isinstance(to_int(text), int)
    assert isinstance(to_float(text), float)


@pytest.mark.parametrize("argument", ["--foo", "--spec=4", "-h", "model.gguf", ""])
def test_an_unknown_argument_is_refused_with_the_usage(argument: str) -> None:
    """Anything unknown, ``--name=value`` included, ends with exit code 2."""
    with pytest.raises(EngineStopError) as caught:
        parse_flags(["--spec", "4", argument])
    assert caught.value.message == f"unknown argument: {argument}"
    assert (caught.value.code, caught.value.usage, caught.value.prefixed) == (2, True, False)


def test_a_flag_without_its_value_is_refused() -> None:
    """The last word may not be a flag that takes a value."""
    with pytest.raises(EngineStopError, match=r"^--spec needs a value$"):
        parse_flags(["--spec"])


def test_help_is_met_in_order() -> None:
    """``--help`` ends the reading, unless something before it is wrong."""
    with pytest.raises(HelpRequestedError):
        parse_flags(["--spec", "4", "--help", "--foo"])
    with pytest.raises(EngineStopError):
        parse_flags(["--foo", "--help"])


def test_the_usage_names_every_flag_that_is_read() -> None:
    """Each flag in the usage is known, and no other is."""
    from hetero_test.bundled import flags as module

    named = set(re.findall(r"--[a-z0-9-]+", USAGE))
    read = {*module._VALUES, *module._SWITCHES, *module._SPECIAL, "--help"}
    assert named == read


def test_a_seed_turns_sampling_on_and_greedy_turns_it_off() -> None:
    """Sampling is on after ``--seed``, and off again after a later ``--greedy``."""
    assert parse_flags([]).greedy
    assert not parse_flags(["--seed", "1"]).greedy
    assert not parse_flags(["--greedy", "--seed", "1"]).greedy
    assert parse_flags(["--seed", "1", "--greedy"]).greedy


@pytest.mark.parametrize(
    ("argv", "window", "draft_window"),
    [
        ([], 0, 0),
        (["--spec", "4"], 6, 4),
        (["--spec", "8"], 8, 8),
        (["--spec", "7"], 8, 7),
        (["--spec", "4", "--suffix-draft", "0"], 4, 4),
        (["--spec", "4", "--mtp-max-t", "2"], 4, 2),
        (["--spec", "4", "--mtp-max-t", "8"], 4, 4),
    ],
)
def test_lookup_raises_the_window_but_not_the_drafters(
    argv: list[str], window: int, draft_window: int
) -> None:
    """With lookup on and no cap of its own the window is two larger, at most 8."""
    flags = parse_flags(argv)
    assert (flags.window, flags.draft_window) == (window, draft_window)


def test_defaults_are_the_engines() -> None:
    """What is not given has the documented default."""
    flags = Flags()
    assert (flags.max_new, flags.max_context, flags.suffix_draft) == (16, 4096, 3)
    assert (flags.adapt_every, flags.adapt_swaps, flags.vram_reserve_mib) == (4, 96, 700)
    assert (flags.top_k, flags.top_p, flags.temperature) == (20, 0.95, 1.0)
    assert parse_flags(["--eos-ids", "1, 2"]).eos_ids == (1, 2)
    assert parse_flags(["--expert-cache-device2", "9"]).helper_caches == (0, 9, 0)
