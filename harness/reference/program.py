"""The program ``strata``: flags in, a stream and its log out, an exit code."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.reference.checks import check_flags, check_pack, check_rig
from harness.reference.failures import EngineStopError, failed
from harness.reference.faults import Effect, active_faults
from harness.reference.flags import USAGE, HelpRequestedError, parse_flags
from harness.reference.log import Log
from harness.reference.pack import read_pack
from harness.reference.prompt import read_prompt
from harness.reference.request import Request
from harness.reference.rig import read_rig
from harness.reference.roles import resolve_roles
from harness.reference.run import run
from harness.reference.sampler import sampler_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.reference.faults import ActiveFaults
    from harness.reference.flags import Flags

_LEFT_ON_SEED = 7


def entry(rig: Path) -> None:
    """Run as a process of its own, on which signals act as on a C program.

    Raises:
        SystemExit: always, with the exit code.
    """
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:], rig=rig, environ=os.environ))


def main(argv: Sequence[str], *, rig: Path, environ: Mapping[str, str]) -> int:
    """Run once; prints to stdout and stderr.

    Args:
        argv: the command line without the program's name.
        rig: the TOML file of the emulated rig; launches are counted beside it.
        environ: where the device mask and the faults are looked for.

    Returns:
        The exit code.
    """
    log = Log()
    try:
        flags = parse_flags(argv)
        faults = active_faults(environ, argv, counters=rig.parent)
        run(_request(flags, faults, rig, environ, log))
    except HelpRequestedError:
        log.line(USAGE)
    except EngineStopError as stop:
        log.line(f"strata generate: {stop.message}" if stop.prefixed else stop.message)
        if stop.usage:
            log.line(USAGE)
        return stop.code
    return 0


def _request(
    flags: Flags, faults: ActiveFaults, rig_path: Path, environ: Mapping[str, str], log: Log
) -> Request:
    """Everything that is known before anything is loaded, or the first refusal."""
    if Effect.SAMPLING in faults:
        flags = replace(flags, greedy=False, seed=_LEFT_ON_SEED)
    prompt = read_prompt(flags)
    check_flags(flags, prompt)
    pack = read_pack(Path(flags.pack))
    check_pack(flags, pack, prompt)
    rig = read_rig(rig_path).visible(environ)
    check_rig(flags, rig)
    roles = resolve_roles(flags, rig)
    if not rig.devices:
        raise failed("no CUDA-capable device is detected")
    pick, sampling = sampler_of(flags)
    return Request(
        flags=flags,
        prompt=prompt,
        pack=pack,
        rig=rig,
        roles=roles,
        pick=pick,
        sampling=sampling,
        faults=faults,
        log=log,
    )
