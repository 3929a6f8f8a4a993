"""One run: the roles are told, all is loaded, the prompt read, tokens made and printed."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from harness.reference.checks import chunk_size
from harness.reference.decode import Decoder
from harness.reference.failures import refused
from harness.reference.faults import Effect
from harness.reference.kv import KvFormat
from harness.reference.loader import Loader
from harness.reference.log import (
    Timing,
    print_drafter,
    print_placement,
    print_speculation,
    print_timing,
    print_work,
)
from harness.reference.pack import Layout
from harness.reference.spoil import after_dump, before_dump, dump, spoil_pick

if TYPE_CHECKING:
    from harness.reference.loader import Loaded
    from harness.reference.request import Request


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
