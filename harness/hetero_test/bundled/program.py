"""The program ``strata``: flags in, a stream and its log out, an exit code.

In one run the roles are told, everything is loaded, the prompt is read, and tokens are made and
printed.
"""

from __future__ import annotations

import os
import signal
import sys
from time import perf_counter
from typing import TYPE_CHECKING

from hetero_test.bundled.decode import Decoder
from hetero_test.bundled.failures import EngineStopError, refused
from hetero_test.bundled.faults import FaultEffect, active_faults
from hetero_test.bundled.flags import USAGE, HelpRequestedError, parse_flags
from hetero_test.bundled.inject import after_dump, before_dump, dump, faulty_pick
from hetero_test.bundled.job import checked_job, chunk_size
from hetero_test.bundled.kv import KvFormat
from hetero_test.bundled.loader import Loader
from hetero_test.bundled.log import (
    EngineLog,
    Timing,
    print_drafter,
    print_placement,
    print_speculation,
    print_timing,
    print_work,
)
from hetero_test.bundled.pack import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hetero_test.bundled.job import Job
    from hetero_test.bundled.loader import Loaded


def entry(rig: Path) -> None:
    """Run as a process of its own; signals act on it as on a C program.

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
        rig: the TOML file of the emulated rig; the launches are counted in its folder.
        environ: where the device mask and the faults are looked for.

    Returns:
        The exit code.
    """
    log = EngineLog()
    try:
        flags = parse_flags(argv)
        faults = active_faults(environ, argv, counters=rig.parent)
        run(checked_job(flags, faults, rig, environ, log))
    except HelpRequestedError:
        log.line(USAGE)
    except EngineStopError as stop:
        log.line(f"strata generate: {stop.message}" if stop.prefixed else stop.message)
        if stop.usage:
            log.line(USAGE)
        return stop.code
    return 0


def run(job: Job) -> None:
    """Make and print one stream.

    Raises:
        EngineStopError: something does not fit, cannot be read, or is refused late.
    """
    _tell_roles(job)
    loaded = Loader(job).load()
    decoder = _decoder(job, loaded)
    timing = _decode(job, loaded, decoder)
    _print_result(job, loaded, decoder, timing)


def _tell_roles(job: Job) -> None:
    roles, devices, log = job.roles, job.rig.devices, job.log
    if roles.picked:
        other = devices[roles.draft]
        log.say(
            "--auto-roles picked: MAIN 0 (the engine's default ordinal), DRAFT "
            f"{roles.draft} ({other.name}, {other.free_mib} MiB free)"
        )
    if job.flags.layer_split is not None:
        log.say("--layer-split auto: one GPU visible, so no split")
    if not roles.named:
        return
    main, draft = roles.main, roles.draft
    if not roles.apart:
        log.say(
            f"device roles: main {main}, draft {draft} (degenerate: both roles on this one GPU)"
        )
        return
    for ordinal in sorted((main, draft)):
        device = devices[ordinal]
        major, minor = device.capability
        log.say(
            f"role device {ordinal}: {device.name}, cc {major}.{minor}, dp4a "
            f"{'yes' if device.has_dp4a else 'software-fallback'}, free VRAM "
            f"{device.free_mib} MiB"
        )
    log.say(
        f"peer access {main} -> {draft}: {'yes' if job.rig.sees(main, draft) else 'no'} "
        "(reported only; the mapped-mirror handoff needs none)"
    )
    log.say(
        f"device roles: main {main}, draft {draft} (two GPUs; the drafter and its own K/V load "
        "on the draft device)"
    )


def _decoder(job: Job, loaded: Loaded) -> Decoder:
    flags = job.flags
    kept = next(kept for kept in KvFormat if kept.flag == flags.kv)
    return Decoder(
        model=loaded.model,
        drafter=loaded.drafter,
        kv=loaded.model.memory(job.capacity, kept),
        pick=faulty_pick(job.pick, job.faults, max_new=flags.max_new, vocab=job.pack.shape.vocab),
        job=job,
    )


def _decode(job: Job, loaded: Loaded, decoder: Decoder) -> Timing:
    """Read the prompt and make the tokens; every time is measured."""
    flags, log = job.flags, job.log
    started = perf_counter()
    chunk = chunk_size(flags, len(job.prompt))
    if flags.prefill.startswith("auto"):
        log.say(f"prompt chunk auto: {chunk} tokens")
    if chunk:
        log.say("prompt path allocates its own buffers (no cache slots to borrow)")
    chunks = decoder.read_prompt(chunk)
    prefilled = perf_counter()
    decoder.read_draft_prompt()
    drafter_ready = perf_counter()
    _tell_prompt(job, loaded, chunks if chunk else 0, prefilled - started)
    loaded.model.work.reset()
    _tell_bindings(job, loaded)
    begun = perf_counter()
    if flags.spec >= 2 and job.pack.layout is Layout.NATIVE:
        decoder.round(plain=True)
    else:
        decoder.step()
        loaded.model.work.reset()
    first = perf_counter()
    while not decoder.done:
        if flags.spec >= 2:
            decoder.round()
        else:
            decoder.step()
    return Timing(
        prefill_s=prefilled - started,
        decode_s=perf_counter() - begun,
        first_token_s=first - started,
        draft_prompt_s=drafter_ready - prefilled,
    )


def _tell_prompt(job: Job, loaded: Loaded, chunks: int, seconds: float) -> None:
    log, work, tokens = job.log, loaded.model.work, len(job.prompt) - 1
    drafter = loaded.drafter_pack
    if drafter is not None:
        loaded.memory.take(loaded.draft, drafter.head_mib, otherwise="mtp: buffers do not fit")
        log.mtp(f"draft head over {job.pack.shape.vocab} tokens ({drafter.head_mib:.1f} MiB)")
    if chunks and tokens:
        log.say(
            f"prefill {tokens} tokens in {chunks} chunks, {seconds * 1000:.1f} ms "
            f"({tokens / seconds:.1f} tok/s); experts streamed {work.host_distinct} (0 by DMA, "
            f"host {work.host_s * 1000:.1f} ms), resident {work.resident_routed}; PLE 0.0 ms"
        )


def _tell_bindings(job: Job, loaded: Loaded) -> None:
    flags, log = job.flags, job.log
    if flags.spec >= 2:
        log.verify(f"window up to {flags.window} tokens, 0.0 MiB of device buffers")
    if job.roles.apart:
        for ordinal in sorted((job.roles.main, job.roles.draft)):
            log.say(
                f"role device {ordinal} after the binding: {loaded.memory.free_mib(ordinal)} MiB "
                f"free of {job.rig.devices[ordinal].memory_mib}"
            )
    if FaultEffect.LATE_REFUSAL in job.faults:
        raise refused(
            "--spec needs the device residency table (--expert-profile, --expert-cache and the "
            "token graph)"
        )


def _print_result(job: Job, loaded: Loaded, decoder: Decoder, timing: Timing) -> None:
    flags, log, faults = job.flags, job.log, job.faults
    work, counts, vocab = loaded.model.work, decoder.counts, job.pack.shape.vocab
    made = decoder.made
    before_dump(faults, log, position=len(job.prompt) + len(made), vocab=vocab)
    if flags.spec >= 2 and work.rounds:
        layers = job.pack.shape.layers
        print_speculation(log, flags, counts, work)
        print_work(log, work, layers=layers)
        print_placement(log, flags, counts, work, layers=layers, pcie_share=loaded.pcie_share)
        if loaded.drafter_pack is not None:
            size = loaded.drafter_pack.loaded_mib + loaded.drafter_pack.head_mib
            print_drafter(log, counts, work, timing, size_mib=size)
    log.raw(dump(faults, job.prompt, made, vocab=vocab))
    print_timing(log, timing, made=len(made), prompt_tokens=len(job.prompt))
    after_dump(faults)
