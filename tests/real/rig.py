"""The real engine and its devices, as the tests need them: a build folder, RPC servers."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE = (
    "libggml-base.so",
    "libggml.vulkan.v0.4.0.so",
    "libllama.vulkan.v0.4.0.so",
    "libllama-common.so",
    "libggml-rpc.so",
    "llama-server",
    "ggml-rpc-server",
)
VULKAN = "libggml-vulkan.so"
SKIP = 77
"""Exit code of ``engine.sh`` where a prerequisite is missing."""
CPU_FLAGS = {
    "haswell": {"avx2", "fma", "f16c", "bmi2"},
    "sandybridge": {"avx"},
    "sse42": {"sse4_2"},
    "x64": set[str](),
}
"""Instruction sets by variant of the CPU backend, best first."""


class EngineMissingError(Exception):
    """The engine cannot be built here; the message says what is missing."""


def engine_lib() -> Path:
    """The folder of the whole engine, built if it is in no cache.

    Raises:
        EngineMissingError: npm, a compiler or the like is missing.
        RuntimeError: the build went wrong.
    """
    script = Path(__file__).with_name("engine.sh")
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    said = done.stderr.strip().splitlines()[-1:] or ["no word"]
    if done.returncode == SKIP:
        raise EngineMissingError(said[0])
    if done.returncode:
        raise RuntimeError(f"engine.sh failed: {done.stderr[-2000:]}")
    return Path(done.stdout.strip().splitlines()[-1])


def cpu_variants() -> list[str]:
    """The variants of the CPU backend that this processor can run, best first."""
    flags: set[str] = set()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            flags = set(line.partition(":")[2].split())
            break
    return [name for name, needs in CPU_FLAGS.items() if needs <= flags]


def build_folder(lib: Path, folder: Path, variant: str, *, vulkan: bool = False) -> Path:
    """A build whose CPU computes with one instruction set, made of links to the engine's files.

    One variant fixes the numbers across machines, and two folders with different ones are
    devices that round differently.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*BASE, f"libggml-cpu-{variant}.so", *((VULKAN,) if vulkan else ())):
        target = folder / name
        if target.exists():
            continue
        try:
            os.link(lib / name, target)
        except FileExistsError:  # another worker was quicker
            continue
        except OSError:  # another file system: the loader must not see through a symbolic link
            shutil.copy2(lib / name, target)
    return folder


@contextmanager
def little_memory(size_bytes: int = 2**30) -> Iterator[None]:
    """What is started within the block may not have more memory than this."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
