"""The script that builds the engine: what it refuses, and how it says that something is missing."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

SCRIPT = Path(__file__).with_name("engine.sh")
TOOLS = ("bash", "cat", "uname", "ls", "mkdir", "dirname", "cut")


def script(*arguments: str | Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run it, with nothing but the tools of a folder if one is given."""
    env = {"HOME": "/nowhere", "PATH": str(path)} if path is not None else None
    return subprocess.run(
        [shutil.which("bash") or "bash", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the engine is prebuilt for x86-64")
def test_missing_tool(tmp_path: Path) -> None:
    """Exit code 77 and the tool's name tell that something is not installed."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(shutil.which(tool) or tool)
    done = script(tmp_path / "new", path=tools)
    assert done.returncode == 77
    assert "'npm' is not installed" in done.stderr
    assert not (tmp_path / "new").exists()


def test_unknown_kind(tmp_path: Path) -> None:
    """A kind that there is not is a mistake."""
    done = script(tmp_path / "new", "cuda")
    assert done.returncode == 2
    assert "unknown kind 'cuda'" in done.stderr


def test_folder_of_something_else(tmp_path: Path) -> None:
    """A folder that holds something else is never replaced."""
    (tmp_path / "precious").write_text("x")
    done = script(tmp_path)
    assert done.returncode in {2, 77}
    assert (tmp_path / "precious").read_text() == "x"


def test_finished_build_is_found(tmp_path: Path) -> None:
    """A folder with the stamp of this very recipe is taken as it is, without any tool."""
    line = next(line for line in SCRIPT.read_text().splitlines() if line.startswith("stamp="))
    names = {"$tag": "tag=", "$commit": "commit=", "$version": "version=", "$kind": "kind="}
    stamp = line.partition('"')[2].rstrip('"').replace("$kind", "cpu")
    for name, start in names.items():
        for text in SCRIPT.read_text().splitlines():
            if text.startswith(start) and name != "$kind":
                stamp = stamp.replace(name, text.partition("=")[2].split("#")[0].strip())
    (tmp_path / "stamp").write_text(stamp + "\n")
    done = script(tmp_path, "cpu")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == f"{tmp_path}/lib"
