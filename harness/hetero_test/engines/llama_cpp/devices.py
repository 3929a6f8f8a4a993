"""What llama-server says of itself before any launch: devices, flags, version.

:func:`listing` takes the output of ``--list-devices`` and gives devices: which are one card, of
what kind each is. The names of buffers and of devices behind a mask are matched with them.
:func:`survey` asks a binary for all of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hetero_test.engines.base import Survey
from hetero_test.engines.llama_cpp import flags as llama_flags
from hetero_test.engines.llama_cpp.patterns import decoded
from hetero_test.errors import EngineNotFoundError, NothingToCompareError, UsageError
from hetero_test.formats.toml_lines import suggestion
from hetero_test.launch.query import ask
from hetero_test.values.run import Device

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hetero_test.engines.base import Binaries

CPU: Final = "CPU"
"""Name and kind of the processor, which is no entry of the list."""

_LISTED = re.compile(r"^\s+(?P<id>\w+): (?P<name>.*) \((?P<total>\d{1,9}) MiB, \d{1,9} MiB free\)$")
_NUMBER = re.compile(r"\d+$")
_HELPERS: Final = frozenset({"BLAS", "AMX", "KleidiAI"})
"""Backends that have no memory of their own, whatever size they print."""
_TRANSLATED = re.compile(r"^Microsoft Direct3D12 \((?P<name>.+?)\)(?: \(Dozen\))?$")
_DRIVER = re.compile(r"\s*\([^()]*\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What ``--list-devices`` says.

    Attributes:
        devices: distinct cards, in the engine's order.
        notes: entries that are no device of their own: another name of a card already listed,
            or an accelerator that computes with the processor's memory.
    """

    devices: tuple[Device, ...]
    notes: tuple[str, ...] = ()


def listing(output: bytes) -> Listing:
    """The devices that the engine's output lists, each card once.

    One card may be listed by two backends (CUDA and Vulkan), or by a driver and a layer that
    translates to it. Two entries of one backend with one name are two cards. An accelerator
    without memory (a BLAS library) holds no layers, so it is not a device to place them on.
    """
    listed = [
        Device(
            id=found["id"],
            name=found["name"],
            kind=_kind(found["id"], found["name"]),
            memory_bytes=int(found["total"]) * 2**20,
        )
        for line in decoded(output)
        if (found := _LISTED.match(line)) and found["id"] != CPU
    ]
    distinct = {entry.id: entry for entry in listed if not _is_helper(entry)}
    twins: dict[str, Device] = {}
    for entry in distinct.values():
        if (twin := _twin(entry, tuple(distinct.values()))) is not None:
            twins[entry.id] = twin
    return Listing(
        devices=tuple(entry for name, entry in distinct.items() if name not in twins),
        notes=(
            *(
                f"{name} ({distinct[name].name}) is the same physical device as {twins[name].id}"
                for name in distinct
                if name in twins
            ),
            *(
                f"{entry.id} ({entry.name}) has no memory of its own: no layers are placed on it"
                for entry in listed
                if _is_helper(entry)
            ),
        ),
    )


def _is_helper(entry: Device) -> bool:
    """Whether an entry speeds the processor up and has no memory for layers."""
    return not entry.memory_bytes or _backend(entry.id) in _HELPERS


def _twin(entry: Device, entries: Sequence[Device]) -> Device | None:
    """The entry that is the same card under a name to be preferred, if there is one.

    A driver's own name goes before a translating layer's, a backend listed first before others.
    The n-th card of a name in one backend is the n-th of that name in another.
    """
    if is_remote(entry.id):
        return None
    card, backend = _card(entry.name), _backend(entry.id)
    alike = [
        other
        for other in entries
        if _card(other.name) == card and not is_remote(other.id) and not _is_translated(other)
    ]
    if _is_translated(entry):
        return alike[0] if alike else None
    first = _backend(alike[0].id)
    place = [other for other in alike if _backend(other.id) == backend].index(entry)
    there = [other for other in alike if _backend(other.id) == first]
    return there[place] if first != backend and place < len(there) else None


def _is_translated(device: Device) -> bool:
    return _TRANSLATED.match(device.name) is not None


def _backend(device_id: str) -> str:
    return _NUMBER.sub("", device_id)


def _card(name: str) -> str:
    """The card's model without what names a driver: ``AMD Radeon RX 6800 XT (RADV NAVI21)``."""
    translated = _TRANSLATED.match(name)
    return _DRIVER.sub("", name if translated is None else translated["name"]).casefold()


def _kind(device_id: str, name: str) -> str:
    """What decides rounding: backend and model; what lies behind RPC cannot be seen."""
    backend = _backend(device_id)
    return device_id if backend == "RPC" else f"{backend} {name}"


def declared(devices: Sequence[Device], kinds: Mapping[str, str]) -> tuple[Device, ...]:
    """The devices with the kinds that the user declares.

    A kind that is the name of another device means: of the same kind as that one. A kind
    declared for the CPU is another name for it.

    Raises:
        UsageError: a kind is declared for a device that is not there.
    """
    own = {CPU: CPU, **{device.id: device.kind for device in devices}}
    for name in kinds:
        if name not in own:
            raise UsageError(
                f"--device-kind {name}=…: no such device{suggestion(name, own)}",
                hint=f"devices here: {', '.join(own)}",
            )
    cpu = kinds.get(CPU)
    resolved = {name: CPU if kind == cpu else own.get(kind, kind) for name, kind in kinds.items()}
    return tuple(replace(device, kind=resolved.get(device.id, device.kind)) for device in devices)


def behind_mask(
    devices: Sequence[Device], named: Mapping[str, str], mask: str
) -> tuple[Device, ...]:
    """The devices as a run numbers them that sees them through a mask.

    A device is the card that the run's own log names; one that no line names, or a name of
    cards that were declared to be of several kinds, is like itself behind the same mask alone.

    Args:
        devices: as they were listed before.
        named: names by number, from the run's log.
        mask: the variables that are set, in words.
    """
    here = {device.id: device for device in devices}
    for number, name in named.items():
        here.setdefault(number, Device(id=number, name=name, kind=_kind(number, name)))
    return tuple(
        device if is_remote(device.id) else _as_named(device, devices, named.get(device.id), mask)
        for device in here.values()
    )


def _as_named(device: Device, listed: Sequence[Device], name: str | None, mask: str) -> Device:
    kinds = {
        other.kind
        for other in listed
        if other.name == name and _backend(other.id) == _backend(device.id)
    }
    if name is None or len(kinds) > 1:
        return replace(device, kind=f"{device.id} behind {mask}")
    return replace(device, name=name, kind=kinds.pop() if kinds else _kind(device.id, name))


def is_remote(device_id: str) -> bool:
    """Whether a device is another machine's: no mask of this one gives it another number."""
    return _backend(device_id) == "RPC"


def fast_first(devices: Sequence[Device], fast: str | None) -> tuple[Device, ...]:
    """The devices with the one that the user calls fast in front.

    Raises:
        UsageError: there is no such device.
    """
    if fast is None:
        return tuple(devices)
    names = [device.id for device in devices]
    if fast not in names:
        raise UsageError(
            f"--fast-device {fast}: no such device{suggestion(fast, names)}",
            hint=f"devices here: {', '.join(names) or 'none'}",
        )
    return tuple(sorted(devices, key=lambda device: device.id != fast))


def buffer_type(device: Device, devices: Iterable[Device]) -> str:
    """What ``-ot`` calls the memory of a device.

    An RPC device's is named by its place within its server, not by its number.
    """
    if not is_remote(device.id):
        return device.id
    number = int(_NUMBER.findall(device.id)[0])
    before = sum(
        other.name == device.name and int(_NUMBER.findall(other.id)[0]) < number
        for other in devices
        if is_remote(other.id)
    )
    return f"RPC{before}[{device.name}]"


def device_of(buffer: str, devices: Iterable[Device]) -> str:
    """The device that computes with what lies in a buffer: one of the list, or the CPU.

    Memory of the host that a driver pinned (``CUDA_Host``) is the CPU's. A buffer that no
    device owns (the halves of a row split) stands for itself.
    """
    known = tuple(devices)
    for device in known:
        if buffer in {device.id, buffer_type(device, known)}:
            return device.id
    if buffer == CPU or buffer.startswith((f"{CPU}_", "AMX", "BLAS")) or buffer.endswith("_Host"):
        return CPU
    stem = buffer.partition("_")[0]
    return stem if any(device.id == stem for device in known) else buffer


_PATIENCE_S: Final = 120.0
"""Starting a driver on a cold machine takes a while; an RPC server may hang."""
_FLAG = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
_DESCRIPTION = re.compile(r"(?<![,\s])\s{2,}")
"""What ends a line's flags; blanks also stand between a short flag's comma and the long one."""
_VARIABLES = re.compile(r"\(env: ([^()]*)\)")
_FLAG_VARIABLE: Final = "LLAMA_ARG_"
_PREFIXES: Final = ("LLAMA_", "GGML_")
_VERSION = re.compile(r"^version: (.+)$")
_SHOWN: Final = 3


def survey(
    binaries: Binaries,
    flags: Sequence[str],
    *,
    devices: int | None,
    kinds: Mapping[str, str],
    fast: str | None,
) -> Survey:
    """Devices as ``--list-devices`` has them, the fast one first; flags from ``--help``.

    Raises:
        EngineNotFoundError: the binary cannot be run.
        NothingToCompareError: it cannot list its devices; an RPC server may be down.
        UsageError: the user names a device that is not there, or a number of devices.
    """
    if devices is not None:
        raise UsageError(
            "--devices: this engine lists its devices by name",
            hint="leave it out; which of them are used is set by --only and --skip",
        )
    rpc = llama_flags.value(flags, llama_flags.RPC)
    # The list is printed as soon as its flag is read: what adds devices goes before it.
    asked = (*(() if rpc is None else ("--rpc", rpc)), "--list-devices")
    code, output = _ask(binaries, asked)
    if code != 0:
        tail = [line for line in decoded(output) if line.strip()][-_SHOWN:]
        raise NothingToCompareError(
            f"{binaries.engine.name} {' '.join(asked)} failed: {' / '.join(tail) or 'no word'}",
            hint="see that every RPC server runs, and that it is of the same build"
            if rpc is not None
            else None,
        )
    found = listing(output)
    ordered = fast_first(declared(found.devices, kinds), fast)
    _, help_text = _ask(binaries, ("--help",))
    _, version = _ask(binaries, ("--version",))
    return Survey(
        devices=ordered,
        device_count=len(ordered),
        how=f"{binaries.engine.name} {' '.join(asked)}",
        known_flags=known_flags(help_text),
        version=next((m[1] for line in decoded(version) if (m := _VERSION.match(line))), None),
        notes=found.notes,
        variables=variables(help_text),
        prefixes=_PREFIXES,
    )


def known_flags(help_text: bytes) -> frozenset[str] | None:
    """Every flag that a help text lists; None where it lists none."""
    return frozenset(flag for names, _ in _entries(help_text) for flag in names) or None


def variables(help_text: bytes) -> Mapping[str, frozenset[str]]:
    """The environment variables that a help text names, each with all names of its flag.

    Of ``LLAMA_ARG_X`` the opposite is ``LLAMA_ARG_NO_X``, as the engine takes it.
    """
    found: dict[str, frozenset[str]] = {}
    for names, text in _entries(help_text):
        for told in _VARIABLES.findall(text):
            for name in re.findall(r"[A-Z][A-Z0-9_]+", told):
                found[name] = names
                if name.startswith(_FLAG_VARIABLE):
                    found[name.replace(_FLAG_VARIABLE, f"{_FLAG_VARIABLE}NO_", 1)] = names
    return found


def _entries(help_text: bytes) -> Iterable[tuple[frozenset[str], str]]:
    """Each flag of a help text: all its names, and what is said of it on one line."""
    names: frozenset[str] = frozenset()
    words: list[str] = []
    for line in decoded(help_text):
        if line.startswith("-"):
            yield names, " ".join(words)
            names, words = frozenset(_FLAG.findall(_DESCRIPTION.split(line)[0])), []
        words += line.split()
    yield names, " ".join(words)


def _ask(binaries: Binaries, arguments: Sequence[str]) -> tuple[int | None, bytes]:
    """Exit code (None: ended by a signal) and output of a question to the binary."""
    answer = ask((str(binaries.engine), *arguments), limit_s=_PATIENCE_S)
    outcome = answer.outcome
    assert outcome is not None
    if outcome.start_error is not None:
        raise EngineNotFoundError(
            f"the engine cannot be run: {outcome.start_error}",
            hint="see that it is executable and built for this machine",
        )
    if outcome.stopped is not None:
        raise NothingToCompareError(
            f"{binaries.engine.name} {' '.join(arguments)} gave no answer in {_PATIENCE_S:g} s",
            hint="an RPC server or a driver may hang",
        )
    return outcome.exit_code, (answer.stdout + answer.stderr).encode()
