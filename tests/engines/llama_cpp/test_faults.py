"""Error lines: which mean that a run went wrong, and how."""

from __future__ import annotations

import pytest

from hetero_test.values.remark import Weight
from tests.engines.llama_cpp.samples import LOGS, log, said


@pytest.mark.parametrize(
    ("name", "fault", "words"),
    [
        ("unknown-argument", Weight.REFUSED, "invalid argument: --bogus"),
        ("unknown-device", Weight.REFUSED, "invalid device: RPC9"),
        ("unknown-buffer", Weight.REFUSED, "unknown buffer type"),
        ("quantized-v", Weight.REFUSED, "quantized V cache requires flash_attn"),
        ("row-split", Weight.REFUSED, "does not support split buffers"),
        ("no-model", Weight.FATAL, "failed to open GGUF file"),
        ("no-draft-model", Weight.FATAL, "failed to open GGUF file"),
        ("no-mtp", Weight.FATAL, "failed to create MTP context"),
        ("assert", Weight.FATAL, "GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max) failed"),
        ("buffer-abort", Weight.FATAL, "cannot run the operation"),
        ("rpc-down", Weight.FATAL, "Failed to connect to 127.0.0.1:50052"),
        ("rpc-protocol", Weight.FATAL, "RPC handshake failed"),
        ("rpc-no-memory", Weight.NO_MEMORY, "failed to allocate RPC0[127.0.0.1:50052] buffer"),
    ],
)
def test_faults(name: str, fault: Weight, words: str) -> None:
    """What went wrong is told from the line that says so: refusal, memory, abort or error."""
    assert any(found.weight is fault and words in found.line for found in log(name).faults)


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
    """Every backend's way of saying that the placement does not fit, with a level or without."""
    assert [found.weight for found in said(line).faults] == [Weight.NO_MEMORY]


@pytest.mark.parametrize("clock", ["", "0.01.000.000 E "])
@pytest.mark.parametrize(
    "line",
    [
        "vk::Queue::submit: ErrorDeviceLost",
        "ggml_vulkan: vk::Device::waitForFences: ErrorDeviceLost",
        "CUDA error: an illegal memory access was encountered",
        "ROCm error: unspecified launch failure",
        "Remote RPC server crashed or returned malformed response",
        "terminate called after throwing an instance of 'vk::DeviceLostError'",
    ],
)
def test_a_device_that_failed_is_told_with_a_level_or_without(clock: str, line: str) -> None:
    """Backends print by themselves, past the log; an answer that came all the same counts not."""
    ready = "0.00.008.000 I srv  llama_server: listening on http://127.0.0.1:1"
    (found,) = said(ready, clock + line).faults
    assert found.weight in {Weight.FATAL, Weight.FATAL}


@pytest.mark.parametrize(
    "line",
    [
        "ggml_cuda_host_malloc: failed to allocate 512.00 MiB of pinned memory: out of memory",
        "0.01.000.000 E ggml_vulkan: Failed to allocate pinned memory (ErrorOutOfHostMemory)",
        "ggml_vulkan: Failed to allocate pinned memory (ErrorOutOfHostMemory)",
        "0.00.001.000 E ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is "
        "detected",
        "ggml_cuda_init: failed to initialize ROCm: no ROCm-capable device is detected",
        "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA "
        "runtime version",
        "0.01.000.000 W ggml_vulkan: Failed to allocate pinned memory (ErrorOutOfHostMemory)",
        "0.01.000.000 I common_fit_params: 2 layers do not fit: out of memory is avoided",
        "0.01.000.000 E llama_init_from_model: failed to initialize the context: x requires "
        "ctx_other to be set (this warning is normal during memory fitting)",
    ],
)
def test_warnings_are_no_faults(line: str) -> None:
    """What the engine marks as a warning, calls normal, or does without, never counts."""
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
    assert [f.weight for f in said(*tried, "a.cpp:1: GGML_ASSERT(x) failed").faults] == [
        Weight.FATAL
    ]
    again = tried[2].replace("0.00.008", "0.00.010")
    assert [f.weight for f in said(*tried, over, again).faults] == [Weight.NO_MEMORY]


def test_refusals_are_those_before_readiness() -> None:
    """Once the server listens, an error is an error, whatever words it uses."""
    error = "0.00.009.000 E srv  send_error: task id = 0, error: invalid token in the batch"
    assert [f.weight for f in said(error).faults] == [Weight.REFUSED]
    ready = "0.00.008.000 I srv  llama_server: listening on http://127.0.0.1:1"
    assert [f.weight for f in said(ready, error).faults] == [Weight.FATAL]


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
    assert found[-1].weight is Weight.FATAL
