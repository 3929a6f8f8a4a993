"""An engine that is replaced while a matrix runs is noticed, whatever the clocks say."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import HeteroTestError
from harness.rig import file_sha256
from harness.unchanged import SameEngine
from tests.judge.factories import manifest

LONG_AGO, FAR_AHEAD = "2001-01-01T00:00:00+00:00", "2101-01-01T00:00:00+00:00"


def looker(path: Path, started: str) -> SameEngine:
    """One that looks at a file that was hashed as it is now."""
    made = manifest("1")
    engine = replace(made.engine, sha256=file_sha256(path))
    return SameEngine(path, replace(made, started=started, engine=engine))


@pytest.mark.parametrize("started", [LONG_AGO, FAR_AHEAD])
@pytest.mark.parametrize("in_place", [True, False])
def test_another_engine_is_noticed(tmp_path: Path, started: str, *, in_place: bool) -> None:
    """Of equal size and with its times set back, and also where the clock was set back."""
    path = tmp_path / "strata"
    path.write_text("one")
    same = looker(path, started)
    same.check()
    times = path.stat()
    other = path if in_place else tmp_path / "other"
    other.write_text("two")
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(path)

    with pytest.raises(HeteroTestError, match="replaced"):
        same.check()


@pytest.mark.parametrize("started", [LONG_AGO, FAR_AHEAD])
def test_an_engine_that_was_only_touched_is_the_same(tmp_path: Path, started: str) -> None:
    """Times alone, and a copy of the same bytes, are no other engine."""
    path = tmp_path / "strata"
    path.write_text("one")
    same = looker(path, started)
    for _ in range(2):
        same.check()
        path.touch()
        same.check()
        (tmp_path / "copy").write_text("one")
        (tmp_path / "copy").replace(path)
    same.check()


def test_an_engine_that_is_gone_is_told(tmp_path: Path) -> None:
    """What to do is said too."""
    path = tmp_path / "strata"
    path.write_text("one")
    same = looker(path, LONG_AGO)
    path.unlink()

    with pytest.raises(HeteroTestError, match="cannot be read") as caught:
        same.check()
    assert "--resume" in (caught.value.hint or "")
