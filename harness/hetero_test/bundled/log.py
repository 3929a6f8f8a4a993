"""What the engine prints: its progress on stderr, the result block on stdout."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hetero_test.bundled.flags import Flags
    from hetero_test.bundled.work import DraftCounts, Work

_LABEL_WIDTH = 24


class EngineLog:
    """Writes each line at once, so that a killed run leaves what it had printed."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr

    def say(self, text: str) -> None:
        """A line of the engine."""
        self.line(f"strata generate: {text}")

    def mtp(self, text: str) -> None:
        """A line of the drafter."""
        self.line(f"strata mtp: {text}")

    def verify(self, text: str) -> None:
        """A line of the verifier."""
        self.line(f"strata verify: {text}")

    def line(self, text: str) -> None:
        """A line on stderr as it is."""
        print(text, file=self._err, flush=True)

    def result(self, label: str, text: str) -> None:
        """A labelled line of the result block."""
        self.raw(f"{label:<{_LABEL_WIDTH}} {text}\n")

    def raw(self, text: str) -> None:
        """Text on stdout as it is."""
        self._out.write(text)
        self._out.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Measured seconds of the prompt, of the tokens, and from the start to the first token."""

    prefill_s: float
    decode_s: float
    first_token_s: float
    draft_prompt_s: float


def print_speculation(log: EngineLog, flags: Flags, counts: DraftCounts, work: Work) -> None:
    """The lines about windows and drafts; at least one window was verified."""
    rounds = work.rounds
    share = counts.accepted / counts.offered if counts.offered else 0.0
    log.result(
        "speculation",
        f"{rounds} rounds of {flags.window}, drafts accepted {counts.accepted} of "
        f"{counts.offered} ({share:.3f}), {(counts.accepted + rounds) / rounds:.2f} tokens per "
        "round",
    )
    if flags.spec_min_p > 0:
        sizes = "".join(f" T{size}:{counts.sizes[size]}" for size in range(1, flags.window + 1))
        tail = f"  (min draft probability {flags.spec_min_p:.2f})"
        log.raw(f"{'window sizes':<{_LABEL_WIDTH}}{sizes}{tail}\n")
    if flags.suffix_draft > 0:
        log.result(
            "suffix drafts",
            f"{counts.lookup_windows} windows, drafts accepted {counts.lookup_accepted} of "
            f"{counts.lookup_offered}",
        )
    rows = "".join(f" {n}:{counts.accepted_per_round[n]}" for n in range(flags.window))
    log.raw(f"{'accepted per round':<{_LABEL_WIDTH}}{rows}\n")


def print_work(log: EngineLog, work: Work, *, layers: int) -> None:
    """The lines about where the time of the verify windows went."""
    windows = work.rounds * layers
    device_ms = _ms(work, work.attention_s + work.device_s)
    log.result(
        "verify window",
        f"wait for rings {device_ms:.3f}  pool {_ms(work, work.host_s):.3f}  host "
        f"{_ms(work, work.plan_s + work.jobs_s):.3f}  commit {_ms(work, work.commit_s):.3f} "
        f"ms/round; CPU experts {work.host_distinct / windows:.2f} distinct / "
        f"{work.host_routed / windows:.2f} routed per layer",
    )
    rows_s = work.gate_up_s + work.down_s
    speed = work.expert_bytes / rows_s / 1e9 if rows_s else 0.0
    log.result(
        "pool multi",
        f"gate/up {_ms(work, work.gate_up_s):.3f}  quantize {_ms(work, work.requantize_s):.3f}  "
        f"down {_ms(work, work.down_s):.3f} ms/round; {speed:.1f} GB/s over the rows phases; "
        f"CPU pool call {_ms(work, work.host_s):.3f} ms/round",
    )
    log.result(
        "dispatch",
        f"plan {_ms(work, work.plan_s):.3f}  activation quantize "
        f"{_ms(work, work.quantize_s):.3f}  jobs {_ms(work, work.jobs_s):.3f}  run "
        f"{_ms(work, work.run_s):.3f} ms/round",
    )


def print_placement(
    log: EngineLog, flags: Flags, counts: DraftCounts, work: Work, *, layers: int, pcie_share: int
) -> None:
    """The lines about swaps and about experts read over the link."""
    if flags.adapt_every and flags.adapt_swaps:
        log.result(
            "adaptive tier",
            f"{counts.swapped} experts swapped into the VRAM tier (every {flags.adapt_every} "
            f"rounds, {_ms(work, work.adapt_s):.3f} ms/round)",
        )
    if pcie_share:
        log.result(
            "pcie experts",
            f"{work.pcie_distinct / (work.rounds * layers):.2f} distinct experts per layer read "
            f"over PCIe (share {pcie_share}/256 of the misses)",
        )


def print_drafter(
    log: EngineLog, counts: DraftCounts, work: Work, timing: Timing, *, size_mib: int
) -> None:
    """The drafter's line; without a draft round its mean is 0/0, as C prints it."""
    rounds = counts.draft_rounds
    mean = f"{work.draft_s * 1000 / rounds:.3f}" if rounds else "-nan"
    log.result(
        "mtp",
        f"{mean} ms/round drafting ({rounds} rounds), MTP prompt "
        f"{timing.draft_prompt_s * 1000:.1f} ms, {size_mib} MiB of VRAM",
    )


def dump_line(label: str, ids: Sequence[int]) -> str:
    """``prompt  :`` or ``output  :`` and the ids, each after one blank."""
    return f"{label:<8}:" + "".join(f" {token}" for token in ids) + "\n"


def print_timing(log: EngineLog, timing: Timing, *, made: int, prompt_tokens: int) -> None:
    """The last lines; reading the prompt's last token counts as decoding."""
    ms = timing.decode_s * 1000
    log.result("decode", f"{made} tokens in {ms:.1f} ms  ->  {_rate(made, ms):.2f} tok/s")
    if prompt_tokens > 1:
        ms = timing.prefill_s * 1000
        log.result(
            "prefill",
            f"{prompt_tokens - 1} tokens in {ms:.1f} ms  ->  {_rate(prompt_tokens - 1, ms):.2f} "
            f"tok/s  (time to first token {timing.first_token_s * 1000:.1f} ms)",
        )


def _ms(work: Work, seconds: float) -> float:
    return work.per_round(seconds * 1000)


def _rate(tokens: int, ms: float) -> float:
    return tokens * 1000 / ms if ms else 0.0
