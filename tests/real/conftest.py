"""Fixtures with the real engine; where it cannot be built the tests are skipped, saying why."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hetero_test.engines.llama_cpp import demo
from tests.real import rig

if TYPE_CHECKING:
    from collections.abc import Iterator

BUILD_LIMIT_S = 1800
"""The first test waits for the engine to be built, whose time is the machine's."""
VULKAN_ICD = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test that may be the first one the time to build."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(BUILD_LIMIT_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rpc:
    """A running RPC server."""

    port: int
    pid: int

    @property
    def address(self) -> str:
        return f"{demo.HOST}:{self.port}"


@pytest.fixture(scope="session", autouse=True)
def _quiet_aborts() -> Iterator[None]:
    """An aborting engine starts a debugger where one is installed; that takes seconds."""
    before = os.environ.get("GGML_NO_BACKTRACE")
    os.environ["GGML_NO_BACKTRACE"] = "1"
    yield
    if before is None:
        del os.environ["GGML_NO_BACKTRACE"]
    else:
        os.environ["GGML_NO_BACKTRACE"] = before


@pytest.fixture(scope="session")
def lib() -> Path:
    """The whole engine: every CPU variant, RPC, Vulkan."""
    try:
        return rig.engine_lib()
    except rig.EngineMissingError as error:
        pytest.skip(f"no real engine: {error}")


@pytest.fixture(scope="session")
def variants(lib: Path) -> list[str]:
    """Instruction sets that this machine can run, best first."""
    found = rig.cpu_variants()
    if len(found) < 2:
        pytest.skip("this processor has but one instruction set of the engine's")
    return found


@pytest.fixture(scope="session")
def build(lib: Path, variants: list[str]) -> Path:
    """A build with one CPU variant, so that the numbers are the same on every machine."""
    return rig.build_folder(lib, lib.parent / "builds" / variants[0], variants[0])


@pytest.fixture(scope="session")
def old_cpu_build(lib: Path, variants: list[str]) -> Path:
    """A build whose CPU rounds differently: it lacks fused multiply-add."""
    name = "sse42" if "sse42" in variants else variants[-1]
    return rig.build_folder(lib, lib.parent / "builds" / name, name)


@pytest.fixture(scope="session")
def vulkan_build(lib: Path, variants: list[str]) -> Path:
    """A build with Vulkan, which here means llvmpipe."""
    if not VULKAN_ICD.exists():
        pytest.skip("no Vulkan on this machine (Debian: apt-get install mesa-vulkan-drivers)")
    return rig.build_folder(
        lib, lib.parent / "builds" / f"{variants[0]}-vulkan", variants[0], vulkan=True
    )


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory, lib: Path) -> dict[str, Path]:
    """The tiny models, by name."""
    tiny = pytest.importorskip("hetero_test.engines.llama_cpp.tiny_models")
    written: dict[str, Path] = tiny.write_models(tmp_path_factory.mktemp("models"))
    return written


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """Starts RPC servers, which end with the test."""
    with ExitStack() as stack:
        yield Servers(stack, tmp_path)


class Servers:
    """Starts RPC servers on free loopback ports."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack = stack
        self._folder = folder
        self._count = 0

    def start(self, build: Path, port: int | None = None) -> Rpc:
        """One server of a build."""
        port = demo.free_port() if port is None else port
        self._count += 1
        log = self._folder / f"rpc{self._count}.log"
        binary = build / demo.BINARY
        pid = self._stack.enter_context(demo.serving(binary, port, log=log))
        return Rpc(port=port, pid=pid)


@pytest.fixture(scope="session")
def rpc(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rpc, Rpc]]:
    """Two RPC servers that compute as the build's CPU does."""
    with ExitStack() as stack:
        servers = Servers(stack, tmp_path_factory.mktemp("rpc"))
        yield servers.start(build), servers.start(build)
