"""Matrices in which nothing is wrong: no doubt, and no warning but those of a busy machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hetero_test.cli.main import main
from tests.whole.clean import complaints, options

pytestmark = pytest.mark.process

GATE, ALL = 3, 200


@pytest.mark.parametrize(
    "number",
    [
        *range(GATE),
        *(pytest.param(number, marks=pytest.mark.nightly) for number in range(GATE, ALL)),
    ],
)
def test_a_clean_matrix_of_the_bundled_engine_gives_no_reason_to_doubt(
    number: int, tmp_path: Path
) -> None:
    """Whatever the rig, the prompt and the subset: every run OK, a PASS, nothing to explain."""
    out = tmp_path / "out"
    main(["demo", "--out", str(out), "--quiet", *options(number)])
    assert complaints(json.loads((out / "run.json").read_text())) == []
