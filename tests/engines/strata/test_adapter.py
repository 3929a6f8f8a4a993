"""Finding the binaries, what the flags bring, and the command line of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from hetero_test.engines.base import Binaries
from hetero_test.engines.strata.adapter import Strata
from hetero_test.errors import EngineNotFoundError, ExitCode
from hetero_test.values.run import Probe

PROBE = Probe(name="default", ids=(1, 2), max_new=60)


def touch(*paths: Path) -> None:
    """Make files, and the folders they are in."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.mark.parametrize("place", ["", "bin", "Release", "bin/Release", "build", "build/bin"])
def test_binaries_are_found_where_builds_put_them(tmp_path: Path, place: str) -> None:
    """The engine and its device tool are looked for apart."""
    touch(tmp_path / place / "strata", tmp_path / "strata-device")

    assert Strata().find(tmp_path) == Binaries(
        engine=tmp_path / place / "strata",
        device_tool=tmp_path / "strata-device",
        build_dir=tmp_path,
    )


def test_a_device_tool_may_be_missing(tmp_path: Path) -> None:
    """Without a device tool the engine is found all the same; the count stays unknown."""
    touch(tmp_path / "strata.exe")

    assert Strata().find(tmp_path).device_tool is None
    assert Strata().find(tmp_path).engine == tmp_path / "strata.exe"


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may have another working folder."""
    monkeypatch.chdir(tmp_path)
    touch(Path("build folder/strata"))

    assert Strata().find(Path("build folder")).engine == tmp_path / "build folder" / "strata"


def test_a_folder_is_no_binary(tmp_path: Path) -> None:
    """A source folder of that name is passed over."""
    (tmp_path / "strata").mkdir()
    touch(tmp_path / "bin" / "strata")

    assert Strata().find(tmp_path).engine == tmp_path / "bin" / "strata"


def test_without_a_binary_it_says_what_was_looked_for(tmp_path: Path) -> None:
    """The message names binary and folders; the exit code says that nothing can be compared."""
    with pytest.raises(EngineNotFoundError, match="no binary 'strata'") as caught:
        Strata().find(tmp_path)

    assert "bin/" in (caught.value.hint or "")
    assert caught.value.exit_code == ExitCode.NOTHING_TO_COMPARE


def test_the_build_of_another_engine_is_answered_with_its_matrix(tmp_path: Path) -> None:
    """A folder with llama-server is a mistake that has a name."""
    touch(tmp_path / "bin" / "llama-server")

    with pytest.raises(EngineNotFoundError) as caught:
        Strata().find(tmp_path)
    assert "--matrix llama_cpp" in (caught.value.hint or "")


@pytest.mark.parametrize(("name", "said"), [("nowhere", "does not exist"), ("file", "no folder")])
def test_a_build_folder_must_be_one(tmp_path: Path, name: str, said: str) -> None:
    """A missing folder and a file are told apart."""
    touch(tmp_path / "file")

    with pytest.raises(EngineNotFoundError, match=said):
        Strata().find(tmp_path / name)


@pytest.mark.parametrize(
    ("flags", "has"),
    [
        (("--mtp", "/m/mtp"), True),
        (("--spec", "4", "--mtp", "d"), True),
        ((), False),
        (("--mtp",), False),
        (("--mtp", "--spec", "4"), False),
        (("--mtp-max-t", "4"), False),
    ],
)
def test_a_drafter_is_one_that_is_named(flags: tuple[str, ...], has: bool) -> None:
    """There is a drafter only where the flag names a folder."""
    assert Strata().has_drafter(flags) is has


def test_the_command_is_an_argument_vector(tmp_path: Path) -> None:
    """The user's flags arrive as they are; the harness's own stand last."""
    binaries = Binaries(engine=tmp_path / "strata", device_tool=None, build_dir=tmp_path)
    flags = ("-ot", r"blk\..*=CPU", "--pack", "/p/my pack", "--", "é")

    assert Strata().command(binaries, flags, PROBE, probe_file=tmp_path / "a b.txt") == (
        str(tmp_path / "strata"),
        *flags,
        "--tokens-file",
        str(tmp_path / "a b.txt"),
        "--max-new",
        "60",
    )


def test_a_run_needs_no_dialogue(tmp_path: Path) -> None:
    """One process, ids in and ids out."""
    assert Strata().dialogue(("strata",), PROBE, tmp_path) is None
