"""What one run is asked for, once nothing about it is refused any more."""

from __future__ import annotations

from dataclasses import dataclass

from harness.reference.faults import ActiveFaults
from harness.reference.flags import Flags
from harness.reference.log import Log
from harness.reference.pack import Pack
from harness.reference.rig import Rig
from harness.reference.roles import Roles
from harness.reference.sampler import Pick

_WIDEST_WINDOW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One run.

    Args:
        rig: as the process sees it, behind the device mask.
        sampling: what the log calls the token rule ``pick``.
    """

    flags: Flags
    prompt: tuple[int, ...]
    pack: Pack
    rig: Rig
    roles: Roles
    pick: Pick
    sampling: str
    faults: ActiveFaults
    log: Log

    @property
    def capacity(self) -> int:
        """Positions that can be reached, the last window's rejected drafts included."""
        return len(self.prompt) + self.flags.max_new + 2 * _WIDEST_WINDOW
