"""The program ``strata-device``: what the emulated rig has, on stdout."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from hetero_test.bundled.failures import EngineStopError
from hetero_test.bundled.rig import read_rig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from hetero_test.bundled.rig import EmulatedDevice, EmulatedRig

_OLDEST = (6, 0)  # compute capability that the plain mode accepts on the first device
_RUNTIME = "12060 / 12060"
_USAGE = "usage: strata-device [--list-devices | --selftest | --help]"


def entry(rig: Path) -> None:
    """Run as a process of its own.

    Raises:
        SystemExit: always, with the exit code.
    """
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:], rig=rig, environ=os.environ))


def main(argv: Sequence[str], *, rig: Path, environ: Mapping[str, str]) -> int:
    """Print the devices; the exit code is 2 for an unknown argument, 1 for a failure.

    Args:
        argv: the command line without the program's name.
        rig: the TOML file of the emulated rig.
        environ: where the device mask is looked for.
    """
    modes = {"--list-devices": list_devices, "--selftest": _selftest, "--help": _help}
    for word in argv:
        if word not in modes:
            print(f"unknown argument: {word}")
            return 2
    mode = modes[argv[0]] if argv else report
    try:
        lines = list(mode(read_rig(rig).visible(environ)))
    except EngineStopError as stop:
        print(f"strata-device: {stop.message}", file=sys.stderr)
        return stop.code
    print("\n".join(lines))
    return 0


def list_devices(rig: EmulatedRig) -> Iterator[str]:
    """Every visible device, two lines each."""
    if not rig.devices:
        yield "(no GPU device)"
    for ordinal, device in enumerate(rig.devices):
        major, minor = device.capability
        yield f"device {ordinal}: {device.name}"
        yield f"  compute capability {major}.{minor}, {device.memory_mib / 1024:.1f} GiB"


def report(rig: EmulatedRig) -> Iterator[str]:
    """The first device, then every device, then peers and the memory plan.

    Raises:
        EngineStopError: there is no device, or the first is too old.
    """
    if not rig.devices:
        raise EngineStopError("no CUDA-capable device is detected")
    first = rig.devices[0]
    if first.capability < _OLDEST:
        raise EngineStopError(
            f"device 0 has compute capability {first.capability[0]}.{first.capability[1]}; this "
            f"build needs {_OLDEST[0]}.{_OLDEST[1]}"
        )
    yield from _block(0, first)
    yield f"  driver / runtime    {_RUNTIME}"
    yield ""
    for ordinal, device in enumerate(rig.devices):
        yield from _block(ordinal, device)
        yield "  shared mem default / opt-in  49152 / 49152 B"
        dp4a = "yes" if device.has_dp4a else "no"
        yield f"  dp4a {dp4a}   int8 mma no   tf32 mma no   cp.async no"
        yield ""
    count = len(rig.devices)
    if count > 1:
        yield "peer access (canAccessPeer, reported - never enabled here):"
        for a in range(count):
            for b in range(count):
                if a != b:
                    yield f"  {a} -> {b}: {'yes' if rig.sees(a, b) else 'no'}"
        yield ""
    yield "memory plan  --max-context 4096"
    yield f"  card free           {first.free_mib / 1024:.3f} GiB"
    yield "  plan + KV vs free   FITS"


def _block(ordinal: int, device: EmulatedDevice) -> Iterator[str]:
    major, minor = device.capability
    total, free = device.memory_mib, device.free_mib
    yield f"device {ordinal}: {device.name}"
    yield f"  compute capability  {major}.{minor}   (sm_{major}{minor})"
    yield f"  multiprocessors     {device.multiprocessors}"
    yield (
        f"  VRAM total / free   {total / 1024:.3f} GiB ({total * 2**20} B) / "
        f"{free / 1024:.3f} GiB ({free * 2**20} B)"
    )


def _selftest(rig: EmulatedRig) -> Iterator[str]:
    yield f"selftest: {len(rig.devices)} emulated devices, nothing to test"


def _help(rig: EmulatedRig) -> Iterator[str]:
    del rig
    yield _USAGE
