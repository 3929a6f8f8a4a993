"""Who holds memory on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.rig.holders import drm_holders, name_holders
from hetero_test.rig.nvidia import Holding
from tests.rig.machines import put

if TYPE_CHECKING:
    from pathlib import Path

KIB = 1024


def process(proc: Path, pid: int, program: str, cgroup: str = "0::/\n") -> None:
    """A process with a command line and a control group."""
    put(proc / str(pid) / "cmdline", f"{program}\0--model\0secret.gguf\0")
    put(proc / str(pid) / "cgroup", cgroup)
    (proc / str(pid) / "fd").mkdir(exist_ok=True)


def opens(proc: Path, pid: int, number: int, target: str, fdinfo: str) -> None:
    """A descriptor of the process."""
    (proc / str(pid) / "fd" / str(number)).symlink_to(target)
    put(proc / str(pid) / "fdinfo" / str(number), fdinfo)


def test_a_process_is_named_with_its_unit_and_without_its_folder(tmp_path: Path) -> None:
    """The unit would start it again; folders and arguments are left out."""
    process(tmp_path, 42, "/home/someone/llama-server", "0::/system.slice/llama.service\n")
    (holder,) = name_holders([Holding(pid=42, memory_bytes=7)], tmp_path, "NVML")
    assert (holder.pid, holder.name, holder.unit) == (42, "llama-server", "llama.service")
    assert (holder.memory_bytes, holder.source) == (7, "NVML")


def test_the_drivers_own_name_is_used_where_there_is_one(tmp_path: Path) -> None:
    """nvidia-smi names the program with its folder, and a process may be gone already."""
    (known, gone) = name_holders(
        [Holding(pid=2), Holding(pid=1, name="/opt/x/python3")], tmp_path, "nvidia-smi"
    )
    assert (known.name, known.unit) == ("python3", None)
    assert gone.name == "unknown"


def test_a_users_session_is_no_unit(tmp_path: Path) -> None:
    """What hangs under user@1000.service is not stopped by stopping that."""
    scope = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n"
    process(tmp_path, 42, "ollama", scope)
    assert name_holders([Holding(pid=42)], tmp_path, "x")[0].unit is None


def test_drm_clients_are_summed_by_device(tmp_path: Path) -> None:
    """Two clients of one process add, one client seen through two descriptors counts once."""
    process(tmp_path, 10, "llama-server")
    info = "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: {}\n{}: {} KiB\n"
    opens(tmp_path, 10, 3, "/dev/dri/renderD128", info.format(7, "drm-memory-vram", 100))
    opens(tmp_path, 10, 4, "/dev/dri/renderD128", info.format(7, "drm-memory-vram", 100))
    opens(tmp_path, 10, 5, "/dev/dri/renderD128", info.format(8, "drm-total-vram0", 50))
    opens(tmp_path, 10, 6, "/dev/null", "")
    process(tmp_path, 11, "bash")
    put(tmp_path / "version", "not a process")
    found = drm_holders(tmp_path)
    assert found is not None
    (holder,) = found["0000:03:00.0"]
    assert (holder.pid, holder.name, holder.memory_bytes) == (10, "llama-server", 150 * KIB)


def test_a_client_that_tells_no_memory_holds_the_device_all_the_same(tmp_path: Path) -> None:
    """Its size is unknown, which is not 0."""
    process(tmp_path, 10, "x")
    opens(tmp_path, 10, 3, "/dev/dri/card0", "drm-pdev: 0000:03:00.0\ndrm-client-id: 1\n")
    found = drm_holders(tmp_path)
    assert found is not None
    assert found["0000:03:00.0"][0].memory_bytes is None


def test_what_may_not_be_looked_into_is_unknown(tmp_path: Path) -> None:
    """Without procfs, or without readable descriptors, holders are unknown, not absent."""
    assert drm_holders(tmp_path / "none") is None
    put(tmp_path / "1/comm", "init")
    assert drm_holders(tmp_path) is None
    process(tmp_path, 2, "x")
    assert drm_holders(tmp_path) == {}


def test_damaged_fdinfo_is_passed_over(tmp_path: Path) -> None:
    """A malformed address names no device."""
    process(tmp_path, 10, "x")
    opens(tmp_path, 10, 3, "/dev/dri/card0", "drm-pdev: ../../etc\n")
    opens(tmp_path, 10, 4, "/dev/dri/card0", "")
    assert drm_holders(tmp_path) == {}
