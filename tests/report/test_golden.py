"""The example reports are what the demo gives today, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import DEMOS, EXAMPLES, examples


@pytest.mark.process
@pytest.mark.parametrize("name", DEMOS)
def test_an_example_is_what_its_demo_gives(name: str, tmp_path: Path) -> None:
    """A change of any report shows in the example; ``python -m tests.golden`` takes it over."""
    held = {path.name: path.read_text(encoding="utf-8") for path in (EXAMPLES / name).iterdir()}
    made = examples(name, tmp_path)
    assert made.keys() == held.keys()
    for file, text in made.items():
        assert text.splitlines() == held[file].splitlines(), f"{name}/{file} has changed"


def test_every_example_has_a_demo() -> None:
    """No folder stays behind that nothing makes again."""
    assert {path.name for path in EXAMPLES.iterdir()} == set(DEMOS)
