"""The emulated rig: its files, what of it is visible, and who may be where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from hetero_test.bundled.failures import EngineStopError
from hetero_test.bundled.rig import RIGS, read_rig, rig_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bundled.engine import Engine

UNEQUAL = read_rig(rig_file("two_unequal"))


@pytest.mark.parametrize(
    ("mask", "ordinals"),
    [
        (None, [0, 1]),
        ("0,1", [0, 1]),
        ("1,0", [1, 0]),
        ("1", [1]),
        ("0,7,1", [0]),
        ("7", []),
        ("-1", []),
        ("", []),
        (" 1 , 0", [1, 0]),
        ("1,1", [1]),
        ("x", []),
    ],
)
def test_a_mask_hides_and_renumbers(mask: str | None, ordinals: list[int]) -> None:
    """The devices are those listed up to the first that is none, in that order."""
    environ = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
    assert [device.ordinal for device in UNEQUAL.visible(environ).devices] == ordinals


def test_the_engine_numbers_what_the_mask_shows(unequal: Engine) -> None:
    """Behind a mask device 0 is the first visible one, and roles use the new numbers."""
    swapped = unequal(
        "--main-device", "1", "--draft-device", "0", env={"CUDA_VISIBLE_DEVICES": "1,0"}
    )
    assert swapped.says(r"^strata generate: GPU 1: Emulated EX-10, compute capability 8\.6$")
    plain = unequal("--main-device", "0", "--draft-device", "1")
    assert (swapped.slots, swapped.stream) == (plain.slots, plain.stream)
    alone = unequal("--main-device", "1", env={"CUDA_VISIBLE_DEVICES": "0"})
    assert alone.code == 2


def test_no_visible_device_is_a_failure(unequal: Engine) -> None:
    """With every device hidden the engine cannot run."""
    run = unequal(env={"CUDA_VISIBLE_DEVICES": ""})
    assert (run.code, run.out) == (1, "")
    assert run.err == "strata generate: no CUDA-capable device is detected\n"


def test_the_shipped_rigs_are_what_their_names_say() -> None:
    """Two equal cards, two unequal ones, one card."""
    kinds = {
        path.stem: [device.name for device in read_rig(path).devices]
        for path in RIGS.glob("*.toml")
    }
    assert set(kinds) == {"two_equal", "two_unequal", "one"}
    assert len(set(kinds["two_equal"])) == 1
    assert len(kinds["two_equal"]) == 2
    assert len(set(kinds["two_unequal"])) == 2
    assert len(kinds["one"]) == 1


def test_every_key_of_a_rig_is_explained() -> None:
    """The first shipped file explains each key that it uses."""
    text = (RIGS / "two_equal.toml").read_text()
    head, _, body = text.partition('\nname = "')
    keys = set(re.findall(r"^(\w+) =", body, re.MULTILINE)) - {"name"}
    for key in keys:
        assert key in head


def test_a_rig_is_a_name_or_a_file(tmp_path: Path) -> None:
    """An unknown name is told which there are."""
    own = tmp_path / "own rig.toml"
    own.write_text((RIGS / "one.toml").read_text())
    assert rig_file(own) == own
    assert rig_file(str(own)) == own
    assert rig_file("one") == RIGS / "one.toml"
    with pytest.raises(FileNotFoundError, match="shipped: one, two_equal, two_unequal"):
        rig_file("three")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("activation_bits = 6", "activation_bits = 3"),
        ("memory_mib = 8192", ""),
        ("[host]", "[hosts]"),
        ('name = "Emulated EX-8"', "name ="),
        ('compute_capability = "6.1"', 'compute_capability = "six"'),
    ],
)
def test_a_broken_rig_is_named(tmp_path: Path, old: str, new: str) -> None:
    """A file that does not describe a rig is refused with its path."""
    path = tmp_path / "rig.toml"
    path.write_text((RIGS / "two_equal.toml").read_text().replace(old, new))
    with pytest.raises(EngineStopError, match=r"rig\.toml: not an emulated rig: "):
        read_rig(path)


def test_devices_of_one_name_round_alike(tmp_path: Path) -> None:
    """One kind cannot have two arithmetics."""
    path = tmp_path / "rig.toml"
    text = (RIGS / "two_equal.toml").read_text()
    head, _, tail = text.rpartition("activation_bits = 6")
    path.write_text(f"{head}activation_bits = 7{tail}")
    with pytest.raises(EngineStopError, match="round differently"):
        read_rig(path)
