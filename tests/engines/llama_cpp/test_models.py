"""What a log tells of the models: which are loaded in earnest, and where they are placed."""

from __future__ import annotations

import pytest

from hetero_test.engines.llama_cpp.log import Drafts, MovedTensors
from tests.engines.llama_cpp.samples import RPC0, RPC1, log, said


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
    assert MovedTensors(
        tensor="token_embd.weight", others=21, preferred="CPU_REPACK", used="CPU"
    ) in (repacked.moved)


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
