"""The books of emulated device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.reference.failures import failed

if TYPE_CHECKING:
    from harness.reference.rig import Rig


class Memory:
    """What is still free on each device, in MiB."""

    def __init__(self, rig: Rig) -> None:
        self._free = [device.free_mib for device in rig.devices]

    def free_mib(self, device: int) -> int:
        """What is free on a device now."""
        return self._free[device]

    def take(self, device: int, size_mib: int, *, otherwise: str) -> None:
        """Take some.

        Raises:
            EngineStopError: there is not that much; ``otherwise`` is its message.
        """
        if size_mib > self._free[device]:
            raise failed(otherwise)
        self._free[device] -= size_mib
