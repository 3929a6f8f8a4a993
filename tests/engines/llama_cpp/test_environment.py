"""What the environment sets for every llama-server: refused, recorded, shown, compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from hetero_test.cli.run import listing
from hetero_test.errors import UsageError
from hetero_test.plan.options import RunOptions
from hetero_test.plan.prepare import Ready, prepare
from hetero_test.session.resume import differences

pytestmark = pytest.mark.process


def ready(build: Path) -> Ready:
    """The shipped matrix, as prepared in the environment as it is."""
    out = build.parent / "out"
    return prepare(
        RunOptions(build_dir=build, out=out, model_flags=("-c", "512"), matrix="llama_cpp")
    )


@pytest.mark.parametrize("scenario", ["good", "bare"])
@pytest.mark.parametrize("name", ["LLAMA_ARG_API_PREFIX", "LLAMA_ARG_NO_API_PREFIX"])
def test_a_variable_that_the_matrix_owns_is_refused_before_any_launch(
    name: str, scenario: str, build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server below another path would never be seen to be ready, with devices or without."""
    monkeypatch.setenv(name, "/foo")
    monkeypatch.setenv("FAKE_SCENARIO", scenario)
    with pytest.raises(UsageError, match=f"^{name} \\(as --api-prefix\\) in the environment"):
        ready(build)


def test_a_variable_that_moves_something_is_recorded_and_shown(
    build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the manifest, in a warning where it is a flag, and in the list of what is planned."""
    monkeypatch.setenv("LLAMA_ARG_DEVICE", "CUDA1")
    monkeypatch.setenv("GGML_CUDA_DISABLE_GRAPHS", "1")
    made = ready(build)
    assert {("GGML_CUDA_DISABLE_GRAPHS", "1"), ("LLAMA_ARG_DEVICE", "CUDA1")} <= set(
        made.manifest.inherited
    )
    (warning,) = [text for text in made.manifest.warnings if "LLAMA_ARG_DEVICE=CUDA1" in text]
    assert "GGML_CUDA" not in warning
    assert "inherits  GGML_CUDA_DISABLE_GRAPHS=1" in listing(made)


def test_a_matrix_goes_on_only_in_the_same_environment(
    build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set, changed or unset since: what differs is named, and nothing else."""
    bare = ready(build).manifest
    monkeypatch.setenv("LLAMA_ARG_THREADS", "4")
    four = ready(build).manifest
    monkeypatch.setenv("LLAMA_ARG_THREADS", "5")
    five = ready(build).manifest
    told = "environment variables: LLAMA_ARG_THREADS=4 before, "
    assert differences(four, four) == []
    assert differences(four, five) == [told + "LLAMA_ARG_THREADS=5 now"]
    assert differences(four, bare) == [told + "not set now"]
