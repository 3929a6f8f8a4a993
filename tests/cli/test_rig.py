"""``hetero-test rig``."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import pytest

from hetero_test.cli import rig as rig_command
from hetero_test.errors import ExitCode, StoreError, UsageError
from hetero_test.rig.facts_file import load_rig

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process


def rig(*argv: str) -> int:
    """Run the command without the read test, which takes seconds."""
    parser = argparse.ArgumentParser()
    rig_command.add_arguments(parser)
    return rig_command.run(parser.parse_args([*argv, "--no-read-test"]))


def test_stdout_is_a_rig_file_and_stderr_the_notes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is printed can be given to --rig as it is."""
    assert rig() == ExitCode.PASS
    out, err = capfd.readouterr()
    path = tmp_path / "rig.toml"
    path.write_text(out, encoding="utf-8")
    facts = load_rig(path)
    assert facts.device("CPU") is not None
    for note in facts.notes:
        assert note[:60] in err


def test_json_is_versioned_and_holds_the_same_facts(capfd: pytest.CaptureFixture[str]) -> None:
    """Unknown is null, and every fact has value, origin and source."""
    assert rig("--json") == ExitCode.PASS
    document = json.loads(capfd.readouterr().out)
    assert document["schema"] == "hetero-test/rig/1"
    cpu = document["devices"][-1]
    assert cpu["id"] == "CPU"
    assert set(cpu["device_class"]) == {"value", "origin", "source", "low", "high"}
    assert cpu["link"] is None


def test_a_file_is_written_and_never_overwritten(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It may hold fitted facts by then."""
    path = tmp_path / "rig.toml"
    assert rig("--out", str(path)) == ExitCode.PASS
    assert capfd.readouterr().out == ""
    assert load_rig(path).devices
    with pytest.raises(UsageError, match="exists"):
        rig("--out", str(path))


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file in the place of a folder."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be written"):
        rig("--out", str(tmp_path / "file/rig.toml"))


@pytest.mark.parametrize("seconds", ["0", "-3", "nan", "1e9"])
def test_how_long_to_watch_has_bounds(seconds: str) -> None:
    """Nobody watches for no time or for days."""
    with pytest.raises(UsageError, match="between"):
        rig("--under-load", "--seconds", seconds)


def test_under_load_says_how_long(capfd: pytest.CaptureFixture[str]) -> None:
    """The user has to keep the load running meanwhile."""
    assert rig("--under-load", "--seconds", "0.5") == ExitCode.PASS
    assert "watching for 0.5 s: keep your load running" in capfd.readouterr().err


def test_a_log_that_is_none_is_refused_before_anything_is_probed(tmp_path: Path) -> None:
    """A wrong file is reported at once."""
    path = tmp_path / "log"
    path.write_text("nothing")
    with pytest.raises(UsageError, match="no line of a llama"):
        rig("--log", str(path))
