"""What the environment adds to every run: recorded, and refused where a flag would be."""

from __future__ import annotations

import pytest

from hetero_test.engines.base import Survey
from hetero_test.errors import ExitCode, UsageError
from hetero_test.plan.environment import as_flags, inherited, refuse_owned_variables
from tests.plan.test_plan import matrix

SURVEY = Survey(
    devices=(),
    device_count=0,
    how="asked",
    known_flags=None,
    variables={
        "X_ARG_KEY": frozenset({"--key"}),
        "X_ARG_PORT": frozenset({"--port"}),
        "X_ARG_MOVE": frozenset({"-mv", "--move"}),
    },
    prefixes=("X_",),
)


def recorded(*besides: str, **env: str) -> list[str]:
    """The names of what is recorded of an environment."""
    return [name for name, _ in inherited(env, SURVEY, besides=besides)]


@pytest.mark.parametrize(
    "name",
    [
        *("X_ARG_MOVE", "X_UNHEARD_OF", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING"),
        *("HIP_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "ROCR_VISIBLE_DEVICES"),
        *("NVIDIA_TF32_OVERRIDE", "VK_ICD_FILENAMES", "ONEAPI_DEVICE_SELECTOR"),
    ],
)
def test_a_variable_that_may_change_results_is_recorded(name: str) -> None:
    """By how its name begins: of the engine, or of a driver; with its value."""
    assert inherited({name: "1", "PATH": "/bin"}, SURVEY, besides=()) == ((name, "1"),)


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "CUDA_HOME", "CUDA_PATH_V12_4", "CUDA_VERSION", "HIP_PATH", "VK_SDK_PATH"],
)
def test_where_something_is_installed_changes_no_result(name: str) -> None:
    """A matrix may go on in a shell that names other folders."""
    assert recorded(**{name: "x"}) == []


def test_what_is_recorded_elsewhere_is_not_recorded_twice() -> None:
    """The masks of the matrix have a place of their own; the rest is in the order of names."""
    env = {"X_B": "1", "CUDA_VISIBLE_DEVICES": "0", "X_A": "2"}
    assert recorded("CUDA_VISIBLE_DEVICES", **env) == ["X_A", "X_B"]


def test_a_variable_may_not_do_what_a_flag_may_not() -> None:
    """Exit 2, with the variable, its flag, and what to do."""
    owning = matrix(owns=("--key", "--port"))
    found = as_flags({"X_ARG_KEY": "", "X_ARG_MOVE": "1"}, SURVEY, ("x",))
    with pytest.raises(UsageError) as caught:
        refuse_owned_variables(found, owning)
    assert caught.value.exit_code is ExitCode.USAGE
    assert "X_ARG_KEY (as --key) in the environment: the matrix mine sets" in str(caught.value)
    assert caught.value.hint == "unset X_ARG_KEY"
    refuse_owned_variables(as_flags({"X_ARG_MOVE": "1"}, SURVEY, ("x",)), owning)


def test_a_variable_behind_a_flag_of_the_command_changes_nothing() -> None:
    """The command line goes before the environment, so that nothing is to be refused."""
    env = {"X_ARG_PORT": "1", "X_ARG_MOVE": "2"}
    found = as_flags(env, SURVEY, ("x", "--port", "0"))
    assert found == {"X_ARG_MOVE": {"-mv", "--move"}}
