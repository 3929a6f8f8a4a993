"""Engine families: how to find, ask, launch and read each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from harness.engines.base import Engine

ENGINES = {
    "strata": ("harness.engines.strata", "Strata"),
    "llama_cpp": ("harness.engines.llama_cpp", "LlamaCpp"),
    "ik_llama": ("harness.engines.llama_cpp", "IkLlama"),
}
"""Family name to the module and class that speak to it; loaded only when used."""


def engine(name: str) -> Engine:
    """The adapter of an engine family.

    Raises:
        KeyError: there is no such family; matrix files are checked against the table before.
    """
    module, member = ENGINES[name]
    return cast("Engine", getattr(import_module(module), member)())
