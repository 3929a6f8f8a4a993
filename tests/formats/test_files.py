"""Whatever a path leads to, it is read up to a bound or refused."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hetero_test.formats.files import MIB, inside, read_bytes


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[dict[str, Path]]:
    """One path of each kind that is no regular file."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        yield {
            "it is a pipe, not a file": tmp_path / "pipe",
            "it is a folder": tmp_path / "folder",
            "it is a device, not a file": tmp_path / "link",
            "No such device or address": tmp_path / "socket",
            "No such file or directory": tmp_path / "none",
            "no file can have this name": Path("a\0b"),
        }


def test_what_is_no_regular_file_is_refused_at_once(odd: dict[str, Path]) -> None:
    """A device, pipe, socket or folder gives an error that names its kind; nothing is waited for.

    Links are followed: what they lead to decides.
    """
    for why, path in odd.items():
        with pytest.raises(OSError, match=r".") as told:
            read_bytes(path, most=MIB)
        assert told.value.strerror == why


def test_a_file_may_have_as_many_bytes_as_its_bound_and_no_more(tmp_path: Path) -> None:
    """The bound itself is read whole; one byte more is an error that says the bound."""
    (tmp_path / "file").write_bytes(b"x" * MIB)
    assert read_bytes(tmp_path / "file", most=MIB) == b"x" * MIB
    (tmp_path / "file").write_bytes(b"x" * (MIB + 1))
    with pytest.raises(OSError, match="it is larger than 1 MiB"):
        read_bytes(tmp_path / "file", most=MIB)


@pytest.mark.parametrize(
    "relative", ["../out", "/etc/passwd", "a/../../x", "link", "link/x", "a\0"]
)
def test_a_path_that_leads_out_of_its_folder_is_refused(tmp_path: Path, relative: str) -> None:
    """Neither ``..`` nor an absolute path is a way out, nor a link, wherever it leads."""
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "link").symlink_to(root / "a")
    with pytest.raises(OSError, match=r"out of its own place|no file can have"):
        inside(root, relative)


def test_a_folder_behind_a_link_is_still_a_folder_of_its_own(tmp_path: Path) -> None:
    """The folder itself may be reached by a link: what is below it lies in its own place."""
    (tmp_path / "real/a").mkdir(parents=True)
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert inside(tmp_path / "root", "a") == tmp_path / "root/a"
