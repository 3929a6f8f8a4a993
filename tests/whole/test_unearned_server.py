"""The same of a server: one placement in every log, and failures beside a whole answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hetero_test.cli.main import main
from tests.engines.llama_cpp.conftest import SOURCE
from tests.gguf.files import write
from tests.gguf.known_models import qwen3_moe
from tests.rigs import Told

pytestmark = pytest.mark.process

Capture = pytest.CaptureFixture[str]
LOADED = """\
llama_prepare_model_devices: using device CUDA0 (NVIDIA GeForce RTX 3090) - 24000 MiB free
print_info: n_vocab               = 768
load_tensors: offloaded 5/5 layers to GPU
load_tensors:        CUDA0 model buffer size =    13.15 MiB
llama_kv_cache:      CUDA0 KV buffer size =     1.00 MiB
"""
LISTENING = "main: server is listening on http://127.0.0.1:8080 - starting the main loop\n"


def played(
    folder: Path, capsys: Capture, log: str, *variants: str, strict: bool = False, without: str = ""
) -> Told:
    """Run a matrix of these variants on a server that prints a log, whatever its flags say.

    ``without`` is a word: devices in whose name it is are not listed, but for an accelerator
    without memory of its own.
    """
    build = folder / "build"
    build.mkdir()
    server = build / "llama-server"
    text = SOURCE.read_text()
    if without:
        lines = [line for line in text.splitlines() if without not in line or "MiB" not in line]
        text = "\n".join(lines).replace(
            "Available devices:\n", "Available devices:\n  BLAS: OpenBLAS (0 MiB, 0 MiB free)\n", 1
        )
    server.write_text(f"#!{sys.executable} -IS\n{text}")
    server.chmod(0o755)
    (build / "answer.log").write_text(log)
    matrix = folder / "m.toml"
    tables = "".join(f"[[variant]]\n{body}\n" for body in variants)
    matrix.write_text(f'engine = "llama_cpp"\n{tables}')
    model = write(folder / "m.gguf", qwen3_moe(2, 64, 4, 64, "F16"))
    prompt = folder / "prompt.txt"
    prompt.write_text(" ".join(map(str, range(405, 430))))
    options = ("--matrix", str(matrix), "--tokens-file", str(prompt), "--repeats", "1")
    options += ("--max-new", "32", "--quiet", *(("--strict",) if strict else ()))
    out = folder / "out"
    capsys.readouterr()
    code = main(["--build-dir", str(build), "--out", str(out), *options, "--", "-m", str(model)])
    said = capsys.readouterr()
    return Told(code=code, out=out, stdout=said.out, stderr=said.err)


ALONE = 'id = "a"\nname = "all on CUDA0"\nflags = ["-dev", "CUDA0"]\neffect = { main = "CUDA0" }'
SPLIT = (
    'id = "b"\nname = "over both"\nflags = ["-dev", "CUDA0,CUDA1"]\n'
    'effect = { main = "CUDA0+CUDA1" }'
)


@pytest.mark.parametrize("strict", [False, True])
def test_a_placement_that_is_the_baselines_own_has_not_moved(
    strict: bool, tmp_path: Path, capsys: Capture
) -> None:
    """Being where the flags say is not moving: with nothing moved the matrix is INCONCLUSIVE."""
    told = played(tmp_path, capsys, LOADED + LISTENING, ALONE, strict=strict)
    assert told.code == 4, told.stdout + told.stderr
    assert told.states("0") == told.states("a") == ["OK"]
    assert "nothing moved" in told.report


@pytest.mark.parametrize(
    "line",
    [
        "E ggml_metal_synchronize: error: command buffer 0 failed with status 5",
        "E error: Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)",
        "ggml_vulkan: device lost while it computed",
        "CUDA error: an illegal memory access was encountered",
    ],
)
def test_an_error_while_a_request_is_answered_refuses_no_flag(
    line: str, tmp_path: Path, capsys: Capture
) -> None:
    """A server that listens has taken its command line: what fails from then on is a crash."""
    told = played(tmp_path, capsys, LOADED + LISTENING + line + "\n", ALONE)
    assert told.code == 4, told.stdout + told.stderr
    assert told.states("0") == told.states("a") == ["CRASHED"]
    assert line.rpartition(": ")[2] in told.report


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("llama_model_load: error loading model: vk::Queue::submit: ErrorDeviceLost", "CRASHED"),
        ("llama_model_load: error: failed to load model '/m/a.gguf'", "CRASHED"),
        ("main: error: unable to load model", "CRASHED"),
        ("error: invalid argument: --bogus", "REFUSED"),
        ("ggml_backend_alloc: CUDA error: out of memory", "NO_MEMORY"),
    ],
)
def test_a_model_that_does_not_load_was_not_refused(
    words: str, state: str, tmp_path: Path, capsys: Capture
) -> None:
    """Only the engine's own word on its command line refuses; the telling line is quoted."""
    later = "\\n0.00.100.000 I srv cleaning up before exit..."
    env = (
        f'env = {{ FAKE_SCENARIO = "early-words", FAKE_WORDS = {json.dumps(words)[:-1]}{later}" }}'
    )
    told = played(tmp_path, capsys, LOADED, ALONE, f"{SPLIT}\n{env}")
    assert told.states("b") == [state], told.stdout + told.stderr
    assert told.code == 4
    assert words.rpartition(": ")[2] in told.report


def test_an_accelerator_without_memory_is_no_place_for_layers(
    tmp_path: Path, capsys: Capture
) -> None:
    """BLAS computes for the CPU, in its memory: with no other device nothing can be compared."""
    variant = ALONE.replace("CUDA0", "{device}") + '\nfor_each = "device"'
    told = played(tmp_path, capsys, LOADED + LISTENING, variant, without="NVIDIA")
    assert told.code == 3, told.stdout + told.stderr
    assert not (told.out / "run.json").exists()
