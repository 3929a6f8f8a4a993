"""Lines that show that a run went wrong, and lines that only look like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hetero_test.values.reading import Sign, Symptom
from tests.engines.strata.samples import GREEDY, STDERR, STDOUT, read

G = "strata generate: "

REFUSED = [
    "unknown argument: --foo",
    "--spec needs a value",
    f"{G}--tokens is required (this build has no tokenizer; give ids)",
    "supply one token input only",
    "cannot open token file",
    "malformed token file: invalid token id: expected an integer in [0, 2147483647]",
    "malformed token file: token list was empty",
    f"{G}--ple-gguf is required; --no-ple explicitly enables a diagnostic ablation",
    f"{G}--native requires --ple-gguf (the table is not in the shard)",
    f"{G}positive --max-new and --max-context must fit the prompt and generation",
    "--max-context 64 cannot hold 95 prompt + 60 new tokens",
    f"{G}--kv must be fp16, int8, q4_0 or k8v4",
    f"{G}invalid sampling or resource parameter",
    f"{G}--main-device/--draft-device and --layer-split are mutually exclusive: one or the other",
    f"{G}a remote draft (--main-device 0 --draft-device 1) and the remote expert caches "
    "(--expert-cache-deviceN) both address the second GPU; give one",
    f"{G}--main-device 0 / --draft-device 1: out of range (1 visible GPU)",
    f"{G}--draft-device needs the MTP drafter (--mtp and --spec >= 2): without one there is "
    "nothing to place",
    f"{G}--draft-prefill-parallel is a hetero multi-GPU mode: it needs the roles, "
    "--main-device != --draft-device",
    f"{G}--auto-roles needs at least two visible GPUs (1 found): add one",
    f"{G}--layer-split K[,K2..]|auto needs --serve, rising K from 2",
    f"{G}a layer split across GPUs needs --expert-profile",
    f"{G}this CPU (AMD Phenom) does not support AVX2 with FMA and F16C, which it must",
    f"{G}--cpu-oracle-q8-0 cannot be combined with --expert-cache or --expert-profile",
    f"{G}--spec needs the device residency table (--expert-profile, --expert-cache and the token "
    "graph)",
    f"{G}ran out of context at position 4090",
]
NO_MEMORY = [
    f"{G}ExpertCache: 5011 slots x 1382400 B = 6.45 GiB, but only 5.90 GiB of VRAM is free "
    "(700 MiB kept). Lower --expert-cache.",
    f"{G}cudaMalloc(1382400) for the weight arena failed",
    f"{G}hipMalloc(1382400) for the weight arena failed",
    f"{G}mtp: the 512 experts do not fit in VRAM",
    f"{G}mtp: buffers do not fit",
    f"{G}mtp draft layer: out of memory",
    "some library: Out Of Memory on device 0",
    "cudaErrorMemoryAllocation",
]
ERRORS = [
    f"{G}prefill copy_i32: an illegal memory access was encountered",
    f"{G}mtp draft: unspecified launch failure",
    f"{G}mtp draft step: invalid argument",
    f"{G}mtp prefill: invalid resource handle",
    f"{G}mtp prefill barrier: unknown",
    f"{G}mtp: the draft head's rows failed to cross to the draft device",
    f"{G}the expert pool failed at layer 3 expert 7: read",
    f"{G}the profile fill failed at pair 12",
    f"{G}ExpertCache::verify_slot: slot 3 differs from the arena at byte 12",
    f"{G}an adaptive refill failed",
    f"{G}this engine has no code for GTX 780 (sm_35): no kernel image - rebuild it",
    "strata verify: captured the 4-token window (upload invalid argument, sync no error)",
    "strata verify: captured the 4-token window (upload no error, sync operation not permitted)",
    "strata verify: captured the 4-token window (upload out of memory, sync no error)",
    "CUDA error: invalid device function",
    "ggml_cuda: CUDA error 700 at kernel.cu:12",
    "HIP error: invalid argument",
    "cuBLAS error 14",
    "cudaErrorIllegalAddress",
    "ERROR: something broke",
    "error: something broke",
    f"{G}error: something broke",
    "[strata] Error: something broke",
    "ERR no such layer",
    "    CUDA error: behind blanks",
    "strata serve: no progress for 60 s during a request (reading) - stopping the engine",
]
NOT_NUMBERS = [
    f"{G}12 of 248320 logits are not finite at position 96",
    f"{G}NaN in the hidden state of layer 3",
]
HARMLESS = [
    "strata verify: captured the 4-token window (upload no error, sync no error)",
    f"{G}WARNING: layer split: --expert-cache 9 leaves no room: CUDA error text; 8 slots instead",
    "WARNING: CUDA error in a warning",
    "[strata] warning: out of memory soon",
    f"{G}186 MiB of VRAM free with everything loaded - LOW: requests may stall; add it",
    "strata mtp: no pinned RAM left for the draft layer's K/V copy; keeping it in VRAM",
    "strata mtp: pinned copy: out of memory; keeping it in VRAM",
    f"{G}cudaMalloc failed: out of memory; trying a smaller expert cache: 3300 slots",
    f"{G}CUDA error: out of memory; trying a smaller expert cache: 3300 slots",
    f"{G}only 512 MiB free once the slots are written (reserve 700 MiB); shrinking the cache",
    "strata mtp: the RoPE tables on the draft device could not be filled (CUDA error: x); the "
    "drafter stays on the main path",
    f"{G}--layer-split auto: one GPU visible, so no split",
    f"{G}--mtp is ignored: it needs --spec >= 2",
    f"{G}this CPU has no AVX-512: the expert kernels run on AVX-2",
    f"{G}profile /data/error/nan.txt: 24576 ranked pairs, built for 24576 slots",
    f"{G}0 errors, relative error 0.001",
    "STDERR is kept apart",
    "finance: nan of the banana",
    "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
    "an illegal move in chess",
]


def found(folder: Path, line: str) -> list[Symptom]:
    """The symptoms of an ordinary log with one further line, on either file."""
    there = read(folder, STDOUT, f"{STDERR}{line}\n").signs
    here = read(folder, STDOUT + line + "\n").signs
    assert there == here
    assert all(sign.line == line for sign in there)
    return [sign.symptom for sign in there]


def test_an_ordinary_log_shows_nothing(tmp_path: Path) -> None:
    """A run that went well has no signs and no warnings."""
    reading = read(tmp_path)

    assert reading.signs == ()
    assert reading.warnings == ()


@pytest.mark.parametrize("line", REFUSED)
def test_documented_refusals_are_seen(tmp_path: Path, line: str) -> None:
    """Each refusal that the engine documents is quoted as one."""
    assert found(tmp_path, line) == [Symptom.REFUSED]


def test_pack_refusals_are_left_to_the_exit_code(tmp_path: Path) -> None:
    """A refusal that begins with the user's own path has no start to look for."""
    line = f"{G}/p is a native (IQ) pack: it needs --native SHARD1, --spec T (T >= 2) and more"

    assert found(tmp_path, line) == []


@pytest.mark.parametrize("line", NO_MEMORY)
def test_a_placement_that_does_not_fit_is_seen(tmp_path: Path, line: str) -> None:
    """The engine's words for a lack of memory."""
    assert Symptom.NO_MEMORY in found(tmp_path, line)


@pytest.mark.parametrize("line", ERRORS)
def test_errors_are_seen(tmp_path: Path, line: str) -> None:
    """An error counts in upper or lower case, whichever program prints it."""
    assert Symptom.ERROR in found(tmp_path, line)


@pytest.mark.parametrize("line", NOT_NUMBERS)
def test_values_that_are_no_numbers_are_seen(tmp_path: Path, line: str) -> None:
    """The engine's words for NaN, which are no error of their own."""
    assert found(tmp_path, line) == [Symptom.NOT_A_NUMBER]


@pytest.mark.parametrize("line", HARMLESS)
def test_what_only_looks_like_it_is_passed_over(tmp_path: Path, line: str) -> None:
    """Warnings, ways out and mere words never count; nor does garbage in a log."""
    assert found(tmp_path, line) == []


def test_sampling_is_seen(tmp_path: Path) -> None:
    """Only the engine's own line says whether it sampled."""
    line = "strata generate: sampling temperature=1 top_k=20 top_p=0.95 seed=7"
    reading = read(tmp_path, STDOUT, STDERR.replace(GREEDY, line))

    assert reading.signs == (Sign(symptom=Symptom.NOT_GREEDY, line=line),)


def test_nan_statistics_are_no_sign(tmp_path: Path) -> None:
    """Without a draft round the drafter's time is 0/0, which harms nothing."""
    line = "mtp    -nan ms/round drafting (0 rounds), MTP prompt 1.0 ms, 8 MiB of VRAM"

    assert found(tmp_path, line) == []


@pytest.mark.parametrize("line", ["unknown argument: --foo", "--spec needs a value"])
def test_usage_text_shows_nothing(tmp_path: Path, line: str) -> None:
    """Behind a refusal the engine prints its usage, whose options may speak of any trouble.

    A line that is no option's counts as ever: one line never silences the rest of a log.
    """
    usage = "usage: strata [options]\n  --expert-cache N   lower it when out of memory\n"
    signs = read(tmp_path, "", f"{line}\n{usage}").signs

    assert [sign.symptom for sign in signs] == [Symptom.REFUSED]
    signs = read(tmp_path, "", f"{line}\n{usage}CUDA error: x\n").signs
    assert [sign.symptom for sign in signs] == [Symptom.REFUSED, Symptom.ERROR]


def test_usage_text_ends_with_its_file(tmp_path: Path) -> None:
    """What standard output says is not covered by a usage text on standard error."""
    signs = read(tmp_path, "ERR late\n", "unknown argument: --foo\n").signs

    assert [sign.symptom for sign in signs] == [Symptom.REFUSED, Symptom.ERROR]


def test_an_indented_line_belongs_to_its_message(tmp_path: Path) -> None:
    """A warning that is wrapped stays a warning; an error that is wrapped stays an error."""
    warned = f"{G}WARNING: the fused\n    two-kernel window: CUDA error text\n"
    broken = f"{G}hc: the fused\n    two-kernel window: CUDA error text\n"

    assert read(tmp_path, STDOUT, STDERR + warned).signs == ()
    assert [s.symptom for s in read(tmp_path, STDOUT, STDERR + broken).signs] == [Symptom.ERROR]


def test_few_signs_of_a_kind_are_kept(tmp_path: Path) -> None:
    """A log full of errors fills no report, and hides no sign of another kind."""
    many = "".join(f"CUDA error {number}: {'x' * 900}\n" for number in range(1, 100))
    signs = read(tmp_path, STDOUT, many + "cudaErrorMemoryAllocation\n").signs

    assert signs[0].line.startswith("CUDA error 1: ")
    assert sum(sign.symptom is Symptom.ERROR for sign in signs) <= 4
    assert any(sign.symptom is Symptom.NO_MEMORY for sign in signs)
    assert max(len(sign.line) for sign in signs) <= 300


def test_an_error_within_an_endless_line_is_seen(tmp_path: Path) -> None:
    """Dots without a line break may go on for ever; what stands among them is still read."""
    dots = "." * 700_000
    signs = read(tmp_path, STDOUT, f"{STDERR}{dots} CUDA error: here {dots}\n").signs

    assert [sign.symptom for sign in signs] == [Symptom.ERROR]
    assert "CUDA error: here" in signs[0].line
