"""Facts about the machine; each may be missing, none is guessed."""

from __future__ import annotations

import itertools
import os
import platform
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.formats.files import open_file
from hetero_test.values.record import ModelFile

if TYPE_CHECKING:
    from collections.abc import Sequence

WHOLE_BYTES = 64 * 2**20
SAMPLES = 16
EDGE_BYTES = 2**20
"""How much of each end of a model file is hashed: the whole of a large one takes minutes."""


def host_facts() -> tuple[tuple[str, str], ...]:
    """What the operating system says of this machine: fact and value; unknown ones left out."""
    facts = [
        ("CPU", _cpu()),
        ("logical processors", str(os.cpu_count()) if os.cpu_count() else None),
        ("memory", _memory()),
        ("system", _system()),
        ("NVIDIA driver", _nvidia_driver()),
        ("AMD driver", _first_line(Path("/sys/module/amdgpu/version"))),
        ("Python", platform.python_version()),
    ]
    return tuple((name, value) for name, value in facts if value is not None)


def model_files(flags: Sequence[str]) -> tuple[ModelFile, ...]:
    """Every file or folder that a flag's value names, with what tells it from another one."""
    found = []
    for flag, value in itertools.pairwise(flags):
        if not flag.startswith("-"):
            continue
        with suppress(OSError, ValueError):  # a value need not be a path at all
            path = Path(value)
            if path.is_file():
                size = path.stat().st_size
                found.append(
                    ModelFile(
                        flag=flag, path=value, size_bytes=size, edge_sha256=_edges(path, size)
                    )
                )
            elif path.is_dir():
                found.append(ModelFile(flag=flag, path=value))
    return tuple(found)


def _edges(path: Path, size: int) -> str | None:
    digest = sha256()
    with path.open("rb") as file:
        digest.update(file.read(EDGE_BYTES))
        if size > EDGE_BYTES:
            file.seek(max(EDGE_BYTES, size - EDGE_BYTES))
            digest.update(file.read(EDGE_BYTES))
    return digest.hexdigest()


def content_sha256(path: Path) -> str:
    """What tells the content of a file from another one: 64 hex digits.

    Of a file of up to `WHOLE_BYTES` the sha256 of all of it. Of a larger one that of its size and
    of `SAMPLES` blocks from its begin to its end, which takes as long for any size.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    digest = sha256()
    with open_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        if size <= WHOLE_BYTES:
            return file_sha256(path)
        digest.update(str(size).encode())
        for number in range(SAMPLES):
            file.seek((size - EDGE_BYTES) * number // (SAMPLES - 1))
            digest.update(file.read(EDGE_BYTES))
    return digest.hexdigest()


def libraries(engine: Path) -> tuple[tuple[str, str], ...]:
    """Shared libraries in an engine's own folder, also where a link leads to it.

    Each as its path and its :func:`content_sha256`; one that cannot be read is left out.
    """
    found: set[Path] = set()
    for folder in {engine.parent, engine.resolve().parent}:
        with suppress(OSError):
            found.update(path for path in folder.iterdir() if ".so" in path.suffixes)
    held: list[tuple[str, str]] = []
    for path in sorted(found):
        with suppress(OSError):
            held.append((str(path), content_sha256(path)))
    return tuple(held)


def file_sha256(path: Path) -> str:
    """sha256 of a whole file, 64 hex digits."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _first_line(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline().strip() or None
    except OSError:
        return None


def _cpu() -> str | None:
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
        return found.group(1).strip() if found else None
    return None


def _memory() -> str | None:
    with suppress(OSError):
        text = Path("/proc/meminfo").read_text(encoding="ascii", errors="replace")
        found = re.search(r"^MemTotal:\s+(\d+) kB", text, re.MULTILINE)
        return f"{int(found.group(1)) / 2**20:.1f} GiB" if found else None
    return None


def _system() -> str:
    name = None
    with suppress(OSError):
        name = platform.freedesktop_os_release().get("PRETTY_NAME")
    kernel = f"{platform.system()} {platform.release()}"
    return f"{name}, {kernel}" if name else kernel


def _nvidia_driver() -> str | None:
    line = _first_line(Path("/proc/driver/nvidia/version"))
    found = re.search(r"\b(\d{3}(?:\.\d+){1,2})\b", line or "")
    return found.group(1) if found else None
