"""Who is where: the devices of the model and of the drafter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.reference.failures import refused
from harness.reference.flags import UNSET

if TYPE_CHECKING:
    from harness.reference.flags import Flags
    from harness.reference.rig import Rig


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The two roles; ``named`` tells whether any flag spoke of them, ``picked`` of auto."""

    main: int
    draft: int
    named: bool
    picked: bool

    @property
    def apart(self) -> bool:
        """Whether the drafter has a device of its own."""
        return self.main != self.draft


def resolve_roles(flags: Flags, rig: Rig) -> Roles:
    """The roles that the flags ask for on the devices that are visible.

    Raises:
        EngineStopError: the flags do not go together, or name a device that is not there.
    """
    helpers = any(flags.helper_caches)
    if flags.draft_prefill_parallel and not flags.has_roles:
        raise refused(
            "--draft-prefill-parallel is a hetero multi-GPU mode: it needs the roles, "
            "--main-device != --draft-device"
        )
    main, draft = flags.main_device, flags.draft_device
    visible = len(rig.devices)
    picked = flags.auto_roles and not flags.has_roles
    if picked:
        main, draft = 0, _other_device(rig)
    elif flags.has_roles:
        main, draft = max(main, 0), max(draft, 0)
    if main != UNSET and helpers and main != draft:
        raise refused(
            f"a remote draft (--main-device {main} --draft-device {draft}) and the remote expert "
            "caches (--expert-cache-deviceN) both address the second GPU; use one of them"
        )
    if max(main, draft) >= visible or min(flags.main_device, flags.draft_device) < UNSET:
        raise refused(
            f"--main-device {main} / --draft-device {draft}: out of range "
            f"({visible} visible GPU{'' if visible == 1 else 's'})"
        )
    if main != UNSET and not flags.has_drafter:
        raise refused(
            "--draft-device needs the MTP drafter (--mtp and --spec >= 2): without one there is "
            "nothing to place"
        )
    return Roles(main=max(main, 0), draft=max(draft, 0), named=main != UNSET, picked=picked)


def _other_device(rig: Rig) -> int:
    count = len(rig.devices)
    if count < 2:
        raise refused(
            f"--auto-roles needs at least two visible GPUs ({count} found): name the roles with "
            "--main-device and --draft-device, or leave them out"
        )
    # The lower number wins among devices with the same memory.
    return max(range(1, count), key=lambda ordinal: (rig.devices[ordinal].free_mib, -ordinal))
