"""Timings, draft statistics and what is recorded beside the residency."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hetero_test.values.reading import Speculation, Timings
from hetero_test.values.remark import Weight
from tests.engines.strata.samples import (
    DECODE,
    FLAGS,
    IDS,
    PREFILL,
    SESSION,
    SPECULATION,
    STDERR,
    STDOUT,
    dump,
    read,
    without,
)

NATIVE = (
    "strata generate: native pack: /m/pack experts (largest blob 2.66 MB), token embedding IQ4_XS "
    "in mapped host memory (322 MiB)"
)
DRAFTING = "mtp                      4.420 ms/round drafting (22 rounds), MTP prompt 12.3 ms"
SHARE = "pcie experts             1.25 distinct experts per layer read over PCIe (share 51/256 "
SWAPS = "adaptive tier            312 experts swapped"
PROBE = "PCIe probe: 12.3 GB/s host->device -> pcie_frac 0.26 (default 0.55)"


def line_of(text: str, start: str) -> str:
    """The line of a log that begins so."""
    return next(line for line in text.splitlines() if line.startswith(start))


def test_times_are_those_of_the_result_block(tmp_path: Path) -> None:
    """Decode and prompt speed, time to the first token, time a draft round."""
    assert read(tmp_path).timings == Timings(
        decode_tok_s=7.23, prefill_tok_s=17.73, ttft_ms=6120.5, draft_ms_per_round=4.42
    )


def test_draft_statistics_are_those_of_the_speculation_line(tmp_path: Path) -> None:
    """The prompt lookup's own line also speaks of accepted drafts, and is another thing."""
    assert read(tmp_path).speculation == Speculation(
        rounds=22, window=6, accepted=38, offered=62, tokens_per_round=2.73
    )


def test_what_is_not_printed_is_unknown(tmp_path: Path) -> None:
    """A run without drafter and prompt loop has no numbers, not zeros."""
    reading = read(tmp_path, "prompt  : 1\noutput  : 0\n", SESSION + "\n", flags=(), max_new=1)

    assert reading.timings == Timings()
    assert reading.speculation is None
    assert reading.recorded == {
        **dict.fromkeys(reading.recorded),
        "native_pack": False,
        "forced_cache": 0,
        "cache_shrunk": False,
    }


@pytest.mark.parametrize("text", ["-nan", "nan", "-nan(ind)", "inf", "-inf", "1.#IND", "", "x"])
def test_what_is_no_number_is_unknown(tmp_path: Path, text: str) -> None:
    """Not a number has many spellings, and none of them is 0."""
    stdout = STDOUT.replace("7.23 tok/s", f"{text} tok/s").replace("4.420 ms", f"{text} ms")
    timings = read(tmp_path, stdout.replace("2.73 tokens", f"{text} tokens")).timings

    assert timings.decode_tok_s is None
    assert timings.draft_ms_per_round is None
    assert timings.ttft_ms == 6120.5


def test_less_than_no_time_is_unknown(tmp_path: Path) -> None:
    """A clock that was set back gives a negative time or rate, which is no measurement."""
    stdout = STDOUT
    for shown in ("7.23 tok/s", "17.73 tok/s", "6120.5 ms", "4.420 ms"):
        stdout = stdout.replace(f" {shown}", f" -{shown}")

    assert read(tmp_path, stdout).timings == Timings()


@pytest.mark.parametrize(
    ("printed", "value", "odd"),
    [
        ("60 tokens in 0.0 ms  ->  0.00 tok/s", None, False),
        ("60 tokens in -1.0 ms  ->  7.23 tok/s", None, False),
        ("60 tokens in 1000.0 ms  ->  500.00 tok/s", 60.0, True),
        ("60 tokens in 1000.0 ms  ->  0.00 tok/s", 60.0, True),
        ("60 tokens in 24000000.0 ms  ->  0.00 tok/s", 0.0025, False),
        ("60 tokens in 0.9 ms  ->  63157.89 tok/s", 63157.89, False),
        ("60 tokens in nan ms  ->  7.23 tok/s", 7.23, False),
    ],
)
def test_a_rate_is_what_its_tokens_over_its_time_give(
    tmp_path: Path, printed: str, value: float | None, odd: bool
) -> None:
    """No time gives no rate; a rate beside others that contradict it yields, with a warning."""
    reading = read(tmp_path, STDOUT.replace(DECODE, f"decode                   {printed}"))

    assert reading.timings.decode_tok_s == value
    assert [w for w in reading.warnings if "tok/s" in w] == (
        [
            f"the decode line says {printed.split()[-2]} tok/s, and 60 tokens in 1000.0 ms are "
            "60.00 tok/s"
        ]
        if odd
        else []
    )


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        ("60 tokens in 8303.7", "59 tokens in 8165.3", ("59", "60")),
        ("2 tokens in 112.8", "94 tokens in 5301.8", ("94", "2")),
        ("accepted 38 of 62", "accepted 30 of 62", ("53", "60")),
        ("accepted 38 of 62", "accepted 68 of 62", ("68", "62")),
    ],
)
def test_a_count_that_contradicts_the_stream_is_a_doubt(
    tmp_path: Path, old: str, new: str, both: tuple[str, str]
) -> None:
    """What is decoded, read and drafted must agree with what was printed and asked for."""
    assert old in STDOUT
    fine = {remark.line for remark in read(tmp_path).remarks}
    (remark,) = (r for r in read(tmp_path, STDOUT.replace(old, new)).remarks if r.line not in fine)

    assert remark.weight is Weight.DOUBTFUL
    assert all(f" {count} " in f"{remark.line} " for count in both)


@pytest.mark.parametrize(
    ("text", "value"), [("7,23", 7.23), ("0,058", 0.058), ("1,234", None), ("1,234.5", None)]
)
def test_a_decimal_comma_is_read_where_it_can_be_nothing_else(
    tmp_path: Path, text: str, value: float | None
) -> None:
    """Three digits behind a comma may as well be thousands, so they are left unknown."""
    took = 60_000 / (value or 1)
    line = f"decode                   60 tokens in {took:.1f} ms  ->  {text} tok/s"

    assert read(tmp_path, STDOUT.replace(DECODE, line)).timings.decode_tok_s == value


def test_a_timing_line_of_another_dialect_is_a_warning(tmp_path: Path) -> None:
    """A timing line of an unknown form gives no number, and a warning says so."""
    stdout = STDOUT.replace(DECODE, "decode time = 8303.7 ms / 60 runs")
    reading = read(tmp_path, stdout)

    assert reading.timings.decode_tok_s is None
    assert any("no decode line" in warning for warning in reading.warnings)
    assert reading.stream == IDS


def test_result_lines_on_standard_error_do_not_count(tmp_path: Path) -> None:
    """The result block is standard output's; a helper's line elsewhere is no timing."""
    reading = read(tmp_path, without(STDOUT, PREFILL), f"{STDERR}{PREFILL}\n")

    assert reading.timings.prefill_tok_s is None


def test_the_version_is_the_sessions(tmp_path: Path) -> None:
    """Versions have three or four parts, and letters."""
    stderr = STDERR.replace("engine 0.1.34", "engine 0.1.40.3s")

    assert read(tmp_path, STDOUT, stderr).version == "0.1.40.3s"
    assert read(tmp_path, STDOUT, "").version is None


@pytest.mark.parametrize("device", [" on CUDA1", " on NVIDIA GeForce RTX 3060", ", GPU 1", " HIP0"])
def test_the_device_in_a_version_line_is_no_part_of_the_version(
    tmp_path: Path, device: str
) -> None:
    """One engine on two devices is one engine; another release or toolkit is another one."""

    def version(said: str) -> str | None:
        return read(tmp_path, STDOUT, STDERR.replace("engine 0.1.34)", f"engine {said})")).version

    assert version(f"0.1.34{device}") == "0.1.34"
    assert version(f"0.1.34 rc1{device}") == "0.1.34 rc1"
    assert version("0.1.34, CUDA 12.4") == "0.1.34, CUDA 12.4"


def test_the_vocabulary_is_known_where_the_engine_prints_it(tmp_path: Path) -> None:
    """The draft head's vocabulary is another one."""
    line = "strata generate: per-window logits -> /tmp/x (vocab 248320)"
    other = "strata mtp: draft head over 106299 tokens (212.9 MiB)"

    assert read(tmp_path, STDOUT, f"{STDERR}{line}\n{other}\n").vocabulary == 248320
    assert read(tmp_path, STDOUT, f"{STDERR}{other}\n").vocabulary is None


def test_the_pack_is_native_where_the_engine_says_so(tmp_path: Path) -> None:
    """A log that ends before the session is up leaves it open."""
    assert read(tmp_path, STDOUT, f"{NATIVE}\n{STDERR}").context["native_pack"] is True
    assert read(tmp_path).context["native_pack"] is False
    assert read(tmp_path, STDOUT, without(STDERR, SESSION)).context["native_pack"] is None


@pytest.mark.parametrize(
    ("flags", "size"),
    [
        ((), None),
        (("--expert-cache", "auto"), None),
        (("--expert-cache", "512"), 512),
        (("--expert-cache", "auto", "--expert-cache", "512"), 512),
        (("--expert-cache", "512", "--expert-cache", "auto"), None),
        (("--expert-cache", "0"), None),
        (("--expert-cache", "foo"), None),
        (("--expert-cache", "12abc"), 12),
        (("--expert-cache", "-3"), None),
    ],
)
def test_the_forced_size_is_the_last_one(
    tmp_path: Path, flags: tuple[str, ...], size: int | None
) -> None:
    """The last of a repeated flag counts; with a profile 0 means automatic."""
    assert read(tmp_path, flags=(*FLAGS, *flags)).recorded["forced_cache"] == size


def test_swaps_loans_and_memory_are_recorded(tmp_path: Path) -> None:
    """Swaps, loans and memory are recorded beside the residency, not in its key."""
    context = read(tmp_path).recorded

    assert context["swaps"] == 312
    assert context["lent_slots"] == 210
    assert context["mtp_vram_mib"] == 835
    assert context["pcie_probe_gb_s"] == 12.3


def test_a_prompt_path_of_its_own_borrows_nothing(tmp_path: Path) -> None:
    """No loan is a number too: none."""
    own = "strata generate: prompt path allocates its own buffers (no cache slots to borrow)"
    stderr = STDERR.replace("strata generate: prompt path borrows 210 cache slots (0.38 GiB)", own)

    assert read(tmp_path, STDOUT, stderr).context["lent_slots"] == 0


def test_the_share_is_the_one_that_was_used(tmp_path: Path) -> None:
    """The result block tells it; else the flag; else what the probe led to."""
    silent = without(STDOUT, line_of(STDOUT, SHARE))
    given = (*FLAGS, "--pcie-frac", "0")

    assert read(tmp_path).recorded["pcie_share"] == 51 / 256
    assert read(tmp_path, flags=given).recorded["pcie_share"] == 51 / 256
    assert read(tmp_path, silent, flags=given).recorded["pcie_share"] == 0.0
    assert read(tmp_path, silent).recorded["pcie_share"] == 67 / 256
    assert read(tmp_path, silent, "").recorded["pcie_share"] is None
    assert read(tmp_path, silent, STDERR.replace("0.26", "nan")).recorded["pcie_share"] is None
    assert read(tmp_path, silent, STDERR.replace("0.26", "7.0")).recorded["pcie_share"] is None


def test_newer_probes_tell_their_samples(tmp_path: Path) -> None:
    """From 0.1.38 on the probe lists what it is the best of."""
    newer = PROBE.replace("->", "(best of 24.0 23.7 23.9 23.9) ->", 2).replace(
        "host(best of 24.0 23.7 23.9 23.9) ->device", "host->device"
    )
    reading = read(tmp_path, STDOUT, STDERR.replace(PROBE, newer))

    assert reading.context["pcie_probe_gb_s"] == 12.3


def test_too_few_drafts_for_the_stream_are_a_doubt(tmp_path: Path) -> None:
    """Rounds and accepted drafts must account for what was printed."""
    few = STDOUT.replace("drafts accepted 38", "drafts accepted 30")
    at_limit = STDOUT.replace("drafts accepted 38", "drafts accepted 37")

    def doubts(stdout: str, stderr: str = STDERR) -> list[str]:
        remarks = read(tmp_path, stdout, stderr).remarks
        return [remark.line for remark in remarks if remark.weight is Weight.DOUBTFUL]

    assert doubts(few) == ["the draft statistics account for 53 ids, 60 were printed"]
    assert doubts(at_limit) == []
    assert doubts(at_limit, f"{NATIVE}\n{STDERR}") != []


def test_an_ignored_drafter_is_a_warning(tmp_path: Path) -> None:
    """Without a verify window the engine ignores the drafter and says so in passing."""
    line = "strata generate: --mtp is ignored: it needs --spec >= 2"
    stdout = without(STDOUT, SPECULATION)
    said = read(tmp_path, stdout, f"{line}\n{STDERR}")
    silent = read(tmp_path, stdout)

    assert said.warnings == (f"the drafter is ignored: {line}",)
    assert said.draft.device is None
    assert silent.warnings == ("--mtp was given, and the log holds no draft statistics",)
    assert read(tmp_path, stdout, flags=("--pack", "p")).warnings == ()
    assert read(tmp_path, dump("cut").replace(SPECULATION + "\n", "")).warnings == ()


def test_unknown_lines_change_nothing(tmp_path: Path) -> None:
    """Later engines and launchers print what no table knows."""
    more = """\
[strata] 2026-10-08 17:29:35 engine started: strata --serve
# run=1 label=x
strata serve: decode expert cache hit rate: 97.1% (300934 hits / 309870 lookups)
strata hc: CUDA1: the plain one (Volta: the fused
    two-kernel window; it is slower)
strata verify: capturing the 1-token window (1314 MiB of VRAM free)
load_hparams: n = 12
"""
    plain, more_read = read(tmp_path), read(tmp_path, STDOUT + more, more + STDERR)

    assert more_read.residency == plain.residency
    assert more_read.stream == plain.stream
    assert more_read.signs == ()
    assert more_read.recorded == plain.recorded


def _colored(text: bytes) -> bytes:
    return b"\n".join(b"\x1b[32m" + line + b"\x1b[0m" for line in text.split(b"\n"))


@pytest.mark.parametrize(
    "dressed",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"\n", b"\0\n\0"),
        lambda text: b"caf\xe9 \xff\xfe\n" + text,
        _colored,
    ],
    ids=["CRLF", "NUL", "no UTF-8", "colors"],
)
def test_the_bytes_around_the_lines_do_not_matter(
    tmp_path: Path, dressed: Callable[[bytes], bytes]
) -> None:
    """CRLF, ANSI codes, NULs and bytes that are no UTF-8 survive."""
    plain = read(tmp_path)
    reading = read(tmp_path, dressed(STDOUT.encode()), dressed(STDERR.encode()))

    for name in ("stream", "echo", "residency", "recorded", "timings", "speculation", "signs"):
        assert getattr(reading, name) == getattr(plain, name)
