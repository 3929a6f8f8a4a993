"""Hazards that a model and the engine that runs it bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.formats.files import WRITTEN_BY_HAND, read_bytes
from hetero_test.triage.answer.hazard import Hazard, absent, not_checked, present
from hetero_test.triage.cost.memory import HOST_SPARE_BYTES
from hetero_test.triage.model.facts import Completeness, Role

if TYPE_CHECKING:
    from pathlib import Path

    from hetero_test.triage.model.bytes import ModelBytes
    from hetero_test.triage.options.question import TriageQuestion

GIB = 2**30
BACKENDS = ("CUDA", "HIP", "VULKAN", "SYCL", "METAL", "RPC")
"""Backends of ggml by the names of its build options (``GGML_CUDA`` …)."""
NEEDS = {"CUDA": "CUDA", "ROCm": "HIP", "HIP": "HIP", "Vulkan": "VULKAN", "RPC": "RPC"}
"""The backend that a device needs, by how its name begins."""


def model_hazards(question: TriageQuestion, sizes: ModelBytes) -> list[Hazard]:
    """Tables, paging, missing bytes, graph capture, fused operations, backends."""
    return [
        _sidecar(question),
        _paging(question, sizes),
        _cgroup(question, sizes),
        _bytes_known(question),
        not_checked(
            "CUDA graph capture aborts on unusual graphs",
            "run the placement once; GGML_CUDA_DISABLE_GRAPHS=1 tells whether capture is to blame",
        ),
        not_checked(
            "a backend lacks operations of this architecture",
            f"run {question.model.arch} on each device alone first and read its log for CPU splits",
        ),
        absent(
            "halves of a fused operation on different devices",
            "the -ot rules here move gate, up and down of a layer together",
        ),
        *_backends(question),
    ]


def _sidecar(question: TriageQuestion) -> Hazard:
    name = "tables stay where they are read from"
    size = question.model.bytes_by_role().get(Role.SIDECAR, 0)
    if not size:
        return absent(name, "the model has no per-layer token tables")
    return present(
        name,
        f"{size / GIB:.1f} GiB of per-layer token tables are looked up on the host",
        "keep mmap; do not count them to a device",
    )


def _paging(question: TriageQuestion, sizes: ModelBytes) -> Hazard:
    name = "the model is larger than memory and pages from disk"
    memory = question.rig.memory_available_bytes or question.rig.memory_bytes
    if memory is None:
        return not_checked(name, "the memory of this rig is not known")
    whole = sizes.resident_bytes + sizes.host_bytes
    told = f"{whole / GIB:.1f} GiB of weights, {float(memory.value) / GIB:.1f} GiB of memory"
    if whole > float(memory.value) - HOST_SPARE_BYTES:
        return present(name, told, "what no device holds is read from disk for each token")
    return absent(name, told)


def _cgroup(question: TriageQuestion, sizes: ModelBytes) -> Hazard:
    name = "a memory limit of the control group kills the process"
    limit = question.rig.memory_limit_bytes
    if limit is None:
        return not_checked(name, "no limit was seen; /sys/fs/cgroup/memory.max tells")
    told = f"limit {float(limit.value) / GIB:.1f} GiB"
    if sizes.resident_bytes + sizes.host_bytes > float(limit.value):
        return present(name, told, "keep mmap (no --no-mmap): pages of a file are not counted so")
    return absent(name, told)


def _bytes_known(question: TriageQuestion) -> Hazard:
    name = "bytes by role are incomplete"
    model = question.model
    if model.completeness in (Completeness.READ, Completeness.TOLD):
        return absent(name, f"bytes by role are {model.completeness}")
    missing = ", ".join(model.missing_shards) or "some shards"
    return present(name, f"{model.completeness}: {missing} not seen", "give all shards")


def _backends(question: TriageQuestion) -> list[Hazard]:
    """Which backends the build lacks, and whether a device needs one of them."""
    name = "the build lacks a backend"
    if question.build_dir is None:
        return [not_checked(name, "give --build-dir DIR")]
    seen = build_options(question.build_dir)
    if not seen:
        return [not_checked(name, "no CMakeCache.txt and no ggml library in the build folder")]
    wanted = {
        backend
        for device in question.rig.devices
        for prefix, backend in NEEDS.items()
        if device.id.startswith(prefix)
    }
    off = sorted(backend for backend in BACKENDS if not seen.get(backend, False))
    on = sorted(backend for backend in BACKENDS if seen.get(backend, False))
    told = f"on: {', '.join(on) or 'none'}; off: {', '.join(off) or 'none'}"
    if lacking := sorted(wanted & set(off)):
        return [present(name, told, f"build with {' '.join(f'-DGGML_{b}=ON' for b in lacking)}")]
    return [absent(name, told)]


def build_options(build_dir: Path) -> dict[str, bool]:
    """Backends of a build: from CMake's cache, else from the libraries beside the binaries.

    The mapping is empty where neither was found.
    """
    for folder in (build_dir, build_dir.parent):
        cache = folder / "CMakeCache.txt"
        try:
            text = read_bytes(cache, most=WRITTEN_BY_HAND).decode("utf-8", "replace")
        except OSError:
            continue
        lines = [line for line in text.splitlines() if line.startswith("GGML_") and "=" in line]
        options = dict(line.split("=", 1) for line in lines)
        asked = {backend: options.get(f"GGML_{backend}:BOOL", "OFF") for backend in BACKENDS}
        return {backend: said.upper() in {"ON", "1", "TRUE"} for backend, said in asked.items()}
    found = {
        path.name.split("ggml-", 1)[1].split(".")[0].upper()
        for folder in (build_dir, build_dir / "bin")
        for path in folder.glob("*ggml-*")
    }
    return {backend: backend in found for backend in BACKENDS} if found else {}
