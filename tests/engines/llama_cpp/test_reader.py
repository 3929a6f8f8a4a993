"""Logs of llama.cpp: what is read from them, and that nothing in them can do harm."""

from __future__ import annotations

import io
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.engines import llama_lines, llama_patterns
from harness.engines.llama_lines import lines_of, number
from harness.engines.llama_log import Drafts, Fault, LlamaLog, Moved, Rate
from harness.engines.llama_reader import nothing, read

LOGS = Path(__file__).with_name("logs")
RPC0, RPC1 = "RPC0[127.0.0.1:50052]", "RPC0[127.0.0.1:50053]"


def log(name: str) -> LlamaLog:
    """A real log."""
    with (LOGS / f"{name}.log").open("rb") as stream:
        return read(stream)


def said(*lines: str) -> LlamaLog:
    """What some lines say."""
    return read(io.BytesIO("\n".join(lines).encode()))


# ---- models and memory ---------------------------------------------------------------------


def test_one_device() -> None:
    """Buffers, layers, KV and graph splits are those of the load in earnest, not of the fit."""
    found = log("rpc0")
    main = found.main
    assert main is not None
    assert main.weights_mib == {"CPU_Mapped": 0.38, RPC0: 13.15}
    assert main.layers == dict.fromkeys(range(5), "RPC0")
    assert (main.vocabulary, main.experts) == (768, 8)
    assert len(main.contexts) == 1
    assert main.contexts[0].kv_mib == {RPC0: 1.0}
    assert main.contexts[0].compute_mib == {RPC0: 4.76, "CPU": 1.51}
    assert main.contexts[0].kv_layers == dict.fromkeys(range(4), "RPC0")
    assert main.contexts[0].splits == 2


def test_machine() -> None:
    """Build, instruction sets and device list are read."""
    found = log("split")
    assert found.build == "1 (5b4ebc5)"
    assert "AVX2" in found.system
    assert [device.id for device in found.devices] == ["CPU", "RPC0", "RPC1"]
    assert found.devices[1].name == "127.0.0.1:50052"


def test_layer_split() -> None:
    """Each layer's device is told, the output layer's too."""
    main = log("split").main
    assert main is not None
    assert main.layers == {0: "RPC0", 1: "RPC0", 2: "RPC0", 3: "RPC1", 4: "RPC1"}


def test_overrides() -> None:
    """Tensors that -ot moved are named with where they went."""
    main = log("experts-apart").main
    assert main is not None
    assert len(main.overrides) == 12
    assert main.overrides["blk.3.ffn_up_exps.weight"] == RPC1


def test_repacked_weights() -> None:
    """What the CPU repacks has a buffer of its own; without repacking there is none."""
    repacked, plain = log("repack").main, log("no-repack").main
    assert repacked is not None
    assert plain is not None
    assert repacked.weights_mib["CPU_REPACK"] == 1.85
    assert "CPU_REPACK" not in plain.weights_mib
    assert Moved(tensor="token_embd.weight", others=21, preferred="CPU_REPACK", used="CPU") in (
        repacked.moved
    )


def test_draft_model_is_told_from_the_main_one() -> None:
    """A model that was announced as the draft model is the drafter."""
    found = log("draft-other")
    assert found.main is not None
    assert found.draft is not None
    assert found.main.path == "dense-f32.gguf"
    assert found.draft.path == "draft-f32.gguf"
    assert found.draft.layers == {0: "RPC1", 1: "RPC1"}
    assert found.drafting == ("draft-simple",)
    assert found.drafts == Drafts(
        accepted=5, offered=5, mean_length=3.5, rounds=2, draft_ms=found.drafts.draft_ms
    )


def test_draft_model_that_nothing_drafts_with() -> None:
    """A draft model without a way of speculation is loaded, and nothing was set up."""
    found = log("draft-unused")
    assert found.draft is not None
    assert found.drafting == ()
    assert found.drafts == Drafts()


def test_offloaded_is_no_evidence() -> None:
    """A run on the CPU alone says that all layers were offloaded to a GPU; nothing follows."""
    found = log("cpu")
    assert any("offloaded 5/5 layers to GPU" in line for line in found.lines)
    assert found.main is not None
    assert found.main.weights_mib == {"CPU_Mapped": 3.0}


def test_less_verbose_log() -> None:
    """Without debug lines there are buffers, but no layers."""
    main = log("split-lv4").main
    assert main is not None
    assert main.layers == {}
    assert main.weights_mib == {"CPU_Mapped": 0.38, RPC0: 1.69, RPC1: 0.94}


def test_older_dialect_of_memory_lines() -> None:
    """Builds of 2023 and 2024 print the same under other names, and sizes without "model"."""
    main = said(
        "llama_model_loader: loaded meta data with 24 key-value pairs and 291 tensors from "
        "/models/a.gguf (version GGUF V2)",
        "llm_load_print_meta: n_vocab          = 32000",
        "llm_load_print_meta: n_expert         = 8",
        "llm_load_tensors:        CPU buffer size =    70.31 MiB",
        "llm_load_tensors:      CUDA0 buffer size = 23429.79 MiB",
        "llama_kv_cache_init:      CUDA0 KV buffer size =  6016.00 MiB",
        "llama_new_context_with_model: KV self size  = 6016.00 MiB, K (f16): 3008.00 MiB",
        "llama_new_context_with_model:  CUDA_Host  output buffer size =     0.12 MiB",
        "llama_new_context_with_model:      CUDA0 compute buffer size =   164.00 MiB",
        "llama_new_context_with_model: graph splits = 668 (with bs=512), 1 (with bs=1)",
    ).main
    assert main is not None
    assert (main.vocabulary, main.experts) == (32000, 8)
    assert main.weights_mib == {"CPU": 70.31, "CUDA0": 23429.79}
    assert main.contexts[0].kv_mib == {"CUDA0": 6016.0}
    assert main.contexts[0].compute_mib == {"CUDA0": 164.0}
    assert main.contexts[0].splits == 1


@pytest.mark.parametrize(
    ("line", "splits"),
    [
        ("llama_new_context_with_model: graph splits = 310", 310),
        ("sched_reserve: graph splits = 17 (with bs=512), 25 (with bs=1)", 25),
        ("sched_reserve: graph: nodes = 130, splits = 3, input objects = 4", 3),
    ],
)
def test_graph_splits(line: str, splits: int) -> None:
    """Splits are those of decoding, whichever way they are printed."""
    main = said("x: loaded meta data with 1 key-value pairs and 2 tensors from a.gguf", line).main
    assert main is not None
    assert main.contexts[0].splits == splits


def test_fork_spells_an_override_otherwise() -> None:
    """ik_llama.cpp writes the word with one d, and a capital letter."""
    main = said(
        "x: loaded meta data with 1 key-value pairs and 2 tensors from a.gguf",
        "Tensor blk.3.ffn_up_exps.weight buffer type overriden to CPU",
    ).main
    assert main is not None
    assert main.overrides == {"blk.3.ffn_up_exps.weight": "CPU"}


def test_two_caches_of_one_model_add_up() -> None:
    """A model with a sliding window has two caches, and prints a line for each."""
    main = said(
        "x: loaded meta data with 1 key-value pairs and 2 tensors from a.gguf",
        "llama_context: constructing llama_context",
        "llama_kv_cache:      CUDA0 KV buffer size =    40.00 MiB",
        "llama_kv_cache:      CUDA0 KV buffer size =     2.50 MiB",
    ).main
    assert main is not None
    assert main.contexts[0].kv_mib == {"CUDA0": 42.5}


# ---- timings -------------------------------------------------------------------------------


def test_timings() -> None:
    """The final timing lines are read with their number of tokens."""
    found = log("cpu")
    assert found.prompt.tokens == 25
    assert found.decode.tokens == 8
    assert found.decode.tok_s is not None
    assert found.decode.tok_s > 0


@pytest.mark.parametrize(
    ("line", "rate"),
    [
        (
            "slot print_timing: id  0 | task 0 |        eval time =      46.09 ms /    64 tokens "
            "(    0.73 ms per token,  1366.77 tokens per second)",
            Rate(tokens=64, ms=46.09, tok_s=1366.77),
        ),
        (
            "llama_print_timings:        eval time =    3194.22 ms /   783 runs   "
            "(    4.08 ms per token,   245.13 tokens per second)",
            Rate(tokens=783, ms=3194.22, tok_s=245.13),
        ),
        (
            "llama_perf_context_print:        eval time =     100.00 ms /    50 runs   "
            "(    2.00 ms per token,   500.00 tokens per second)",
            Rate(tokens=50, ms=100.0, tok_s=500.0),
        ),
        (
            "common_perf_print:        eval time =     100.00 ms /    50 runs   "
            "(    2.00 ms per token,   500.00 tokens per second)",
            Rate(tokens=50, ms=100.0, tok_s=500.0),
        ),
        (
            "INFO [           print_timings] generation eval time =    3194.22 ms /   783 runs   "
            '(    4.08 ms per token,   245.13 tokens per second) | tid="1" timestamp=1',
            Rate(tokens=783, ms=3194.22, tok_s=245.13),
        ),
        (
            # Before June 2023 no rate was printed.
            "llama_print_timings:        eval time =  1460.00 ms /   127 runs   "
            "(   11.50 ms per run)",
            Rate(tokens=127, ms=1460.0, tok_s=127 / 1460.0 * 1000),
        ),
        (
            "llama_print_timings:        eval time =       0.00 ms /     1 runs   "
            "(    0.00 ms per token,      inf tokens per second)",
            Rate(tokens=1),
        ),
        (
            "llama_print_timings:        eval time =     -nan ms /     1 runs   "
            "(    -nan ms per token,     -nan tokens per second)",
            Rate(tokens=1),
        ),
        (
            # A comma decimal where it can be nothing else (B055).
            "llama_print_timings:        eval time =  3194,22 ms /   783 runs   "
            "(    4,08 ms per token,   245,13 tokens per second)",
            Rate(tokens=783, ms=3194.22, tok_s=245.13),
        ),
    ],
)
def test_timing_dialects(line: str, rate: Rate) -> None:
    """Every dialect of the timing lines is read; "inf" and "0.00 ms" mean no timing (B049)."""
    assert said(line).decode == rate
    assert said(line).unread_timings == ()


def test_timing_of_an_unknown_dialect_is_no_zero() -> None:
    """A timing line that cannot be read is kept as such, and no timing comes of it (B049)."""
    found = said("llama_print_timings:        eval time = three seconds")
    assert found.decode == Rate()
    assert found.unread_timings == ("llama_print_timings:        eval time = three seconds",)


@pytest.mark.parametrize("word", ["n_decoded", "n_gen"])
def test_rolling_values_are_no_timings(word: str) -> None:
    """What the server says while it decodes is not its final rate, whatever its name (B051)."""
    line = (
        f"2.02.846.974 I slot print_timing: id  3 | task 0 | {word} =   1081, tg =  12.93 t/s, "
        "tg_3s =  12.57 t/s"
    )
    assert said(line).decode == Rate()
    assert said(line).unread_timings == ()


def test_of_several_requests_the_last_counts() -> None:
    """A server that answered twice reports the second; a fresh process answers once (B061)."""
    line = "slot print_timing: id  0 | task {} |        eval time = {} ms /    10 tokens"
    assert said(line.format(0, "100.00"), line.format(7, "50.00")).decode.ms == 50.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("15.25", 15.25),
        ("15,25", 15.25),
        ("1,234", None),  # either one point two or a thousand
        ("1,234.5", None),
        ("1,2,3", None),
        ("nan", None),
        ("-nan", None),
        ("inf", None),
        ("1.2.3", None),
        ("", None),
    ],
)
def test_numbers(text: str, value: float | None) -> None:
    """A number that may be read in two ways, or is none, is no number."""
    assert number(text.encode()) == value


def test_drafts_of_tools_without_a_server() -> None:
    """Counts that stand on lines of their own are read as well."""
    found = said("n_drafted = 61", "n_accept  = 47")
    assert found.drafts == Drafts(accepted=47, offered=61)


def test_older_name_of_draft_acceptance() -> None:
    """Where the line says that it is a rate, it is the same line."""
    line = "draft acceptance rate = 0.57576 (   19 accepted /    33 generated)"
    assert said(line).drafts == Drafts(accepted=19, offered=33)


# ---- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fault", "words"),
    [
        ("unknown-argument", Fault.REFUSED, "invalid argument: --bogus"),
        ("unknown-device", Fault.REFUSED, "invalid device: RPC9"),
        ("unknown-buffer", Fault.REFUSED, "unknown buffer type"),
        ("quantized-v", Fault.REFUSED, "quantized V cache requires flash_attn"),
        ("row-split", Fault.REFUSED, "does not support split buffers"),
        ("no-model", Fault.ERROR, "failed to open GGUF file"),
        ("no-draft-model", Fault.ERROR, "failed to open GGUF file"),
        ("no-mtp", Fault.ERROR, "failed to create MTP context"),
        ("assert", Fault.ABORT, "GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max) failed"),
        ("buffer-abort", Fault.ABORT, "cannot run the operation"),
        ("rpc-down", Fault.ABORT, "Failed to connect to 127.0.0.1:50052"),
        ("rpc-protocol", Fault.ABORT, "RPC handshake failed"),
        ("rpc-no-memory", Fault.NO_MEMORY, "failed to allocate RPC0[127.0.0.1:50052] buffer"),
    ],
)
def test_faults(name: str, fault: Fault, words: str) -> None:
    """What went wrong is told from the line that says so: refusal, memory, abort or error."""
    assert any(found.fault is fault and words in found.line for found in log(name).faults)


@pytest.mark.parametrize(
    "line",
    [
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9216.00 MiB on device 0: "
        "cudaMalloc failed: out of memory",
        "CUDA error: out of memory",
        "ggml_vulkan: Device memory allocation of size 1073741824 failed.",
        "ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory",
        "0.01.000.000 E llama_init_from_model: failed to initialize the context: "
        "failed to allocate compute pp buffers",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
    ],
)
def test_out_of_memory_texts(line: str) -> None:
    """Every backend's way of saying that the placement does not fit."""
    if line.startswith("ggml_vulkan"):
        line = f"0.01.000.000 E {line}"
    assert [found.fault for found in said(line).faults] == [Fault.NO_MEMORY]


@pytest.mark.parametrize(
    "line",
    [
        "0.01.000.000 W ggml_vulkan: Failed to allocate pinned memory (ErrorOutOfHostMemory)",
        "0.01.000.000 I common_fit_params: 2 layers do not fit: out of memory is avoided",
        "0.01.000.000 E llama_init_from_model: failed to initialize the context: x requires "
        "ctx_other to be set (this warning is normal during memory fitting)",
    ],
)
def test_warnings_are_no_faults(line: str) -> None:
    """Lines that the engine marks as warnings, or calls normal, never count."""
    assert said(line).faults == ()


def test_trying_what_fits_may_fail() -> None:
    """Errors while the engine tries what fits are no failure; an abort is one even then."""
    tried = (
        "0.00.007 I x",
        "0.00.007.000 I common_init_: fitting params to device memory ...",
        "0.00.008.000 E alloc_tensor_range: failed to allocate CUDA0 buffer of size 99999999",
    )
    over = "0.00.009.000 I common_fit_params: fitting params to free memory took 0.03 seconds"
    assert said(*tried, over).faults == ()
    assert [f.fault for f in said(*tried, "a.cpp:1: GGML_ASSERT(x) failed").faults] == [Fault.ABORT]
    again = tried[2].replace("0.00.008", "0.00.010")
    assert [f.fault for f in said(*tried, over, again).faults] == [Fault.NO_MEMORY]


def test_refusals_are_those_before_readiness() -> None:
    """Once the server listens, an error is an error, whatever words it uses."""
    error = "0.00.009.000 E srv  send_error: task id = 0, error: invalid token in the batch"
    assert [f.fault for f in said(error).faults] == [Fault.REFUSED]
    ready = "0.00.008.000 I srv  llama_server: listening on http://127.0.0.1:1"
    assert [f.fault for f in said(ready, error).faults] == [Fault.ERROR]


def test_good_runs_have_no_faults() -> None:
    """No line of a run that went well looks like an error."""
    good = [path.name.removesuffix(".reply.json") for path in LOGS.glob("*.reply.json")]
    assert len(good) > 10
    assert {name: log(name).faults for name in good} == dict.fromkeys(good, ())


def test_protocol_mismatch() -> None:
    """The line on the versions is not always flushed before the abort; where it is, it counts."""
    found = said("0.00.024.616 E RPC server version mismatch: 99.0.0").faults
    assert [fault.line for fault in found] == ["E RPC server version mismatch: 99.0.0"]


def test_many_errors_keep_each_kind() -> None:
    """Thousands of lines of one kind of error take no memory and hide no other kind."""
    lines = ["0.00.009.000 E srv: x failed"] * 5000 + ["a.cpp:1: GGML_ASSERT(x) failed"]
    found = said(*lines).faults
    assert len(found) < 100
    assert found[-1].fault is Fault.ABORT


# ---- bytes ---------------------------------------------------------------------------------


def _same(one: LlamaLog, other: LlamaLog) -> None:
    assert (one.models, one.decode, one.drafts) == (other.models, other.decode, other.drafts)
    assert (one.devices, one.faults) == (other.devices, other.faults)


@pytest.mark.parametrize("name", ["draft-other", "experts-apart", "rpc-no-memory"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"\n", b"\r"),
        lambda text: re.sub(rb"(?m)^", b"\x1b[32m", text).replace(b"\n", b"\x1b[0m\n"),
        lambda text: text.replace(b" I ", b" I \0"),
        lambda text: text.replace(b"\n", b"\n\xff\xfe\xc3 broken \xe2\x82\n"),
        lambda text: text.replace(b"\n", b"\n" + b"x" * 200_000 + b"\n", 3),
        lambda text: text.removesuffix(b"\n"),
    ],
    ids=["crlf", "cr", "ansi", "nul", "utf8", "long", "cut"],
)
def test_spoiled_bytes_change_nothing(name: str, spoil: object) -> None:
    """Line ends, colors, NULs, broken UTF-8 and endless lines do not change what is read."""
    text = (LOGS / f"{name}.log").read_bytes()
    assert callable(spoil)
    _same(read(io.BytesIO(spoil(text))), read(io.BytesIO(text)))


def test_no_number_comes_of_two_halves() -> None:
    """What stood between two digits leaves a mark, so that 1 NUL 2 is not read as 12."""
    for between in (b"\0", b"\x1b[0m", b"\0\x1b[1m\0"):
        text = b"load_tensors: CUDA0 model buffer size = 1" + between + b"2.00 MiB\n"
        assert b"12.00" not in next(iter(next(iter(lines_of(io.BytesIO(text))))))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_chunks_do_not_matter(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the bytes are cut while they are read, the same comes out."""
    text = (LOGS / "draft-cpu.log").read_bytes()[-9000:]
    whole = read(io.BytesIO(text))
    monkeypatch.setattr(llama_lines, "_CHUNK_BYTES", size)
    assert read(io.BytesIO(text)) == whole


def test_memory_is_constant() -> None:
    """A log of any length, and a line of any length, is read in the memory of a few chunks."""

    class Endless(io.RawIOBase):
        left = 24 * 2**20

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            self.left -= size
            line = b"0.00.009.000 D slot process_toke: id  3 | task 0 | n_gen = 1, next 7\n"
            return b"" if self.left < 0 else (b"x" * size if self.left % 2 else line * (size // 70))

    tracemalloc.start()
    read(Endless())  # type: ignore[arg-type]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * 2**20


def test_nothing() -> None:
    """A log that is not there says nothing."""
    assert nothing() == read(io.BytesIO(b""))
    assert nothing().main is None


def _line() -> st.SearchStrategy[bytes]:
    real = [line for path in LOGS.glob("*.log") for line in path.read_bytes().splitlines()]
    cut = st.tuples(st.sampled_from(sorted(set(real))), st.integers(0, 120), st.binary(max_size=4))
    return st.one_of(
        st.binary(max_size=200),
        st.sampled_from(sorted(set(real))),
        cut.map(lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :]),
        st.sampled_from(sorted(set(real))).map(lambda line: re.sub(rb"\d+", b"9" * 5000, line)),
    )


@given(st.lists(_line(), max_size=30), st.sampled_from([b"\n", b"\r\n", b"\r"]))
@example([b"n_vocab = " + b"9" * 5000], b"\n")
def test_no_bytes_raise(lines: list[bytes], end: bytes) -> None:
    """Whatever a log holds, reading it raises nothing, and reading twice gives the same."""
    text = end.join(lines)
    assert read(io.BytesIO(text)) == read(io.BytesIO(text))


def test_every_row_starts_with_its_key() -> None:
    """A row is found by the first bytes of its message, so these must be literal."""
    for name, pattern in llama_patterns.PATTERNS.items():
        key = pattern[: llama_patterns.KEY]
        assert re.escape(key.decode()) in {key.decode(), f"\\{key.decode()}", "\\-\\ "}, name
        assert pattern in llama_patterns.ROWS[key].pattern
