"""The two output files of a process, watched while it writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hetero_test.errors import StoreError
from hetero_test.launch.capture import Capture, capturing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.process

CAP = 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A monotonic clock that stands still until it is set."""
    now = [50.0]
    monkeypatch.setattr("hetero_test.launch.capture.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def capture(tmp_path: Path, clock: list[float]) -> Iterator[Capture]:
    """Two empty files with a cap."""
    with capturing(stdout=tmp_path / "out", stderr=tmp_path / "err", cap_bytes=CAP) as files:
        yield files


def test_a_cut_file_goes_on_at_its_cap(capture: Capture, tmp_path: Path) -> None:
    """What is written after a cut follows what was kept, so the file never outgrows the cap."""
    os.write(capture.stdout, b"a" * (CAP + 500))
    capture.look()
    os.write(capture.stdout, b"b" * 10)

    assert (tmp_path / "out").read_bytes() == b"a" * CAP + b"b" * 10
    capture.look()
    assert (tmp_path / "out").stat().st_size == CAP
    assert capture.over_cap is True


def test_the_cap_is_each_files_own(capture: Capture) -> None:
    """Two files that together exceed the cap are whole."""
    os.write(capture.stdout, b"a" * CAP)
    os.write(capture.stderr, b"a" * CAP)
    capture.look()

    assert capture.over_cap is False


def test_growth_of_either_file_is_noted(capture: Capture, clock: list[float]) -> None:
    """The moment of the last growth is that of the look that saw it."""
    for descriptor in (capture.stdout, capture.stderr):
        clock[0] += 10
        capture.look()
        assert capture.grew_at == clock[0] - 10

        os.write(descriptor, b"x")
        capture.look()
        assert capture.grew_at == clock[0]


def test_a_flood_is_looked_at_sooner(capture: Capture, clock: list[float]) -> None:
    """The next look comes before the cap is met at the present rate."""
    capture.look()
    quiet_s = capture.next_look_s()

    clock[0] += 0.1
    os.write(capture.stdout, b"x" * (CAP // 2))
    capture.look()
    assert 0 < capture.next_look_s() < 0.1
    assert capture.next_look_s() < quiet_s

    clock[0] += 0.1
    capture.look()
    assert capture.next_look_s() == quiet_s


def test_looks_never_come_without_pause(capture: Capture, clock: list[float]) -> None:
    """Even at the cap the harness does not turn in circles."""
    clock[0] += 0.1
    os.write(capture.stdout, b"x" * CAP)
    capture.look()

    assert capture.next_look_s() >= 0.001


@pytest.mark.parametrize("stream", ["out", "err"])
def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path, stream: str) -> None:
    """The message names the file and the reason."""
    (tmp_path / stream).mkdir()

    with (
        pytest.raises(StoreError, match=f"{stream}: Is a directory"),
        capturing(stdout=tmp_path / "out", stderr=tmp_path / "err", cap_bytes=CAP),
    ):
        pass
