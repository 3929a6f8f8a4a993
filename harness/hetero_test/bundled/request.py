"""What one run is asked for, once nothing about it is refused any more."""

from __future__ import annotations

from dataclasses import dataclass

from hetero_test.bundled.faults import ActiveFaults
from hetero_test.bundled.flags import Flags
from hetero_test.bundled.log import Log
from hetero_test.bundled.pack import Pack
from hetero_test.bundled.rig import Rig, Roles
from hetero_test.bundled.sampler import Pick

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
