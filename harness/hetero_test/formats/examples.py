"""Commented files that a user can start from, shipped as data."""

from __future__ import annotations

from enum import Enum
from importlib.resources import files


class Example(Enum):
    """A file, by its name in ``data/``."""

    RIG = "rig_example.toml"
    MODEL = "model_example.toml"


HINTS = {
    Example.RIG: "hetero-test rig --example prints one with comments",
    Example.MODEL: "hetero-test triage --example-facts prints one with comments",
}
"""What an error about such a file says at its end."""


def example_text(example: Example) -> str:
    """The text of an example, valid as it stands."""
    return files("hetero_test.formats").joinpath(f"data/{example.value}").read_text("utf-8")
