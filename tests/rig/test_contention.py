"""Other users of a device and slow links are reported, and change no verdict."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hetero_test.rig.contention import ContentionWatch, DeviceUse, amd, looks

GIB = 2**30


@pytest.mark.process
def test_another_process_on_a_device_is_told_and_our_own_engine_is_not() -> None:
    """A process that we did not start is named with the most memory that it was seen to hold."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    held = iter((GIB, 3 * GIB, 2 * GIB))
    try:

        def look() -> tuple[DeviceUse, ...]:
            holders = {
                os.getpid(): ("us", GIB),
                child.pid: ("engine", GIB),
                1: ("desktop", next(held)),
            }
            return (DeviceUse(name="device 0", holders=holders),)

        watch = ContentionWatch([look])
        for _ in range(3):
            watch.look()
    finally:
        child.communicate()
    assert watch.told() == ("device 0 was also held by another process, desktop (3072 MiB)",)


def test_the_best_link_that_was_seen_counts() -> None:
    """An idle link is not a slow link: only one that never reached its maximum is reported."""
    speeds = iter(((1.0, "Gen1 x4"), (7.88, "Gen4 x4"), (1.0, "Gen1 x4")))

    def look() -> tuple[DeviceUse, ...]:
        now, words = next(speeds)
        return (
            DeviceUse(name="A", link_gb_s=now, link=words, capable_gb_s=7.88, capable="Gen4 x4"),
            DeviceUse(name="B", link_gb_s=now, link=words, capable_gb_s=31.5, capable="Gen4 x16"),
            DeviceUse(name="C"),
        )

    watch = ContentionWatch([look])
    for _ in range(3):
        watch.look()
    assert watch.told() == (
        "the link of B ran at Gen4 x4 at best while engines ran, below its maximum of Gen4 x16",
    )


def test_a_driver_that_fails_tells_nothing() -> None:
    """Watching never ends a matrix."""

    def look() -> tuple[DeviceUse, ...]:
        raise OSError("driver")

    with ContentionWatch([look], period_s=0.01) as watch:
        watch.look()
    assert watch.told() == ()


def test_it_looks_while_it_is_entered_and_leaves_no_thread() -> None:
    """Queries run in a thread of their own that ends with the matrix."""
    often = threading.Semaphore(0)

    def look() -> tuple[DeviceUse, ...]:
        often.release()
        return ()

    with ContentionWatch([look], period_s=0.01) as watch:
        for _ in range(4):
            assert often.acquire(timeout=10)
    assert watch.told() == ()
    assert "bystanders" not in [thread.name for thread in threading.enumerate()]


def test_without_a_device_nothing_is_looked_at(tmp_path: Path) -> None:
    """A machine without NVIDIA's driver and without a display controller is left alone."""
    (tmp_path / "sys/bus/pci/devices/0000:00:02.0").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:00:02.0/class").write_text("0x020000\n")
    (tmp_path / "dev").mkdir()
    assert looks(tmp_path / "sys", tmp_path / "dev") == ()
    (tmp_path / "sys/bus/pci/devices/0000:00:02.0/class").write_text("0x030000\n")
    (tmp_path / "dev/dri").mkdir()
    assert looks(tmp_path / "sys", tmp_path / "dev") == (amd,)
