"""A build folder whose llama-server does as its scenario says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fake_server.py")


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """The build folder."""
    folder = tmp_path / "build"
    folder.mkdir()
    server = folder / "llama-server"
    # -S and -I: a test server needs nothing that is installed, and starts at once.
    server.write_text(f"#!{sys.executable} -IS\n{SOURCE.read_text()}")
    server.chmod(0o755)
    return folder
