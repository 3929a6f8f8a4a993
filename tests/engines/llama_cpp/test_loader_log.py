"""What a loader's log tells."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.engines.llama_cpp.loader_log import (
    LoaderLog,
    read_loader_log,
    scan_loader_log,
)
from hetero_test.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

LOG = """\
common_params_fit_impl: projected to use 71326 MiB of device memory \
vs. 120459 MiB of free device memory
ggml_vulkan: 0 = AMD Radeon Graphics (RADV GFX1151) (radv) | uma: 1 | fp16: 1 | warp size: 64
load_tensors:        CUDA0 buffer size = 23429.79 MiB
load_tensors:    CUDA_Host buffer size =   417.66 MiB
load_tensors: RPC0[127.0.0.1:50052] model buffer size =     1.69 MiB
llama_kv_cache_init:      CUDA0 KV buffer size =  6016.00 MiB
llama_new_context_with_model: KV self size  = 6016.00 MiB, \
K (f16): 3008.00 MiB, V (f16): 3008.00 MiB
llama_new_context_with_model:      CUDA0 compute buffer size =  1501.00 MiB
llama_new_context_with_model: graph nodes  = 3672
llama_new_context_with_model: graph splits = 668 (with bs=512), 1 (with bs=1)
"""


def scanned(*lines: str) -> LoaderLog:
    """What these lines say."""
    return scan_loader_log(BytesIO("\n".join(lines).encode()))


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "llm_load_print_meta: ",
        "print_info: ",
        "0.01.02.003 I sched_reserve: ",
        "Dec 01 03:00:00 host llama-server[42]: 0.01.02.003.004 D sched_reserve: ",
    ],
)
@pytest.mark.parametrize(
    ("line", "splits"),
    [
        ("graph splits = 668 (with bs=512), 1 (with bs=1)", 1),
        ("graph splits = 310", 310),
        ("graph: nodes = 130, splits = 3", 3),
    ],
)
def test_splits_are_read_in_every_form(prefix: str, line: str, splits: int) -> None:
    """With and without batch sizes, behind any prefix; the splits of one token count."""
    assert scanned(prefix + line).decode_splits == splits


def test_a_whole_log_is_read(tmp_path: Path) -> None:
    """Splits and unified memory, among lines on other things."""
    path = tmp_path / "log"
    path.write_text(LOG)
    log = read_loader_log(path)
    assert log.decode_splits == 1
    assert log.uma == (("Vulkan0", True),)
    assert log.only_uma is True


def test_of_several_devices_unified_memory_is_not_told() -> None:
    """The numbers of Vulkan are not those of another backend, so one of two is nobody's."""
    lines = [f"ggml_vulkan: {i} = A card | uma: {i} | fp16: 1" for i in (0, 1)]
    assert scanned(*lines).only_uma is None
    assert scanned(lines[1], lines[1]).only_uma is True


def test_a_loader_without_splits_is_a_loader_all_the_same(tmp_path: Path) -> None:
    """A log of buffers is a loader's, and its splits are unknown: some builds print none."""
    path = tmp_path / "log"
    path.write_text("load_tensors:        CUDA0 buffer size = 23429.79 MiB\n")
    assert read_loader_log(path) == LoaderLog(loading=True)


def test_nothing_is_none() -> None:
    """A log that says nothing leaves everything unknown."""
    assert scanned("hello") == LoaderLog()
    assert LoaderLog().decode_splits is None


def test_the_main_context_is_the_one_with_most_splits() -> None:
    """A drafter's context on one device has fewer."""
    assert scanned("graph splits = 310", "graph splits = 2").decode_splits == 310


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    """A wrong file and a folder are told apart from an empty answer."""
    path = tmp_path / "other"
    path.write_text("nothing of the kind\n")
    with pytest.raises(UsageError, match="no line of a llama"):
        read_loader_log(path)
    with pytest.raises(UsageError, match="it is a folder"):
        read_loader_log(tmp_path)


@given(st.lists(st.text(max_size=80), max_size=5))
def test_noise_around_a_line_does_not_hide_it(noise: list[str]) -> None:
    """Whatever other lines there are, the splits are found."""
    lines = [text.replace("splits", "") for text in noise]
    assert scanned(*lines, "graph splits = 7", *lines).decode_splits == 7
