"""Placement flags: which command lines place the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.engines.llama_cpp.placement_flags import (
    PlacementFlags,
    layer_alternatives,
    parse_flags,
    parse_text,
    same_placement,
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("-dev CUDA0 -ngl 99 -sm none", "--device CUDA0 --gpu-layers 999 --split-mode none"),
        ("-dev A,B -ngl 99 -ts 3,1", "-m x.gguf --device=A,B -ngl 99 -sm layer -ts 6/2"),
        ('-ngl 99 -ot "a=CPU,b=CUDA1"', "-ngl 99 -ot a=CPU -ot b=CUDA1"),
        ("-ngl 99 --cpu-moe", "-ngl 99 -cmoe"),
    ],
)
def test_other_words_for_the_same_placement(first: str, second: str) -> None:
    """Long and short names, an equals sign, ratios."""
    assert same_placement(parse_text(first), parse_text(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("-dev A,B -ngl 99 -ts 3,1", "-dev A,B -ngl 99 -ts 1,3"),
        ("-ngl 99 -sm none", "-ngl 99 -sm layer"),
        ("-ngl 30", "-ngl 99"),
        ("-ngl 99 -ot a=CPU", "-ngl 99"),
        ("-ngl 99", "-ngl 99 --spec-type draft-mtp"),
        ("-c 4096", "-c 4096"),
        ("'unclosed", "'unclosed"),
    ],
)
def test_what_places_differently_or_says_nothing_is_not_the_same(first: str, second: str) -> None:
    """A command line without placement equals none, not even itself."""
    assert not same_placement(parse_text(first), parse_text(second))


def test_later_flags_override_but_rules_add_up() -> None:
    """As the engines read them."""
    said = parse_flags(["-ngl", "10", "-ot", "x=CPU", "-ngl", "99", "-ot", "y=CUDA1"])
    assert said.gpu_layers == 99
    assert said.rules == (("x", "CPU"), ("y", "CUDA1"))


def test_numbers_that_are_none_are_not_said() -> None:
    """``-ngl auto`` and a broken ratio leave the placement open."""
    assert parse_flags(["-ngl", "auto", "-ts", "a,b"]) == PlacementFlags()
    assert parse_flags(["-ngl"]) == PlacementFlags()


def test_experts_of_a_layer_go_where_the_first_rule_that_matches_puts_them() -> None:
    """Then to the CPU for the first N layers, else nowhere special."""
    said = parse_text(r'-ot "blk\.(3|4)\.ffn_.*_exps=CUDA1,[=CPU" --n-cpu-moe 2')
    assert [said.expert_device(layer) for layer in range(6)] == [
        "CPU",
        "CPU",
        None,
        "CUDA1",
        "CUDA1",
        None,
    ]
    assert parse_text("--cpu-moe").expert_device(40) == "CPU"


@given(layers=st.sets(st.integers(0, 149), min_size=1))
def test_an_expression_for_layers_matches_these_and_no_others(layers: set[int]) -> None:
    """Ranges are shortened, never widened, and hold no comma, which would end the rule."""
    expression = layer_alternatives(sorted(layers))
    assert "," not in expression
    pattern = re.compile(rf"blk\.({expression})\.ffn")
    assert {n for n in range(200) if pattern.search(f"blk.{n}.ffn")} == layers
