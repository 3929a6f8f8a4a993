"""Device masks in the environment, and how to show an engine one device alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ORDER = ("CUDA_DEVICE_ORDER", "HIP_DEVICE_ORDER")
"""Variables that decide which card gets which number; recorded, never set."""


def set_already(names: Iterable[str], env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The masks among ``names``, and the variables of :data:`ORDER`, that ``env`` sets."""
    return tuple((name, env[name]) for name in (*names, *ORDER) if name in env)


def alone(
    on_device: Iterable[tuple[str, str]], device: str, env: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """The environment in which ``device`` is the only one.

    The engine numbers the devices that a mask leaves visible from 0 on, so behind a mask that
    is already set the device is the mask's entry at that position, be it number or UUID. A mask
    that has no such entry is another API's: it stays as it is, and hides what it hid before.

    Args:
        on_device: (variable, template) pairs of the matrix; ``{device}`` is filled in.
        device: as the engine numbers it.
        env: masks that are set already.
    """
    return tuple(
        (name, _shown(template, device, env[name]) if name in env else _filled(template, device))
        for name, template in on_device
    )


def _shown(template: str, device: str, mask: str) -> str:
    """The variable's value behind a mask that is set already."""
    entries = [entry.strip() for entry in mask.split(",")]
    if not (device.isascii() and device.isdigit()):
        return _filled(template, device)
    return _filled(template, entries[int(device)]) if int(device) < len(entries) else mask


def _filled(template: str, device: str) -> str:
    return template.replace("{device}", device)
