"""What the environment of the harness adds to every run, beside the flags.

Each run inherits it. So what changes an engine's results is recorded, shown, and must be the same
when a matrix is gone on with; and what a flag may not do after ``--`` a variable may not do either.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hetero_test.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from hetero_test.engines.base import Survey
    from hetero_test.plan.matrix import Matrix

DRIVERS = (
    *("CUDA_", "CUBLAS_", "NVIDIA_TF32_", "HIP_", "ROCR_", "HSA_", "ROCBLAS_"),
    *("VK_", "SYCL_", "ONEAPI_", "UR_", "ZE_"),
)
"""Beginnings of variables by which drivers and their libraries choose devices and kernels."""
_OF_THE_BUILD = re.compile(
    r"(?:CUDA|HIP|VK|ONEAPI|SYCL)_(?:\w+_)?"
    r"(?:HOME|ROOT|PATH(?:_V[0-9_]+)?|ROOT_DIR|DIR|SDK|VERSION|LIBRARIES)"
)
"""Where something is installed and of which version: of no effect on a run."""


def inherited(
    env: Mapping[str, str], survey: Survey, *, besides: Collection[str]
) -> tuple[tuple[str, str], ...]:
    """The variables that may change what an engine does, by name.

    Args:
        env: of the harness.
        survey: which variables the engine reads.
        besides: names that are recorded elsewhere.
    """
    beginnings = (*DRIVERS, *survey.prefixes)
    return tuple(
        (name, value)
        for name, value in sorted(env.items())
        if name.startswith(beginnings)
        and name not in besides
        and _OF_THE_BUILD.fullmatch(name) is None
    )


def as_flags(
    env: Mapping[str, str], survey: Survey, command: Sequence[str]
) -> Mapping[str, frozenset[str]]:
    """The variables that the engine takes as flags, with the flags, in the engine's order.

    Args:
        env: of the harness.
        survey: which variables the engine reads as which flags.
        command: what the engine is launched with where there are no flags at all. A flag on
            the command line goes before its variable, so those of these flags are left out.
    """
    own = set(command[1:])
    return {
        name: flags
        for name, flags in survey.variables.items()
        if name in env and own.isdisjoint(flags)
    }


def refuse_owned_variables(variables: Mapping[str, frozenset[str]], matrix: Matrix) -> None:
    """Variables may not do what flags after ``--`` may not.

    Raises:
        UsageError: one does; all are named with their flags.
    """
    found = {
        name: next(flag for flag in matrix.owns if flag in flags)
        for name, flags in variables.items()
        if not flags.isdisjoint(matrix.owns)
    }
    if found:
        told = ", ".join(f"{name} (as {flag})" for name, flag in found.items())
        raise UsageError(
            f"{told} in the environment: the matrix {matrix.facts.name} sets "
            f"{'this flag' if len(found) == 1 else 'these flags'} itself",
            hint=f"unset {' '.join(found)}",
        )
