"""Healthy matrices of the real engine: no doubt, and no warning but those of a busy machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.matrix import play, prompt
from tests.real.test_exactness import LIKE, flags
from tests.whole.clean import complaints

if TYPE_CHECKING:
    from tests.real.conftest import Rpc

pytestmark = pytest.mark.real

GATE, ALL = 2, 40
PLACED = ("alone-RPC0", "alone-RPC1", "half", "split", "split31")
DRAFTED = ("draft-same", "draft-other", "draft-swapped", "draft-cpu")
APART = {
    "dense-f32": ("ffn-apart", "ffn-cpu"),
    "moe-f32": ("experts-other", "experts-apart", "experts-cpu"),
}
OTHERWISE = (
    *((), (), ("-c", "512"), ("-fa", "off"), ("-fa", "on"), ("-np", "1"), ("--no-warmup",)),
    *(("-ctk", "q8_0", "-ctv", "q8_0", "-fa", "on"), ("--no-mmap",), ("-b", "64", "-ub", "32")),
    *(("--jinja",), ("-fit", "off"), ("--cache-ram", "0"), ("--metrics",)),
)
"""Flags with which people start their servers; none of them changes a placement."""


@pytest.mark.parametrize(
    "number",
    [
        *range(GATE),
        *(pytest.param(number, marks=pytest.mark.nightly) for number in range(GATE, ALL)),
    ],
)
def test_a_clean_matrix_of_the_real_engine_gives_no_reason_to_doubt(
    number: int, build: Path, rpc: tuple[Rpc, Rpc], models: dict[str, Path], tmp_path: Path
) -> None:
    """Dense or with experts, with a drafter or without, under common flags: nothing to explain."""
    draw = random.Random(number)
    model = draw.choice(tuple(APART))
    more: tuple[str, ...] = draw.choice(OTHERWISE)
    only = draw.sample((*PLACED, *APART[model]), 2)
    if draw.random() < 0.4:
        more += ("-md", str(models["draft-f32"]), "--spec-type", "draft-simple")
        only = draw.sample(DRAFTED, 2)
    told = play(
        build,
        tmp_path,
        flags(models, rpc, model, *more),
        *LIKE,
        *("--only", ",".join(only), "--warmup", str(draw.choice((0, 0, 1)))),
        prompts=[prompt(draw.choice((9, 25, 40)), first=draw.randrange(300), step=53)],
        max_new=draw.choice((24, 32, 40)),
    )
    assert told.code == 0, told.stdout + told.stderr
    assert complaints(told.json) == []
