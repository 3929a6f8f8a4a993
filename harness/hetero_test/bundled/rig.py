"""The emulated rig: devices and host as a TOML file describes them.

Also the roles: which device the model and which the drafter is on.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetero_test.bundled.failures import failed, refused
from hetero_test.bundled.flags import UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hetero_test.bundled.flags import Flags

RIGS = Path(__file__).with_name("rigs")
MASK = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedDevice:
    """One emulated card; ``name`` is its kind, ``ordinal`` its place in the rig's file."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    memory_mib: int
    free_mib: int
    link_gb_s: float
    multiprocessors: int
    activation_bits: int
    peers: tuple[int, ...]

    @property
    def has_dp4a(self) -> bool:
        """Whether the card multiplies bytes four at a time (from 6.1 on, but not 6.2)."""
        return self.capability >= (6, 1) and self.capability != (6, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedHost:
    """The processor that computes the experts which no device holds."""

    name: str
    avx512: bool
    activation_bits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedRig:
    """A machine; ``devices`` are in the order in which the engine numbers them."""

    name: str
    host: EmulatedHost
    devices: tuple[EmulatedDevice, ...]

    def visible(self, environ: Mapping[str, str]) -> EmulatedRig:
        """The rig as a process sees it through ``CUDA_VISIBLE_DEVICES``.

        CUDA reads ordinals separated by commas, in the order of the new numbers. The first entry
        that is not a device, or is named twice, ends the list. A variable that is set but empty
        hides all devices.
        """
        mask = environ.get(MASK)
        if mask is None:
            return self
        seen: list[EmulatedDevice] = []
        for entry in mask.split(","):
            digits = re.match(r"\s*(\d+)\s*$", entry)
            ordinal = int(digits[1]) if digits else -1
            if not 0 <= ordinal < len(self.devices) or self.devices[ordinal] in seen:
                break
            seen.append(self.devices[ordinal])
        return replace(self, devices=tuple(seen))

    def sees(self, a: int, b: int) -> bool:
        """Whether the card at place ``a`` can read the memory of the one at ``b``."""
        return self.devices[b].ordinal in self.devices[a].peers


def rig_file(rig: str | Path) -> Path:
    """The file of a shipped rig, by its name, or the path itself.

    Raises:
        FileNotFoundError: it is neither a shipped rig nor a file.
    """
    shipped = RIGS / f"{rig}.toml"
    if isinstance(rig, str) and shipped.is_file():
        return shipped
    if Path(rig).is_file():
        return Path(rig)
    names = ", ".join(sorted(path.stem for path in RIGS.glob("*.toml")))
    raise FileNotFoundError(f"{rig}: no rig of that name (shipped: {names}), nor a TOML file")


def read_rig(path: Path) -> EmulatedRig:
    """The rig in a file; its keys are explained in ``rigs/two_equal.toml``.

    Raises:
        EngineStopError: the file cannot be read or does not describe a rig.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        host = table["host"]
        rig = EmulatedRig(
            name=str(table["name"]),
            host=EmulatedHost(
                name=str(host["name"]),
                avx512=bool(host["avx512"]),
                activation_bits=int(host["activation_bits"]),
            ),
            devices=tuple(
                _device(ordinal, entry) for ordinal, entry in enumerate(table.get("device", []))
            ),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise failed(f"{path}: not an emulated rig: {error!r}") from error
    kinds: dict[str, int] = {}
    for device in rig.devices:
        if kinds.setdefault(device.name, device.activation_bits) != device.activation_bits:
            raise failed(f"{path}: two devices named {device.name!r} round differently")
    return rig


def _device(ordinal: int, entry: Mapping[str, Any]) -> EmulatedDevice:
    major, _, minor = str(entry["compute_capability"]).partition(".")
    bits = int(entry["activation_bits"])
    if not 4 <= bits <= 12:
        raise ValueError(f"activation_bits = {bits}: 4 to 12 are possible")
    return EmulatedDevice(
        ordinal=ordinal,
        name=str(entry["name"]),
        capability=(int(major), int(minor)),
        memory_mib=int(entry["memory_mib"]),
        free_mib=int(entry["free_mib"]),
        link_gb_s=float(entry["link_gb_s"]),
        multiprocessors=int(entry["multiprocessors"]),
        activation_bits=bits,
        peers=tuple(int(peer) for peer in entry.get("peers", ())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRoles:
    """The devices of the model and of the drafter.

    Attributes:
        main: the model's device.
        draft: the drafter's device.
        named: whether a flag named a role.
        picked: whether ``--auto-roles`` chose the devices.
    """

    main: int
    draft: int
    named: bool
    picked: bool

    @property
    def apart(self) -> bool:
        """Whether the drafter has a device of its own."""
        return self.main != self.draft


def resolve_roles(flags: Flags, rig: EmulatedRig) -> DeviceRoles:
    """The roles that the flags ask for on the devices that are visible.

    Raises:
        EngineStopError: the flags contradict each other, or name a device that does not exist.
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
    return DeviceRoles(main=max(main, 0), draft=max(draft, 0), named=main != UNSET, picked=picked)


def _other_device(rig: EmulatedRig) -> int:
    count = len(rig.devices)
    if count < 2:
        raise refused(
            f"--auto-roles needs at least two visible GPUs ({count} found): name the roles with "
            "--main-device and --draft-device, or leave them out"
        )
    # The lower number wins among devices with the same memory.
    return max(range(1, count), key=lambda ordinal: (rig.devices[ordinal].free_mib, -ordinal))
