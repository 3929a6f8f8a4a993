"""What llama-server is asked before any launch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hetero_test.engines.base import Survey
from hetero_test.engines.llama_cpp.adapter import LlamaCpp
from hetero_test.engines.llama_cpp.devices import known_flags, variables
from hetero_test.errors import (
    EngineNotFoundError,
    NothingToCompareError,
    UsageError,
)

pytestmark = pytest.mark.process


def survey(
    build: Path,
    *flags: str,
    devices: int | None = None,
    kinds: dict[str, str] | None = None,
    fast: str | None = None,
) -> Survey:
    engine = LlamaCpp()
    return engine.survey(engine.find(build), flags, devices=devices, kinds=kinds or {}, fast=fast)


def test_devices_flags_and_version(build: Path) -> None:
    """Devices, flags and version are what the binary says."""
    found = survey(build)
    assert [device.id for device in found.devices] == ["CUDA0", "CUDA1"]
    assert found.device_count == 2
    assert set(found.known_flags or ()) == {
        *("-m", "--model", "-dev", "--device", "-ngl", "--gpu-layers", "--n-gpu-layers"),
        *("--spec-type", "--api-prefix"),
    }
    assert found.version == "1 (abc)"
    assert found.how == "llama-server --list-devices"


def test_declarations(build: Path) -> None:
    """Kinds and the fast device are the user's to declare."""
    found = survey(build, kinds={"CUDA1": "CUDA0"}, fast="CUDA1")
    assert [device.id for device in found.devices] == ["CUDA1", "CUDA0"]
    assert len({device.kind for device in found.devices}) == 1


def test_number_of_devices_cannot_be_given(build: Path) -> None:
    """Devices have names here, so a number of them is a mistake."""
    with pytest.raises(UsageError, match="--devices: this engine lists its devices by name"):
        survey(build, devices=2)


def test_rpc_server_that_is_down(build: Path) -> None:
    """Where the list cannot be had nothing is launched, and the engine's own words are shown."""
    with pytest.raises(NothingToCompareError, match="Failed to connect") as error:
        survey(build, "-m", "a.gguf", "--rpc", "127.0.0.1:1")
    assert "--rpc 127.0.0.1:1 --list-devices failed" in str(error.value)


def test_no_devices(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine without accelerators has none; that is known, not unknown."""
    monkeypatch.setenv("FAKE_SCENARIO", "bare")
    assert survey(build).device_count == 0


def test_binary_that_cannot_be_run(build: Path) -> None:
    """A binary that is not executable is named, with what to do."""
    (build / "llama-server").chmod(0o644)
    said = r"cannot be run: .*llama-server: Permission denied"
    with pytest.raises(EngineNotFoundError, match=said):
        survey(build)


def test_missing_package(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the HTTP library the extra that brings it is named before any launch."""
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(NothingToCompareError, match=r"hetero-test\[llama\]"):
        survey(build)


def test_no_binary(tmp_path: Path) -> None:
    """A folder without llama-server is told from one that has it, wherever builds put it."""
    with pytest.raises(EngineNotFoundError, match="no binary 'llama-server'"):
        LlamaCpp().find(tmp_path)
    place = tmp_path / "build" / "bin"
    place.mkdir(parents=True)
    (place / "llama-server").touch()
    assert LlamaCpp().find(tmp_path).engine == place / "llama-server"


def test_help_without_flags() -> None:
    """A help text that lists no flag tells nothing of flags, rather than that there are none."""
    assert known_flags(b"usage: see the web\n") is None


def test_variables_are_read_beside_their_flags() -> None:
    """With every name of the flag, wherever the line is broken; the opposite is one as well."""
    told = b"""\
-ot,   --override-tensor <pattern>=<buffer type>,...
                                        override tensor buffer type (see --other)
                                        (env: LLAMA_ARG_OVERRIDE_TENSOR)
--cache-prompt, --no-cache-prompt       whether to cache (default: enabled) (env:
                                        LLAMA_ARG_CACHE_PROMPT)
--api-key KEY                           the key (env: LLAMA_API_KEY or LLAMA_KEY)
--plain                                 no variable (environment: none)
"""
    found = variables(told)
    assert found["LLAMA_ARG_OVERRIDE_TENSOR"] == {"-ot", "--override-tensor"}
    cached = {"--cache-prompt", "--no-cache-prompt"}
    assert found["LLAMA_ARG_CACHE_PROMPT"] == found["LLAMA_ARG_NO_CACHE_PROMPT"] == cached
    assert found["LLAMA_API_KEY"] == found["LLAMA_KEY"] == {"--api-key"}
    assert len(found) == 6
    assert known_flags(told) == frozenset().union(*found.values(), {"--plain"})
