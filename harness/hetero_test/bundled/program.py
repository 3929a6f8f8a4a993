"""The program ``strata``: flags in, a stream and its log out, an exit code.

One run: the roles are told, all is loaded, the prompt read, tokens made and printed.

The prompt: token ids from the command line or a file.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from hetero_test.bundled.checks import check_flags, check_pack, check_rig, chunk_size
from hetero_test.bundled.decode import Decoder
from hetero_test.bundled.failures import EngineStopError, failed, refused
from hetero_test.bundled.faults import Effect, active_faults
from hetero_test.bundled.flags import USAGE, HelpRequestedError, parse_flags
from hetero_test.bundled.inject import after_dump, before_dump, dump, spoil_pick
from hetero_test.bundled.kv import KvFormat
from hetero_test.bundled.loader import Loader
from hetero_test.bundled.log import (
    Log,
    Timing,
    print_drafter,
    print_placement,
    print_speculation,
    print_timing,
    print_work,
)
from hetero_test.bundled.pack import Layout, read_pack
from hetero_test.bundled.request import Request
from hetero_test.bundled.rig import read_rig, resolve_roles
from hetero_test.bundled.sampler import sampler_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hetero_test.bundled.faults import ActiveFaults
    from hetero_test.bundled.flags import Flags
    from hetero_test.bundled.loader import Loaded

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


def run(request: Request) -> None:
    """Make and print one stream.

    Raises:
        EngineStopError: nothing fits, something cannot be read, or a late refusal.
    """
    _tell_roles(request)
    loaded = Loader(request).load()
    decoder = _decoder(request, loaded)
    timing = _decode(request, loaded, decoder)
    _print_result(request, loaded, decoder, timing)


def _tell_roles(request: Request) -> None:
    roles, devices, log = request.roles, request.rig.devices, request.log
    if roles.picked:
        other = devices[roles.draft]
        log.say(
            "--auto-roles picked: MAIN 0 (the engine's default ordinal), DRAFT "
            f"{roles.draft} ({other.name}, {other.free_mib} MiB free)"
        )
    if request.flags.layer_split is not None:
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
        f"peer access {main} -> {draft}: {'yes' if request.rig.sees(main, draft) else 'no'} "
        "(reported only; the mapped-mirror handoff needs none)"
    )
    log.say(
        f"device roles: main {main}, draft {draft} (two GPUs; the drafter and its own K/V load "
        "on the draft device)"
    )


def _decoder(request: Request, loaded: Loaded) -> Decoder:
    flags = request.flags
    kept = next(kept for kept in KvFormat if kept.flag == flags.kv)
    return Decoder(
        model=loaded.model,
        drafter=loaded.drafter,
        kv=loaded.model.memory(request.capacity, kept),
        pick=spoil_pick(
            request.pick, request.faults, max_new=flags.max_new, vocab=request.pack.shape.vocab
        ),
        request=request,
    )


def _decode(request: Request, loaded: Loaded, decoder: Decoder) -> Timing:
    """Read the prompt and make the tokens; all seconds are measured."""
    flags, log = request.flags, request.log
    started = perf_counter()
    chunk = chunk_size(flags, len(request.prompt))
    if flags.prefill.startswith("auto"):
        log.say(f"prompt chunk auto: {chunk} tokens")
    if chunk:
        log.say("prompt path allocates its own buffers (no cache slots to borrow)")
    chunks = decoder.read_prompt(chunk)
    prefilled = perf_counter()
    decoder.read_draft_prompt()
    drafter_ready = perf_counter()
    _tell_prompt(request, loaded, chunks if chunk else 0, prefilled - started)
    loaded.model.work.reset()
    _tell_bindings(request, loaded)
    begun = perf_counter()
    if flags.spec >= 2 and request.pack.layout is Layout.NATIVE:
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


def _tell_prompt(request: Request, loaded: Loaded, chunks: int, seconds: float) -> None:
    log, work, tokens = request.log, loaded.model.work, len(request.prompt) - 1
    drafter = loaded.drafter_pack
    if drafter is not None:
        loaded.memory.take(loaded.draft, drafter.head_mib, otherwise="mtp: buffers do not fit")
        log.mtp(f"draft head over {request.pack.shape.vocab} tokens ({drafter.head_mib:.1f} MiB)")
    if chunks and tokens:
        log.say(
            f"prefill {tokens} tokens in {chunks} chunks, {seconds * 1000:.1f} ms "
            f"({tokens / seconds:.1f} tok/s); experts streamed {work.host_distinct} (0 by DMA, "
            f"host {work.host_s * 1000:.1f} ms), resident {work.resident_routed}; PLE 0.0 ms"
        )


def _tell_bindings(request: Request, loaded: Loaded) -> None:
    flags, log = request.flags, request.log
    if flags.spec >= 2:
        log.verify(f"window up to {flags.window} tokens, 0.0 MiB of device buffers")
    if request.roles.apart:
        for ordinal in sorted((request.roles.main, request.roles.draft)):
            log.say(
                f"role device {ordinal} after the binding: {loaded.memory.free_mib(ordinal)} MiB "
                f"free of {request.rig.devices[ordinal].memory_mib}"
            )
    if Effect.LATE_REFUSAL in request.faults:
        raise refused(
            "--spec needs the device residency table (--expert-profile, --expert-cache and the "
            "token graph)"
        )


def _print_result(request: Request, loaded: Loaded, decoder: Decoder, timing: Timing) -> None:
    flags, log, faults = request.flags, request.log, request.faults
    work, spoken, vocab = loaded.model.work, decoder.spoken, request.pack.shape.vocab
    made = decoder.made
    before_dump(faults, log, position=len(request.prompt) + len(made), vocab=vocab)
    if flags.spec >= 2 and work.rounds:
        layers = request.pack.shape.layers
        print_speculation(log, flags, spoken, work)
        print_work(log, work, layers=layers)
        print_placement(log, flags, spoken, work, layers=layers, pcie_share=loaded.pcie_share)
        if loaded.drafter_pack is not None:
            size = loaded.drafter_pack.loaded_mib + loaded.drafter_pack.head_mib
            print_drafter(log, spoken, work, timing, size_mib=size)
    log.raw(dump(faults, request.prompt, made, vocab=vocab))
    print_timing(log, timing, made=len(made), prompt_tokens=len(request.prompt))
    after_dump(faults)


_LARGEST = 2**31 - 1


def read_prompt(flags: Flags) -> tuple[int, ...]:
    """The ids of the run; they may lie beyond the vocabulary, as in the real engine.

    Raises:
        EngineStopError: none given, two inputs, an unreadable or malformed list.
    """
    if flags.tokens is None and flags.tokens_file is None:
        raise EngineStopError(
            "--tokens is required (this build has no tokenizer; pass token ids with --tokens "
            "or --tokens-file)",
            code=2,
            usage=True,
        )
    if flags.tokens is not None and flags.tokens_file is not None:
        raise refused("supply one token input only")
    if flags.tokens is not None:
        return _ids(flags.tokens, "token list")
    path = Path(flags.tokens_file or "")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise refused(f"cannot open token file {path}") from error
    return _ids(text, "token file")


def _ids(text: str, source: str) -> tuple[int, ...]:
    words = [word for word in re.split(r"[,\s]+", text) if word]
    if not words:
        raise refused(f"malformed {source}: token list was empty")
    ids = []
    for word in words:
        if not re.fullmatch(r"[0-9]{1,10}", word) or int(word) > _LARGEST:
            raise refused(
                f"malformed {source}: invalid token id: expected an integer in [0, {_LARGEST}]"
            )
        ids.append(int(word))
    return tuple(ids)
