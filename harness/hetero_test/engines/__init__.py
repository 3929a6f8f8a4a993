"""Engine families: how to find, ask, launch and read each."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from hetero_test.engines.base import Engine

ENGINES = {
    "strata": ("hetero_test.engines.strata.adapter", "Strata"),
    "llama_cpp": ("hetero_test.engines.llama_cpp.adapter", "LlamaCpp"),
    "ik_llama": ("hetero_test.engines.llama_cpp.adapter", "IkLlama"),
}
"""Family name to the module and class that speak to it; loaded only when used."""


def engine(name: str) -> Engine:
    """The adapter of an engine family.

    Raises:
        KeyError: there is no such family; matrix files are checked against the table before.
    """
    module, member = ENGINES[name]
    return cast("Engine", getattr(import_module(module), member)())
