"""What a line says that no reader knows: families of failures, marks, negations, quotations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.engines.meaning import LONGEST, Level, level_of, weigh
from hetero_test.values.remark import Weight

FATAL = [
    "unspecified launch failure",
    "verify: device-side assert triggered",
    "the launch timed out and was terminated",
    "cudaMemcpyAsync: invalid argument",
    "CUDA failure 719",
    "hipErrorLaunchFailure",
    "hipMemcpyPeer failed",
    "CUBLAS_STATUS_EXECUTION_FAILED",
    "HSA_STATUS_ERROR_EXCEPTION: an error",
    "Memory access fault by GPU node-1 on address 0x7f",
    "VK_ERROR_DEVICE_LOST",
    "vk::Queue::submit: ErrorDeviceLost",
    "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)",
    "command buffer 0 failed with status 5",
    "UR_RESULT_ERROR_DEVICE_LOST",
    "a.cpp:12: GGML_ASSERT(x) failed",
    "double free or corruption (!prev)",
    "malloc(): corrupted top size",
    "*** stack smashing detected ***: terminated",
    "Segmentation fault (core dumped)",
    "libfoo.so.0(some_function+0x285)[0x7fd966cf1b15]",
    "*** buffer overflow detected ***: terminated",
    "run.sh: line 3:   412 Killed   ./strata",
    "child exited with signal 11",
    "thread 'main' panicked at src/main.rs:4:5",
    "Traceback (most recent call last):",
    "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
]
NO_MEMORY = [
    "CUDA error: out of memory",
    "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
    "error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
    "what():  std::bad_alloc",
    "oom-kill:constraint=CONSTRAINT_NONE,task=strata",
]
NUMBERS = [
    "logits min nan max nan",
    "residual norm -nan",
    "NaN in layer 12",
    "3 logits are inf",
    "loss = -1.#IND",
    "found -nan for i1 = 0",
    "output: Infinity in 2 rows",
]
DOUBTFUL = [
    "--draft-chain-batch is ignored: it needs another device",
    "note: the option has no effect here",
    "flash attention is not supported on this device, disabled",
    "peer copy unavailable, falling back to host memory",
    "graph capture turned off for this device",
    "using the CPU instead",
    "the second card was lost",
    "request to use device 1 could not be honoured",
    "draft head kept on the main device",
    "the card stopped responding",
    "the second link is down",
    "kernel status 3 at layer 7",
    "the type of the cache was replaced by another one",
    "using 1 of 2 devices",
    "only 20 of 33 layers offloaded",
    "the process exited with code 134",
    "expected 2 devices, found 1",
    "V cache of this kind requires another kernel",
    "fault detected in the second half",
    "W load: override did not match any tensor, ignoring it",
    "WARNING: --draft-device is unsupported in this build",
]
HARMLESS = [
    "no NaN in 248320 logits at position 95",
    "WARN: CUDA error seen by the last process",
    "[W] an illegal memory access was encountered in the last session",
    "W0101 00:00:00.0 12 cuda.cc:1] CUDA error in the last session",
    "2026-01-01 10:00:00 WARNING CUDA error in the last session",
    "CUDA error checking is on",
    "last CUDA error: cudaSuccess",
    "ECC error count 0",
    "0 errors, 0 warnings, 0 dropped",
    "12 files read without any error",
    "relative error 0.001, mean error 1e-5",
    "profile /data/error/nan.txt: 24576 pairs",
    "loading experts 12 of 64",
    'the name of the chat is "CUDA out of luck"',
    "finance: nan of the banana",
    "> what does a kernel panic look like?",
    "--check-tensors     check model tensor data for invalid values (default: false)",
    "==48213== ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)",
    "error rate 0.00 %",
    "timeout 600 s",
    "received signal 2, stopping",
    "exit code 0",
    "I llama_context: flash_attn            = disabled",
    "fallback device: none",
    "npm WARN deprecated thing@1.0: not supported",
    "  MUL_MAT(type=f16,n=4): not supported [X0]",
    "D slot update: nothing to do, ignoring",
]


@pytest.mark.parametrize("line", FATAL)
def test_failures_of_drivers_and_run_times_are_fatal_in_any_log(line: str) -> None:
    """A text of a known family counts whoever prints it, in front or behind other words."""
    assert weigh(line) is Weight.FATAL
    assert weigh(f"some engine: {line}") is Weight.FATAL


@pytest.mark.parametrize("line", NO_MEMORY)
def test_what_does_not_fit_is_told_from_what_broke(line: str) -> None:
    """Each family has its own way to say that memory ran out."""
    assert weigh(line) is Weight.NO_MEMORY


@pytest.mark.parametrize("line", NUMBERS)
def test_numbers_that_are_none_are_seen_as_every_run_time_prints_them(line: str) -> None:
    """NaN and infinities of C, Python, Java and Windows, beside a word for what they are of."""
    assert weigh(line) is Weight.NOT_A_NUMBER


@pytest.mark.parametrize("line", DOUBTFUL)
def test_a_thing_left_undone_is_doubtful(line: str) -> None:
    """Refused, ignored, switched off, done elsewhere: by few general words, also in a warning."""
    assert weigh(line) is Weight.DOUBTFUL


@pytest.mark.parametrize("line", HARMLESS)
def test_negations_counts_marks_and_quotations_take_words_their_meaning(line: str) -> None:
    """What speaks of no failure of this run says nothing, however many telling words it has."""
    assert weigh(line) is Weight.NOTHING


@pytest.mark.parametrize(
    "line",
    [
        "cudaMemcpy: an illegal memory access was encountered, carry on: ok",
        '{"level":"error","prompt":"x","msg":"CUDA error: an illegal memory access"}',
        '{"role":"worker","level":"error","msg":"CUDA error: an illegal memory access"}',
        "response: CUDA error: an illegal memory access was encountered",
        "system: Segmentation fault (core dumped)",
    ],
)
def test_what_only_looks_like_talk_or_a_good_result_silences_no_failure(line: str) -> None:
    """A role in front, a message in JSON and an "ok" at the end are no proof of harmlessness."""
    assert weigh(line) is Weight.FATAL


def test_a_failure_with_a_way_out_is_doubtful() -> None:
    """A line that goes on to say what is done instead does not end the run, but is quoted."""
    assert weigh("cudaMalloc failed: out of memory; trying a smaller buffer") is Weight.DOUBTFUL


def test_an_indented_line_shares_the_mark_of_its_message() -> None:
    """A wrapped warning stays a warning."""
    line = "    two-kernel window: CUDA error text"
    assert weigh(line, under="engine: WARNING: the fused") is Weight.NOTHING
    assert weigh(line, under="engine: the fused") is Weight.FATAL


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("W0101 00:00:00.0 1 a.cc:1] x", Level.WARNING),
        ("E0101 00:00:00.0 1 a.cc:1] x", Level.ERROR),
        ("[W] x", Level.WARNING),
        ("WARN: x", Level.WARNING),
        ("engine part: warning: x", Level.WARNING),
        ("2026-01-01T10:00:00Z ERROR x", Level.ERROR),
        ("0.00.021.803 E gguf: x", Level.ERROR),
        ("D x", Level.DEBUG),
        ("I x", Level.OTHER),
        ("Everything is fine", Level.NONE),
        ("e is a letter", Level.NONE),
    ],
)
def test_levels_are_read_in_every_common_form(line: str, level: Level) -> None:
    """glog, brackets, words, a date or a clock in front."""
    assert level_of(line) is level


@given(st.text(max_size=2 * LONGEST))
def test_any_text_has_a_weight(text: str) -> None:
    """Whatever a log holds, a weight comes out, and only of known lines is it `KNOWN`."""
    assert weigh(text) in set(Weight) - {Weight.KNOWN}
