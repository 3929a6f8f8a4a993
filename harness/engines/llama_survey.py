"""What llama-server says of itself before any launch: devices, flags, version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from harness.engines import llama_devices, llama_flags
from harness.engines.ask import ask
from harness.engines.base import Survey
from harness.engines.llama_lines import decoded
from harness.errors import EngineNotFoundError, NothingToCompareError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.engines.base import Binaries

_PATIENCE_S: Final = 120.0
"""Starting a driver on a cold machine takes a while; an RPC server may hang."""
_FLAG = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
_DESCRIPTION = re.compile(r"(?<![,\s])\s{2,}")
"""What ends a line's flags; blanks also stand between a short flag's comma and the long one."""
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
    found = llama_devices.listing(output)
    ordered = llama_devices.fast_first(llama_devices.declared(found.devices, kinds), fast)
    _, help_text = _ask(binaries, ("--help",))
    _, version = _ask(binaries, ("--version",))
    return Survey(
        devices=ordered,
        device_count=len(ordered),
        how=f"{binaries.engine.name} {' '.join(asked)}",
        known_flags=known_flags(help_text),
        version=next((m[1] for line in decoded(version) if (m := _VERSION.match(line))), None),
        notes=found.notes,
    )


def known_flags(help_text: bytes) -> frozenset[str] | None:
    """Every flag that a help text lists; None where it lists none."""
    found = {
        flag
        for line in decoded(help_text)
        if line.startswith("-")
        for flag in _FLAG.findall(_DESCRIPTION.split(line)[0])
    }
    return frozenset(found) or None


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
