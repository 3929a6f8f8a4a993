"""How an engine is shown one device alone, also behind masks that are set already."""

from __future__ import annotations

import pytest

from hetero_test.plan.visible_devices import alone, set_already

ON_DEVICE = (("CUDA_VISIBLE_DEVICES", "{device}"), ("HIP_VISIBLE_DEVICES", "{device}"))


def test_without_a_mask_the_device_is_shown_by_its_number() -> None:
    """Every variable of the matrix gets it: which one counts is the engine's matter."""
    assert alone(ON_DEVICE, "1", {}) == (
        ("CUDA_VISIBLE_DEVICES", "1"),
        ("HIP_VISIBLE_DEVICES", "1"),
    )


@pytest.mark.parametrize(
    ("mask", "device", "shown"),
    [
        ("2,3", "0", "2"),
        ("2,3", "1", "3"),
        (" 3 , 2 ", "0", "3"),
        ("GPU-8f2c,GPU-11aa", "1", "GPU-11aa"),
    ],
)
def test_behind_a_mask_the_device_is_the_masks_entry(mask: str, device: str, shown: str) -> None:
    """The engine numbers what a mask leaves visible from 0 on, be it a number or a UUID."""
    assert alone(ON_DEVICE[:1], device, {"CUDA_VISIBLE_DEVICES": mask}) == (
        ("CUDA_VISIBLE_DEVICES", shown),
    )


def test_each_variable_has_its_own_mask() -> None:
    """What hides CUDA cards says nothing of HIP cards."""
    assert dict(alone(ON_DEVICE, "1", {"CUDA_VISIBLE_DEVICES": "4,5"})) == {
        "CUDA_VISIBLE_DEVICES": "5",
        "HIP_VISIBLE_DEVICES": "1",
    }


@pytest.mark.parametrize("mask", ["0", ""])
def test_a_mask_without_that_entry_goes_on_hiding_what_it_hid(mask: str) -> None:
    """The device is another API's; a card that the user hid is never shown."""
    assert alone(ON_DEVICE[:1], "1", {"CUDA_VISIBLE_DEVICES": mask}) == (
        ("CUDA_VISIBLE_DEVICES", mask),
    )


@pytest.mark.parametrize("device", ["Vulkan1", "²"])
def test_a_device_that_is_no_number_is_shown_by_its_name(device: str) -> None:
    """Only numbers count the entries of a mask."""
    assert alone(ON_DEVICE[:1], device, {"CUDA_VISIBLE_DEVICES": "0,1"}) == (
        ("CUDA_VISIBLE_DEVICES", device),
    )


def test_a_template_may_hold_more_than_the_device() -> None:
    """The matrix says what a variable looks like."""
    assert alone((("ONLY", "level_zero:{device}"),), "1", {}) == (("ONLY", "level_zero:1"),)


def test_masks_and_orders_that_are_set_already_are_recorded() -> None:
    """Recorded are the matrix's variables and those that number the cards."""
    env = {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "PATH": "/bin"}

    assert set_already(["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"], env) == (
        ("CUDA_VISIBLE_DEVICES", "1"),
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
    )
