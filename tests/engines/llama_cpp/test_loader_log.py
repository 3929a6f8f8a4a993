"""What a loader's log tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hetero_test.engines.llama_cpp.loader_log import (
    BufferUse,
    GraphSplits,
    LoaderLog,
    Projection,
    parse_loader_log,
    read_loader_log,
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


@pytest.mark.parametrize(
    "prefix", ["", "llm_load_print_meta: ", "print_info: ", "0.01.02.003 I sched_reserve: "]
)
@pytest.mark.parametrize(
    ("line", "splits"),
    [
        (
            "graph splits = 668 (with bs=512), 1 (with bs=1)",
            GraphSplits(prefill=668, decode=1, batch=512),
        ),
        ("graph splits = 310", GraphSplits(prefill=310, decode=310, batch=None)),
        ("graph: nodes = 130, splits = 3", GraphSplits(prefill=3, decode=3, batch=None)),
    ],
)
def test_splits_are_read_in_every_form(prefix: str, line: str, splits: GraphSplits) -> None:
    """With and without batch sizes, whatever function prints them."""
    assert parse_loader_log([prefix + line]).splits == (splits,)


@pytest.mark.parametrize("prefix", ["llama_params_fit_impl: ", "common_params_fit_impl: "])
def test_the_projection_is_read(prefix: str) -> None:
    """Both functions that fit parameters print used and free memory."""
    line = "projected to use 71326 MiB of device memory vs. 120459 MiB of free device memory"
    assert parse_loader_log([prefix + line]).projections == (
        Projection(used_mib=71326, free_mib=120459, kind="device"),
    )


def test_a_whole_log_is_read(tmp_path: Path) -> None:
    """Buffers by device and use, cache, splits and unified memory."""
    path = tmp_path / "log"
    path.write_text(LOG)
    log = read_loader_log(path)
    assert log.decode_splits == 1
    assert log.device_mib(BufferUse.MODEL) == {
        "CUDA0": 23429.79,
        "CUDA_Host": 417.66,
        "RPC0[127.0.0.1:50052]": 1.69,
    }
    assert log.device_mib(BufferUse.COMPUTE) == {"CUDA0": 1501.0}
    assert log.kv_mib == 6016.0
    assert log.uma == (("Vulkan0", True),)


def test_the_cache_is_summed_where_its_whole_is_not_printed() -> None:
    """Two devices with a part each make the whole."""
    lines = ["CUDA0 KV buffer size = 10.50 MiB", "CPU KV buffer size = 1.00 MiB"]
    assert parse_loader_log(lines).kv_mib == 11.5


def test_nothing_is_none() -> None:
    """A log that says nothing leaves everything unknown."""
    assert parse_loader_log(["hello"]) == LoaderLog()
    assert LoaderLog().decode_splits is None
    assert LoaderLog().kv_mib is None


def test_the_main_context_is_the_one_with_most_splits() -> None:
    """A drafter's context on one device has fewer."""
    log = parse_loader_log(["graph splits = 310", "graph splits = 2"])
    assert log.decode_splits == 310


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    """A wrong file and a folder are told apart from an empty answer."""
    path = tmp_path / "other"
    path.write_text("nothing of the kind\n")
    with pytest.raises(UsageError, match="no line of a llama"):
        read_loader_log(path)
    with pytest.raises(UsageError, match="regular file"):
        read_loader_log(tmp_path)


@given(st.lists(st.text(max_size=80), max_size=5))
def test_noise_around_a_line_does_not_hide_it(noise: list[str]) -> None:
    """Whatever other lines there are, the splits are found."""
    lines = [text.replace("splits", "") for text in noise]
    log = parse_loader_log([*lines, "graph splits = 7", *lines])
    assert log.decode_splits == 7
