"""Logs as the engine prints them, and how to have them read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from hetero_test.engines.base import LaunchedCell, Survey
from hetero_test.engines.strata.adapter import Strata
from hetero_test.values.reading import Reading
from hetero_test.values.run import Device, Probe

IDS = tuple(range(3000, 3060))
PROMPT = (220, 5, 17)
NO_SURVEY = Survey(devices=(), device_count=None, how="not asked", known_flags=None)
FLAGS = ("--pack", "/m/pack", "--spec", "4", "--mtp", "/m/mtp", "--expert-profile", "p.txt")

GPU = "strata generate: GPU 0: NVIDIA GeForce GTX 1080 Ti, compute capability 6.1"
FINAL = "strata generate: expert cache 4400 slots, 5.66 GiB of VRAM; policy is"
RESIDENT = "strata generate: token graph hit path: 4400 resident experts, decided on the device"
SESSION = "strata generate: session is up (engine 0.1.34)"
GREEDY = "strata generate: sampling greedy"
ROLES = (
    "strata generate: device roles: main 0, draft 1 (two GPUs; the drafter and its own K/V load "
    "on the draft device)"
)
WORKSPACE = "strata mtp: the draft layer's gr workspace runs on the draft device (0.3 MiB)"
ESTIMATE = (
    "strata generate: expert cache auto: 6.40 GiB free, 700 MiB reserved (+281 MiB for the draft "
    "head) -> 4400 slots"
)
DECODE = "decode                   60 tokens in 8303.7 ms  ->  7.23 tok/s"
PREFILL = (
    "prefill                  2 tokens in 112.8 ms  ->  17.73 tok/s  "
    "(time to first token 6120.5 ms)"
)
SPECULATION = (
    "speculation              22 rounds of 6, drafts accepted 38 of 62 (0.613), "
    "2.73 tokens per round"
)

STDOUT = f"""\
{SPECULATION}
window sizes             T1:3 T2:12 T3:20 T4:15 T5:10 T6:10  (min draft probability 0.50)
suffix drafts            5 windows, drafts accepted 1 of 9
accepted per round       0:3 1:6 2:7 3:6 4:0 5:0
verify window            wait for rings 21.518  pool 21.226  host 0.910  commit 0.773 ms/round; \
CPU experts 4.65 distinct / 5.57 routed per layer
pool multi               gate/up 7.997  quantize 0.120  down 4.090 ms/round; 25.5 GB/s over the \
rows phases; CPU pool call 21.215 ms/round
dispatch                 plan 2.832  activation quantize 0.168  jobs 0.359  run 17.844 ms/round
adaptive tier            312 experts swapped into the VRAM tier (every 4 rounds, 0.412 ms/round)
resident RAM             7.17 GiB of experts in RAM, 120 exchanged with the VRAM tier, 0 blob \
reads from the file
pcie experts             1.25 distinct experts per layer read over PCIe (share 51/256 of the misses)
mtp                      4.420 ms/round drafting (22 rounds), MTP prompt 12.3 ms, 870 MiB of VRAM
prompt  : {" ".join(map(str, PROMPT))}
output  : {" ".join(map(str, IDS))}
{DECODE}
{PREFILL}
"""

STDERR = f"""\
strata generate: PCIe probe: 12.3 GB/s host->device -> pcie_frac 0.26 (default 0.55)
strata generate: this CPU has no AVX-512: the expert kernels run on AVX-2 (multi-token for the \
i-quant gate/up rows)
strata generate: 1466 MiB of weights loaded from /m/pack (302 canonical tensors skipped: served \
natively)
strata generate: the SSD is kept awake while rows are read: one page of the table after 100 ms \
without a read, until 60 s after the last request (STRATA_SSD_KEEPALIVE=0 turns it off)
strata generate: profile p.txt: 24576 ranked pairs, built for 24576 slots
strata mtp: draft layer loaded, 835 MiB of VRAM (experts 675, dense 111), files read in 0.35 s \
(2213 MiB/s)
{GPU}
strata generate: expert arena: cudaHostRegister PORTABLE ok; 46.84 GiB
{ESTIMATE}
{FINAL}
strata generate: the GPU computes the experts in the cache; it rounds differently from the CPU,
                 so a reply can differ slightly from a run without the cache (same quality:
                 bench/results/2026-09-27-cache-parity).
                 PROFILE, ranked by routing frequency, no eviction.
strata generate: pre-filled 4400 of 4400 slots from the profile; slot 0 verified
strata generate: R4 hit path ON - resident experts are computed on the GPU
{SESSION}
{GREEDY}
{RESIDENT}
strata generate: prompt chunk auto: 256 tokens
strata generate: prompt path borrows 210 cache slots (0.38 GiB)
strata generate: 210 lent slots refilled in 101.2 ms
strata verify: captured the 4-token window (upload no error, sync no error)
strata generate: position 160, 64 tokens, 64 rounds
"""

TWO_CARDS = """\
strata generate: --auto-roles picked: MAIN 0 (the engine's default ordinal), DRAFT 1 (NVIDIA \
GeForce GTX 1080 Ti, 10897 MiB free)
strata generate: role device 0: NVIDIA GeForce GTX 1080 Ti, cc 6.1, dp4a yes, free VRAM 10897 MiB
strata generate: role device 1: NVIDIA GeForce RTX 3060, cc 8.6, dp4a yes, free VRAM 11897 MiB
strata generate: peer access 0 -> 1: yes (reported only; the mapped-mirror handoff needs none)
"""
AFTER_BINDING = """\
strata generate: role device 0 after the binding: 633 MiB free of 11163
strata generate: role device 1 after the binding: 9619 MiB free of 11165
"""


def card(ordinal: int, name: str = "NVIDIA GeForce GTX 1080 Ti") -> Device:
    """A device as the survey finds it."""
    return Device(id=str(ordinal), name=name, kind=f"CUDA {name}")


def survey(*devices: Device) -> Survey:
    """A survey that found these devices."""
    return Survey(devices=devices, device_count=len(devices), how="listed", known_flags=None)


def read(
    folder: Path,
    stdout: str | bytes = STDOUT,
    stderr: str | bytes = STDERR,
    *,
    flags: tuple[str, ...] = FLAGS,
    max_new: int = len(IDS),
    found: Survey = NO_SURVEY,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Reading:
    """What the adapter reads from two files with this content."""
    for name, content in (("stdout", stdout), ("stderr", stderr)):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return reread(folder, flags=flags, max_new=max_new, found=found, env=env)


def reread(
    folder: Path,
    *,
    flags: tuple[str, ...] = FLAGS,
    max_new: int = len(IDS),
    found: Survey = NO_SURVEY,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Reading:
    """What the adapter reads from the two files that are there."""
    probe = Probe(name="default", ids=PROMPT, max_new=max_new)
    asked = LaunchedCell(flags=flags, env=env, probe=probe, survey=found, folder=folder)
    return Strata().read(folder / "stdout", folder / "stderr", asked)


def dump(*lines: str) -> str:
    """Standard output with other lines in place of the output dump."""
    before, _, rest = STDOUT.partition("output  :")
    return before + "\n".join(lines) + "\n" + rest.partition("\n")[2]


def without(text: str, *lines: str) -> str:
    """A log without some of its lines."""
    for line in lines:
        assert line in text
        text = text.replace(line + "\n", "")
    return text
