"""Engine families: how to find, ask, launch and read each.

A build folder, flags and the files that a run wrote come in; facts go out, as values of
:mod:`hetero_test.engines.base` and :mod:`hetero_test.values.reading`. No engine judges.

An installed package brings an engine of its own with an entry point of the group
``hetero_test.engines``: its name is what a matrix file says under ``engine``, and what it points
to makes an :class:`hetero_test.engines.base.Engine` when called without arguments.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from hetero_test.errors import EngineNotFoundError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from hetero_test.engines.base import Engine

ENGINES = {
    "strata": ("hetero_test.engines.strata.adapter", "Strata"),
    "llama_cpp": ("hetero_test.engines.llama_cpp.adapter", "LlamaCpp"),
    "ik_llama": ("hetero_test.engines.llama_cpp.adapter", "IkLlama"),
}
"""Family name to the module and class that speak to it; loaded only when used."""
GROUP = "hetero_test.engines"
"""Entry points of this group are the engines of others; read only for a name not in ENGINES."""


def engine(name: str) -> Engine:
    """The adapter of an engine family.

    Raises:
        EngineNotFoundError: there is none of that name, or the package that brings it is broken.
    """
    if name in ENGINES:
        module, member = ENGINES[name]
        return cast("Engine", getattr(import_module(module), member)())
    found = [point for point in _others() if point.name == name]
    if len(found) != 1:
        told = ", ".join(map(_origin, found))
        raise EngineNotFoundError(
            f"engine {name!r} is brought by several packages: {told}"
            if found
            else f"no engine {name!r} is installed",
            hint="uninstall all but one of them" if found else f"there are {', '.join(names())}",
        )
    return _loaded(found[0])


def names() -> tuple[str, ...]:
    """Every engine that a matrix file can name: the built-in ones, then those of others."""
    return (*ENGINES, *sorted({point.name for point in _others()} - set(ENGINES)))


def _others() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _origin(point: EntryPoint) -> str:
    package = "an unknown package" if point.dist is None else point.dist.name
    return f"{package} ({point.value})"


def _loaded(point: EntryPoint) -> Engine:
    from hetero_test.engines.base import Engine

    where = f"engine {point.name!r} of {_origin(point)}"
    hint = f"mend or uninstall that package; it is found by its entry point in {GROUP}"
    try:
        made = point.load()()
    except Exception as error:  # whatever somebody else's code raises is told, not a traceback
        what = f"{type(error).__name__}: {error}"
        raise EngineNotFoundError(f"{where} cannot be loaded: {what}", hint=hint) from error
    members = {*Engine.__annotations__, *(m for m in vars(Engine) if not m.startswith("_"))}
    if missing := sorted(member for member in members if not hasattr(made, member)):
        raise EngineNotFoundError(f"{where} has no {', '.join(missing)}", hint=hint)
    if made.name != point.name:
        raise EngineNotFoundError(f"{where} calls itself {made.name!r}", hint=hint)
    return cast("Engine", made)
