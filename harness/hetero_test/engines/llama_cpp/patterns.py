"""The one table of log lines of llama.cpp and its forks, and how bytes become lines to match it.

:func:`lines_of` takes a stream and gives lines, :func:`text_of` and :func:`decoded` give text;
whatever the bytes are, none of them raises. The lines of the table are those of tag v0.4.0 and of
older builds as public logs show them. Every pattern is matched at the start of a line's message,
behind the clock (``m.ss.mmm.uuu LEVEL``) and the name of the printing function, which differ by
build.
"""

from __future__ import annotations

import re
from io import BytesIO
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBER: Final = rb"[-+]?(?:\d[\d.,]*|nan|inf)(?:[eE][-+]?\d{1,15})?"
_MIB: Final = rb"= +(\d{1,15}(?:\.\d{1,15})?) MiB"

_TIMING: Final = (
    rb"eval time +=(?: +(" + _NUMBER + rb") ms / +(\d{1,15}) (?:tokens|runs)"
    rb"(?: +\( *" + _NUMBER + rb" ms per (?:token|run)(?:, +(" + _NUMBER + rb") tokens per second)?"
    rb"\))?)?"
)

PATTERNS: Final = MappingProxyType(
    {
        # common_params_print_info: build 1 (5b4ebc5) with GNU 11.4.0 for Linux x86_64
        # build: 4321 (abcdef0) with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu
        "build": rb"build:? (\S+ \(\w+\))",
        # system_info: n_threads = 1 (n_threads_batch = 1) / 2 | CPU : SSE3 = 1 | AVX2 = 1 |
        "system": rb"n_threads = .*?\| (.*)",
        #   - RPC0    : 127.0.0.1:50052 (24105 MiB, 24105 MiB free)
        "device": rb"- (\w+) +: (.*) \((\d{1,15}) MiB, (\d{1,15}) MiB free\)",
        # using device RPC0 (127.0.0.1:50052) (unknown id) - 24105 MiB free
        # using device CUDA0 (NVIDIA GeForce RTX 3090) - 23877 MiB free
        "using": rb"using device (\S+) \((.*)\) - (\d{1,15}) MiB free",
        # - device 0: RPC0        (of a tensor split, whose one device is called Meta())
        "split_device": rb"- device \d{1,15}: (\S+)",
        # fitting params to device memory ...   /   fitting params to free memory took 0.00 seconds
        "fit_begin": rb"fitting params to device memory",
        "fit_end": rb"fitting params to (?:free|device) memory took",
        # loaded meta data with 27 key-value pairs and 39 tensors from m.gguf (version GGUF V3 …
        "model": rb"loaded meta data with (\d{1,15}) key-value pairs and (\d{1,15}) tensors "
        rb"from (.*?)(?: \(version.*)?$",
        # loading draft model 'm/draft-f32.gguf'
        "draft_model": rb"loading draft model",
        # no_alloc              = 1        (a dry run of the fit: nothing is placed)
        "dry": rb"no_alloc += (\d)",
        "vocabulary": rb"n_vocab +(?:\([^)]*\) +)?= (\d{1,15})",
        "experts": rb"n_expert += (\d{1,15})",
        # layer   0 assigned to device RPC0, is_swa = 0
        "layer": rb"layer +(\d{1,15}) assigned to device ([^,\s]+)",
        # tensor blk.0.ffn_up_exps.weight (1 MiB f32) buffer type overridden to CPU
        "override": rb"tensor ([^'\s]\S*) (?:\([^)]*\) )?buffer type overrid\w+ to (\S+)",
        # Tensor blk.3.ffn_up_exps.weight (size = 9.00 MiB) buffer type overriden to CPU
        "old_override": rb"Tensor ([^'\s]\S*) (?:\([^)]*\) )?buffer type overrid\w+ to (\S+)",
        # tensor 'a.weight' (f32) (and 3 others) cannot be used with preferred buffer type CUDA0, …
        "moved": rb"tensor '([^']*)' \([^)]*\) \(and (\d{1,15}) others\) cannot be used with "
        rb"preferred buffer type ([^,\s]+), using (\S+) instead",
        # offloaded 5/5 layers to GPU       (printed on CPU-only runs too: no evidence)
        "offloaded": rb"offloaded (\d{1,15})/(\d{1,15}) layers to GPU",
        "context": rb"constructing llama_context",
        # KV self size  = 6016.00 MiB, K (f16): 3008.00 MiB, V (f16): 3008.00 MiB
        "kv_self": rb"KV self size +" + _MIB,
        # layer   0: dev = RPC0
        "kv_layer": rb"layer +(\d{1,15}): dev = (\S+)",
        # graph splits = 17 (with bs=512), 25 (with bs=1)   /   graph: nodes = 130, splits = 3, …
        "splits": rb"graph(?: splits|: nodes = \d{1,15}, splits) = (\d{1,15})"
        rb"(?: \(with bs=\d{1,15}\), (\d{1,15}) \(with bs=1\))?",
        # adding speculative implementation 'draft-simple'
        "drafting": rb"adding speculative implementation '([^']*)'",
        "no_drafting": rb"no implementations specified for speculative decoding",
        # draft acceptance = 0.77049 (   47 accepted /    61 generated), mean len =  3.94
        "acceptance": rb"draft acceptance(?: rate)? = +"
        + _NUMBER
        + rb" \( *(\d{1,15}) accepted / +"
        rb"(\d{1,15}) generated\)(?:, mean len = +(" + _NUMBER + rb"))?",
        # statistics     draft-simple: #calls(b,g,a) =    1      9      9, … dur(b,g,a) = 0.001, …
        "rounds": rb"statistics +(\S+): +#calls\(b,g,a\) = +\d{1,15} +(\d{1,15}) +\d{1,15},"
        rb".*?dur\(b,g,a\) = +" + _NUMBER + rb", +(" + _NUMBER + rb"),",
        # n_drafted = 61   /   n_accept  = 47      (tools without a server)
        "n_drafted": rb"n_drafted += (\d{1,15})",
        "n_accept": rb"n_accept += (\d{1,15})",
        # prompt eval time =       2.71 ms /    25 tokens (    0.11 ms per token,  9214.89 tokens …
        "prompt_time": rb"prompt " + _TIMING,
        #        eval time =    3194.22 ms /   783 runs   (    4.08 ms per token,   245.13 tokens …
        "time": _TIMING,
        # INFO [           print_timings] generation eval time =    3194.22 ms /   783 runs   ( …
        "generation_time": rb"generation " + _TIMING,
        "listening": rb"listening on",
        "old_listening": rb"HTTP server (?:is )?listening",
        # main: server is listening on http://127.0.0.1:8080 - starting the main loop
        "server_listening": rb"server is listening on",
    }
)
"""Event name to the pattern of its line's message; the groups are the event's arguments.

Each begins with :data:`KEY` or more literal bytes, by which a message finds its rows. What
``print_timing`` says while it decodes (``n_decoded``, ``n_gen``) is a rolling value and no row.
"""

BUFFER: Final = re.compile(rb"(\S++) ++(?:(model|KV|RS|compute|output) )?buffer size +" + _MIB)
"""``RPC0[127.0.0.1:50052] model buffer size =     1.69 MiB``: begins with any name."""
BUFFER_WORDS: Final = b"buffer size ="
"""What stands in every line that :data:`BUFFER` may match."""

UMA: Final = re.compile(rb"ggml_vulkan: (\d{1,3}) = .{1,200}? \|.*?\buma: ([01])\b")
"""``ggml_vulkan: 0 = AMD Radeon Graphics (radv) | uma: 1 | fp16: 1 | …``; only triage asks."""

# Quantifiers are possessive, since a head that fitted need never be given back.
HEAD: Final = re.compile(
    rb"(?:\d{1,15}+\.\d{1,15}+\.\d{1,15}+\.\d{1,15}+ )?+"
    rb"(?:D (?!load_tensors: |[tT]ensor |llama_kv_cache\w*: |done_getting_tensors: )()"
    rb"|(?:([DIWE]) )?+(?:INFO ++\[ *+\w++\] ++)?+(?:(?:srv|slot|cmn|spec|que|res) ++)?+"
    rb"(?:(?!error: |build: |graph: )[\w~]++: ++)*+"
    rb"(?:id ++-?\d{1,15}+ \| task -?\d{1,15}+ \| ++)?+[ \t]*+)"
)
"""Clock, level, tag, function, slot and task of a line.

Group 1 takes part in debug lines that no row is about, which are most lines of a long run;
group 2 is the level.
"""

KEY: Final = 2
"""How many bytes of a message choose the rows that may fit it."""


def _rows() -> dict[bytes, re.Pattern[bytes]]:
    """The rows by their first bytes; ``lastgroup`` names the one that fits.

    The name stands in an empty group behind its row, which is why it is the last one.
    """
    rows: dict[bytes, list[bytes]] = {}
    for name, pattern in PATTERNS.items():
        rows.setdefault(pattern[:KEY], []).append(b"%s(?P<%s>)" % (pattern, name.encode()))
    return {key: re.compile(b"|".join(found)) for key, found in rows.items()}


ROWS: Final = _rows()
ARGUMENTS: Final = {name: re.compile(pattern).groups for name, pattern in PATTERNS.items()}
"""How many arguments each event has; they stand right before the row's own group."""

CLOCK: Final = re.compile(rb"\d{1,15}(?:\.\d{1,15}){3} (?=[DIWE] )")
"""The clock of a line, which differs between two equal runs."""

ANSI: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
"""Terminal control sequences."""


_INSIDE_NUMBER = re.compile(rb"(?<=\d)(?:\0|\x1b\[[0-?]*[ -/]*[@-~])+(?=\d)")
_CHUNK_BYTES = 1 << 20
_LINE_BYTES = 1 << 14
"""What exceeds this in one line is not looked at."""


def lines_of(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """The lines of a log, by the list: without ends, carriage returns, NULs, control sequences.

    Args:
        stream: opened in binary mode; read to its end in constant memory.
    """
    carry = b""
    while chunk := stream.read(_CHUNK_BYTES):
        text = carry + chunk
        if b"\r" in text:
            text = text.replace(b"\r", b"\n")
        *whole, carry = text.split(b"\n")
        carry = carry[:_LINE_BYTES]
        if b"\x1b" in text or b"\0" in text:
            whole = [_clean(line) if b"\x1b" in line or b"\0" in line else line for line in whole]
        yield whole
    if carry:
        yield [_clean(carry)]


def _clean(line: bytes) -> bytes:
    """A line without NULs and control sequences."""
    # Between two digits a mark stays, so that no number comes out that the log does not hold.
    line = _INSIDE_NUMBER.sub(b"\x1a", line[:_LINE_BYTES])
    return ANSI.sub(b"", line.replace(b"\0", b""))


def text_of(line: bytes) -> str:
    """A line for people, without its clock."""
    return CLOCK.sub(b"", line[:500], count=1).decode("utf-8", "replace").strip()


def decoded(output: bytes) -> tuple[str, ...]:
    """The lines of a short output as text."""
    return tuple(
        line.decode("utf-8", "replace").rstrip()
        for lines in lines_of(BytesIO(output))
        for line in lines
    )
