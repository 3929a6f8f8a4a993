"""The log: every line has a known form, in the engine's order, on the right stream."""

from __future__ import annotations

import re

import pytest

from tests.bundled.engine import Engine, Run

NUMBER = r"-?\d+(?:\.\d+)?"
MS = r"\d+\.\d{3}"

STDOUT = [
    r"speculation {14}\d+ rounds of \d+, drafts accepted \d+ of \d+ \(\d\.\d{3}\), \d\.\d\d tokens "
    r"per round",
    r"window sizes {12}(?: T\d:\d+)+  \(min draft probability \d\.\d\d\)",
    r"suffix drafts {12}\d+ windows, drafts accepted \d+ of \d+",
    r"accepted per round {6}(?: \d:\d+)+",
    rf"verify window {{12}}wait for rings {MS}  pool {MS}  host {MS}  commit {MS} ms/round; CPU "
    r"experts \d+\.\d\d distinct / \d+\.\d\d routed per layer",
    rf"pool multi {{15}}gate/up {MS}  quantize {MS}  down {MS} ms/round; \d+\.\d GB/s over the "
    rf"rows phases; CPU pool call {MS} ms/round",
    rf"dispatch {{17}}plan {MS}  activation quantize {MS}  jobs {MS}  run {MS} ms/round",
    rf"adaptive tier {{12}}\d+ experts swapped into the VRAM tier \(every \d+ rounds, {MS} "
    r"ms/round\)",
    r"pcie experts {13}\d+\.\d\d distinct experts per layer read over PCIe \(share \d+/256 of the "
    r"misses\)",
    rf"mtp {{22}}(?:{MS}|-nan) ms/round drafting \(\d+ rounds\), MTP prompt \d+\.\d ms, \d+ MiB of "
    "VRAM",
    r"prompt  :(?: \d+)+",
    r"output  :(?: \d+)+",
    r"decode {19}\d+ tokens in \d+\.\d ms  ->  \d+\.\d\d tok/s",
    r"prefill {18}\d+ tokens in \d+\.\d ms  ->  \d+\.\d\d tok/s  \(time to first token "
    r"\d+\.\d ms\)",
]

GENERATE = [
    r"--auto-roles picked: MAIN 0 \(the engine's default ordinal\), DRAFT \d \(.+, \d+ MiB free\)",
    r"role device \d: .+, cc \d\.\d, dp4a (?:yes|software-fallback), free VRAM \d+ MiB",
    r"peer access \d -> \d: (?:yes|no) \(reported only; the mapped-mirror handoff needs none\)",
    r"device roles: main \d, draft \d \((?:two GPUs; the drafter and its own K/V load on the draft "
    r"device|degenerate: both roles on this one GPU)\)",
    r"PCIe probe: \d+\.\d GB/s host->device -> pcie_frac \d\.\d\d \(default 0\.55\)",
    r"this CPU has no AVX-512: the expert kernels run on AVX-2 \(multi-token for the i-quant "
    r"gate/up rows\)",
    r"native pack: .+ experts \(largest blob \d+\.\d\d MB\), token embedding IQ4_XS in mapped host "
    r"memory \(322 MiB\)",
    r"\d+ MiB of weights loaded from .+(?: \(\d+ canonical tensors skipped: served natively\))?",
    r"\d+ native projection matrices, \d+\.\d\d MiB of weights",
    r"profile .+: \d+ ranked pairs, built for \d+ slots",
    r"PLE (?:on, table \d+ rows of .+|off \(--no-ple\))",
    r"GPU \d: .+, compute capability \d\.\d",
    r"loaded \d+\.\d\d GiB at \d+\.\d\d GiB/s",
    r"experimental native Q5_K head, \d+ bytes",
    r"expert cache auto: \d+\.\d\d GiB free, \d+ MiB reserved \(\+\d+ MiB for the draft head\) -> "
    r"\d+ slots",
    r"expert cache \d+ slots, \d+\.\d\d GiB of VRAM; policy is",
    r"the GPU computes the experts in the cache; it rounds differently from the CPU,",
    r"pre-filled \d+ of \d+ slots from the profile; slot 0 verified",
    r"R4 hit path ON - resident experts are computed on the GPU",
    r"1 expert-pool worker, the host thread",
    r"CUDA\d: \d+ additional experts, \d+\.\d\d GiB; results return through pinned host rows",
    r"session is up \(engine 0\.1\.34-reference\)",
    r"sampling (?:greedy|temperature=\S+ top_k=\d+ top_p=\S+ seed=\d+)",
    r"token graph hit path: \d+ resident experts, decided on the device",
    r"token graph captured \(4 layers, one launch per token\)",
    r"prompt chunk auto: \d+ tokens",
    r"prompt path allocates its own buffers \(no cache slots to borrow\)",
    r"prefill \d+ tokens in \d+ chunks, \d+\.\d ms \(\d+\.\d tok/s\); experts streamed \d+ \(\d+ "
    r"by DMA, host \d+\.\d ms\), resident \d+; PLE \d+\.\d ms",
    r"role device \d after the binding: \d+ MiB free of \d+",
    r"position \d+, \d+ tokens, \d+ rounds",
]
STDERR = [
    *(f"strata generate: {form}" for form in GENERATE),
    r" {17}\S.*",  # the policy's text goes on
    r"strata mtp: the draft layer's gr workspace runs on the draft device \(0\.3 MiB\)",
    r"strata mtp: draft layer loaded, \d+ MiB of VRAM \(experts \d+, dense \d+\), files read in "
    r"\d+\.\d\d s \(\d+ MiB/s\)",
    r"strata mtp: draft head over 4096 tokens \(\d+\.\d MiB\)",
    r"strata verify: window up to \d tokens, \d+\.\d MiB of device buffers",
    r"strata verify: captured the \d-token window \(upload no error, sync no error\)",
]

RUNS = [
    (),
    ("--main-device", "1", "--draft-device", "0"),
    ("--main-device", "0", "--draft-device", "0"),
    ("--auto-roles", "--draft-chain-batch"),
    ("--spec-min-p", "0.3", "--adapt-every", "4"),
    ("--seed", "3", "--pcie-frac", "0"),
    ("--expert-cache", "30", "--expert-cache-device1", "5"),
]


def forms(lines: list[str], patterns: list[str]) -> list[int]:
    """The number of the form that each line has; each has exactly one."""
    numbers = []
    for line in lines:
        fits = [n for n, pattern in enumerate(patterns) if re.fullmatch(pattern, line)]
        assert len(fits) == 1, f"{line!r} has {len(fits)} forms"
        numbers += fits
    return numbers


@pytest.mark.parametrize("flags", RUNS, ids=" ".join)
@pytest.mark.parametrize("pack", ["canonical", "native"])
def test_every_line_has_its_form_and_place(
    equal: Engine, native: Engine, pack: str, flags: tuple[str, ...]
) -> None:
    """No line is free text, none is on the wrong stream, and results come in a fixed order."""
    run = (native if pack == "native" else equal)(*flags)
    assert run.code == 0
    printed = forms(run.out.splitlines(), STDOUT)
    assert printed == sorted(set(printed))
    forms(run.err.splitlines(), STDERR)
    assert run.out.endswith("\n")
    assert not re.search("[\r\x1b\t]", run.out + run.err)


def order(run: Run, *starts: str) -> list[int]:
    """The places of lines that start so, each of which is there once or more."""
    lines = run.err.splitlines()
    return [next(n for n, line in enumerate(lines) if line.startswith(start)) for start in starts]


def test_stderr_follows_the_engines_order(native: Engine) -> None:
    """Roles, then loading, then the cache, then the session, then decoding."""
    run = native("--auto-roles")
    places = order(
        run,
        "strata generate: --auto-roles picked",
        "strata generate: role device 0: ",
        "strata generate: role device 1: ",
        "strata generate: peer access 0 -> 1: yes",
        "strata generate: device roles: main 0, draft 1 (two GPUs",
        "strata generate: PCIe probe: ",
        "strata generate: this CPU has no AVX-512",
        "strata generate: native pack: ",
        "strata generate: 1000 MiB of weights",
        "strata generate: 12 native projection",
        "strata generate: profile ",
        "strata generate: PLE on",
        "strata mtp: the draft layer's gr workspace",
        "strata mtp: draft layer loaded",
        "strata generate: GPU 0: ",
        "strata generate: loaded ",
        "strata generate: expert cache auto: ",
        "strata generate: expert cache 58 slots",
        "strata generate: pre-filled 58 of 58",
        "strata generate: R4 hit path ON",
        "strata generate: session is up",
        "strata generate: sampling greedy",
        "strata generate: token graph hit path: 58 ",
        "strata generate: prompt chunk auto: 256 tokens",
        "strata mtp: draft head over",
        "strata generate: prefill 94 tokens in 1 chunks",
        "strata verify: window up to 6 tokens",
        "strata generate: role device 0 after the binding",
        "strata generate: role device 1 after the binding",
        "strata verify: captured the 1-token window",
        "strata generate: position 127, 32 tokens",
    )
    assert places == sorted(places)


def test_only_a_remote_drafter_has_a_workspace_line(equal: Engine) -> None:
    """The line that proves a moved drafter is not printed where it was not moved."""
    line = "gr workspace runs on the draft device"
    assert equal("--auto-roles").says(line)
    assert not equal().says(line)
    same = equal("--main-device", "1", "--draft-device", "1")
    assert not same.says(line)
    assert same.says(r"device roles: main 1, draft 1 \(degenerate: both roles on this one GPU\)$")
    assert same.device == 1
    assert not same.says("role device")
    assert same.stream == equal().stream


def test_flags_without_a_trace_leave_none(equal: Engine) -> None:
    """Chain batch and parallel prefill change no line but the measured ones."""
    roles = ("--main-device", "0", "--draft-device", "1")
    traced = [
        re.sub(NUMBER, "#", run.err)
        for run in (
            equal(*roles),
            equal(*roles, "--draft-chain-batch", "--draft-prefill-parallel"),
        )
    ]
    assert traced[0] == traced[1]


def test_the_prompt_is_echoed(equal: Engine) -> None:
    """The echo is the probe, id for id."""
    assert equal().prompt == equal.probe


def test_times_are_measured(equal: Engine) -> None:
    """Rates are the tokens over the time, and the first token comes after the prompt."""
    tokens, ms, rate = map(
        float, equal().found(r"^decode +(\d+) tokens in ([\d.]+) ms  ->  ([\d.]+) tok/s$")
    )
    assert tokens == 60
    # Both are printed rounded: the time to 0.1 ms, the rate to 0.01 tok/s.
    assert tokens * 1000 / (ms + 0.05) - 0.01 <= rate <= tokens * 1000 / (ms - 0.05) + 0.01
    prefill, first = map(
        float,
        equal().found(r"^prefill +94 tokens in ([\d.]+) ms .*first token ([\d.]+) ms\)$"),
    )
    assert 0 < prefill < first
