"""One build of each rig and pack for all tests of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from hetero_test.bundled.build import write_build
from tests.bundled.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., Engine]


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes an engine on a shipped rig, once for each rig and pack."""
    made: dict[tuple[str, str], Engine] = {}

    def engine(rig: str, pack: Literal["canonical", "native"] = "canonical") -> Engine:
        if (rig, pack) not in made:
            dest = tmp_path_factory.mktemp(f"{rig} {pack}")
            made[rig, pack] = Engine(write_build(dest, rig=rig, pack=pack))
        return made[rig, pack]

    return engine


@pytest.fixture(scope="session")
def equal(make: Make) -> Engine:
    """Two equal cards, canonical pack: the demo."""
    return make("two_equal")


@pytest.fixture(scope="session")
def native(make: Make) -> Engine:
    """Two equal cards, native pack."""
    return make("two_equal", "native")


@pytest.fixture(scope="session")
def unequal(make: Make) -> Engine:
    """Two unequal cards, canonical pack."""
    return make("two_unequal")


@pytest.fixture(scope="session")
def one(make: Make) -> Engine:
    """One card, canonical pack."""
    return make("one")
