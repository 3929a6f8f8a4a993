"""Model facts from GGUF files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import gguf
import pytest

from hetero_test.gguf.header import GgufError
from hetero_test.triage.model.facts import (
    Completeness,
    LayerFacts,
    LayerKind,
    ModelFacts,
    Role,
    TokenLists,
)
from hetero_test.triage.model.facts_file import dump_model_facts, load_model_facts
from hetero_test.triage.model.from_gguf import compare_tokens, read_model_file
from tests.gguf import known_models
from tests.gguf.files import Model, write, write_split

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KIB = 1024


def facts(folder: Path, model: Model) -> ModelFacts:
    """The facts that are read back from the model's file."""
    return read_model_file(write(folder / "model.gguf", model))


def layers_of(model: ModelFacts, kind: LayerKind) -> list[LayerFacts]:
    """The layers of plain decoding of this kind, in order."""
    return [layer for layer in model.layers if layer.kind is kind]


def tiny(**keys: Any) -> Model:
    """A dense model of four layers, 64 wide, with keys changed."""
    base: dict[str, Any] = {
        "block_count": 4,
        "embedding_length": 64,
        "feed_forward_length": 128,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "vocab_size": 96,
    }
    tensors: dict[str, tuple[tuple[int, ...], str]] = {
        "token_embd.weight": ((64, 96), "Q8_0"),
        "output_norm.weight": ((64,), "F32"),
        "output.weight": ((64, 96), "Q8_0"),
    }
    for i in range(4):
        tensors[f"blk.{i}.attn_norm.weight"] = ((64,), "F32")
        tensors[f"blk.{i}.attn_q.weight"] = ((64, 64), "Q8_0")
        tensors[f"blk.{i}.attn_k.weight"] = ((64, 32), "Q8_0")
        tensors[f"blk.{i}.attn_v.weight"] = ((64, 32), "Q8_0")
        tensors[f"blk.{i}.attn_output.weight"] = ((64, 64), "Q8_0")
        tensors[f"blk.{i}.ffn_gate.weight"] = ((64, 128), "Q4_0")
        tensors[f"blk.{i}.ffn_up.weight"] = ((64, 128), "Q4_0")
        tensors[f"blk.{i}.ffn_down.weight"] = ((128, 64), "Q4_0")
    return Model(arch="llama", keys=base, tensors=tensors).with_keys(**keys)


MODELS: list[tuple[Callable[[], Model], int, LayerKind, float]] = [
    (known_models.qwen3_30b, 48, LayerKind.FULL, 96),
    (known_models.qwen3_235b, 94, LayerKind.FULL, 188),
    (known_models.deepseek_r1, 61, LayerKind.MLA, 68.6),
    (known_models.deepseek_v2_lite, 27, LayerKind.MLA, 30.4),
    (known_models.gpt_oss_120b, 36, LayerKind.FULL, 36),
    (known_models.glm_4_5_air, 46, LayerKind.FULL, 184),
    (known_models.kimi_k2, 61, LayerKind.MLA, 68.6),
    (known_models.qwen35_27b, 64, LayerKind.FULL, 64),
    (known_models.qwen36_35b, 40, LayerKind.FULL, 20),
]


@pytest.mark.parametrize(("make", "layers", "kind", "kib"), MODELS)
def test_kv_per_token_is_the_published_one(
    tmp_path: Path, make: Callable[[], Model], layers: int, kind: LayerKind, kib: float
) -> None:
    """Layers without the draft head, and KiB of f16 cache a token, as printed by loaders."""
    model = facts(tmp_path, make())
    assert len(model.layers) == layers
    assert round(model.kv_bytes_per_position()[kind] / KIB, 1) == kib
    assert model.notes == ()


@pytest.mark.parametrize(
    ("make", "billions", "gib"),
    [
        (known_models.qwen3_30b, 30.53, None),
        (known_models.qwen3_235b, 235.09, 232.77),
        (known_models.deepseek_r1, 672.05, 1251.99),
        (known_models.deepseek_v2_lite, 15.71, None),
        (known_models.gpt_oss_120b, 116.83, 59.02),
        (known_models.kimi_k2, 1026.41, None),
        (known_models.qwen35_27b, 26.90, 26.62),
    ],
)
def test_parameters_and_size_are_the_published_ones(
    tmp_path: Path, make: Callable[[], Model], billions: float, gib: float | None
) -> None:
    """The sums over the tensor table are what loaders print for the same quantization."""
    model = facts(tmp_path, make())
    assert model.parameters is not None
    assert round(model.parameters / 1e9, 2) == billions
    if gib is not None:
        assert round(sum(model.bytes_by_role().values()) / 2**30, 2) == gib


def test_glm_is_as_published_without_the_projection_of_its_draft_head(tmp_path: Path) -> None:
    """109.19 B and 108.12 GiB are printed by loaders that skip ``eh_proj``."""
    model = facts(tmp_path, known_models.glm_4_5_air().without("blk.46.nextn.eh_proj.weight"))
    assert model.parameters is not None
    assert round(model.parameters / 1e9, 2) == 109.19
    assert round(sum(model.bytes_by_role().values()) / 2**30, 2) == 108.12


@pytest.mark.parametrize(
    ("make", "mib"),
    [
        (known_models.qwen3_235b, 6016),
        (known_models.deepseek_r1, 2196),
        (known_models.kimi_k2, 2196),
    ],
)
def test_the_cache_at_32768_positions_is_what_loaders_print(
    tmp_path: Path, make: Callable[[], Model], mib: int
) -> None:
    """KV self size at 32,768 positions in f16, in MiB."""
    assert facts(tmp_path, make()).kv_bytes(32_768) == mib * 2**20


def test_gpt_oss_reads_3_53_gb_a_token(tmp_path: Path) -> None:
    """1.90 of experts, 1.02 of attention and 0.62 of output, in GB."""
    model = facts(tmp_path, known_models.gpt_oss_120b())
    experts = model.bytes_by_quantization(Role.ROUTED_EXPERTS)["MXFP4"] * 4 / 128
    attention = model.bytes_by_quantization(Role.ATTENTION)["Q8_0"]
    output = model.bytes_by_role()[Role.OUTPUT]
    assert [round(part / 1e9, 2) for part in (experts, attention, output)] == [1.90, 1.02, 0.62]
    assert round((experts + attention + output) / 1e9, 2) == 3.53
    active = model.active_bytes_by_role()
    assert active[Role.ROUTED_EXPERTS] == pytest.approx(experts, rel=0.003)  # and biases
    assert sum(active.values()) == model.active_bytes_per_token()
    assert active[Role.EMBEDDING] == 2880 * 34 / 32


def test_gpt_oss_has_the_tensors_of_the_published_file(tmp_path: Path) -> None:
    """433 f32, 146 q8_0 and 108 mxfp4 tensors."""
    kinds = [kind for _, kind in known_models.gpt_oss_120b().tensors.values()]
    assert [kinds.count(kind) for kind in ("F32", "Q8_0", "MXFP4")] == [433, 146, 108]


@pytest.mark.parametrize("prefix", ["gpt-oss", "gptoss"])
def test_both_spellings_of_gpt_oss_are_one_model(tmp_path: Path, prefix: str) -> None:
    """llama.cpp's and Ollama's prefix give the same layers."""
    model = facts(tmp_path, known_models.gpt_oss_120b(prefix))
    assert model.arch == prefix
    assert len(layers_of(model, LayerKind.FULL)) == 18
    assert [layer.index for layer in layers_of(model, LayerKind.SLIDING)][:3] == [0, 2, 4]


def test_an_architecture_and_its_prefix_may_be_spelled_differently(tmp_path: Path) -> None:
    """A file that says gptoss and writes its keys as gpt-oss is understood."""
    model = known_models.gpt_oss_120b("gptoss")
    mixed = Model(model.arch, model.keys, model.tensors, prefix="gpt-oss")
    assert len(layers_of(facts(tmp_path, mixed), LayerKind.FULL)) == 18


def test_sliding_layers_keep_their_window_only(tmp_path: Path) -> None:
    """At 32,768 positions, 18 layers hold them all and 18 hold 128."""
    model = facts(tmp_path, known_models.gpt_oss_120b())
    assert model.kv_bytes(32_768) == 36 * KIB * 32_768 + 36 * KIB * 128
    assert model.kv_bytes(100) == 72 * KIB * 100


def test_linear_layers_keep_a_state_of_constant_size(tmp_path: Path) -> None:
    """Qwen3.5's 48 linear layers hold convolution and recurrence in f32, whatever the context."""
    model = facts(tmp_path, known_models.qwen35_27b())
    state = 4 * (3 * (6144 + 2 * 16 * 128) + 128 * 6144)
    linear = layers_of(model, LayerKind.LINEAR)
    assert len(linear) == 48
    assert {layer.state_bytes for layer in linear} == {state}
    assert model.kv_bytes(1000) - model.kv_bytes(0) == 64 * KIB * 1000
    assert model.kv_bytes(0) == 48 * state


def test_the_draft_head_is_no_layer_of_plain_decoding(tmp_path: Path) -> None:
    """block_count includes it; its block counts under its own role and is not read."""
    plain = facts(tmp_path, known_models.qwen35_27b())
    with_head = facts(tmp_path, known_models.qwen35_27b(draft_head=True))
    assert len(with_head.layers) == 64
    assert [layer.index for layer in with_head.nextn_layers] == [64]
    assert with_head.active_bytes_per_token() == plain.active_bytes_per_token()
    assert with_head.kv_bytes(4096) == plain.kv_bytes(4096)
    extra = sum(with_head.bytes_by_role().values()) - sum(plain.bytes_by_role().values())
    assert with_head.bytes_by_role()[Role.NEXTN] == extra > 0
    assert with_head.quantization(Role.NEXTN) == "Q8_0"
    assert with_head.nextn_layers[0].kind is LayerKind.FULL


def test_a_draft_head_without_its_key_is_known_by_its_tensors(tmp_path: Path) -> None:
    """Converters that leave nextn_predict_layers out do not get it charged to decoding."""
    model = facts(tmp_path, known_models.glm_4_5_air().with_keys(nextn_predict_layers=None))
    assert (len(model.layers), len(model.nextn_layers)) == (46, 1)
    assert any("nextn_predict_layers is missing" in note for note in model.notes)


def test_a_draft_head_beyond_block_count_is_added(tmp_path: Path) -> None:
    """A block_count that leaves the draft head out is corrected, with a note."""
    model = facts(tmp_path, known_models.glm_4_5_air().with_keys(block_count=46))
    assert (len(model.layers), len(model.nextn_layers)) == (46, 1)
    assert any("leaves out the draft head" in note for note in model.notes)


def test_bytes_by_layer_and_by_role_are_the_same_bytes(tmp_path: Path) -> None:
    """The sum over layers and tables is the sum over roles is the data of the file."""
    path = write(tmp_path / "model.gguf", known_models.glm_4_5_air())
    model = read_model_file(path)
    by_layer = sum(
        tensor.size_bytes
        for layer in (*model.layers, *model.nextn_layers)
        for tensor in layer.tensors
    )
    tables = sum(table.size_bytes for table in model.tables)
    assert by_layer + tables == sum(model.bytes_by_role().values())
    assert 0 < path.stat().st_size - (by_layer + tables) < 100_000
    assert model.file_bytes == path.stat().st_size
    assert Role.DENSE_FFN in {tensor.role for tensor in model.layers[0].tensors}
    assert Role.ROUTED_EXPERTS in {tensor.role for tensor in model.layers[1].tensors}


def test_the_library_reads_the_same_sizes(tmp_path: Path) -> None:
    """Byte counts are those of the library's own reader."""
    path = write(tmp_path / "model.gguf", known_models.deepseek_v2_lite())
    theirs = sum(int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors)
    assert sum(read_model_file(path).bytes_by_role().values()) == theirs


def test_tied_embeddings_are_read_whole(tmp_path: Path) -> None:
    """Without an output tensor the embedding is multiplied with, and its role stays."""
    model = facts(tmp_path, tiny().without("output.weight"))
    assert model.tied_embeddings
    assert model.active_bytes_by_role()[Role.EMBEDDING] == 64 * 96 * 34 / 32
    assert not facts(tmp_path, tiny()).tied_embeddings


def test_head_lengths_default_to_width_by_heads(tmp_path: Path) -> None:
    """Without key_length a head is as long as n_embd / heads."""
    layer = facts(tmp_path, tiny()).layers[0]
    assert (layer.key_length, layer.value_length, layer.kv_heads) == (16, 16, 2)


def test_missing_head_count_kv_means_no_grouping(tmp_path: Path) -> None:
    """Then every query head has its own keys and values."""
    model = facts(tmp_path, tiny(attention__head_count_kv=None))
    assert {layer.kv_heads for layer in model.layers} == {4}


def test_per_layer_arrays_are_followed(tmp_path: Path) -> None:
    """A 0 in head_count_kv is a layer without a cache; others count as they stand."""
    model = facts(tmp_path, tiny(attention__head_count_kv=[2, 0, 4, 0]))
    assert [layer.kind for layer in model.layers] == [
        LayerKind.FULL,
        LayerKind.NONE,
        LayerKind.FULL,
        LayerKind.NONE,
    ]
    assert model.kv_bytes_per_position() == {LayerKind.FULL: (2 + 4) * 32 * 2}


def test_layers_without_a_cache_but_with_a_state_are_linear(tmp_path: Path) -> None:
    """Where the model has a state, tensors show which layers are linear."""
    model = tiny(attention__head_count_kv=[2, 0, 0, 2], ssm__state_size=16, ssm__inner_size=32)
    tensors = {**model.tensors, "blk.1.ssm_out.weight": ((32, 64), "Q8_0")}
    read = facts(tmp_path, Model(model.arch, model.keys, tensors))
    assert [layer.kind for layer in read.layers] == [
        LayerKind.FULL,
        LayerKind.LINEAR,
        LayerKind.NONE,
        LayerKind.FULL,
    ]
    assert read.layers[1].state_bytes == 4 * 16 * 32
    assert read.layers[2].state_bytes == 0


def test_a_hybrid_layer_has_both_cache_and_state(tmp_path: Path) -> None:
    """Attention and state side by side in one layer (Falcon-H1) are both counted."""
    model = tiny(ssm__state_size=16, ssm__inner_size=32)
    tensors = dict(model.tensors)
    tensors.update({f"blk.{i}.ssm_out.weight": ((32, 64), "Q8_0") for i in range(4)})
    read = facts(tmp_path, Model(model.arch, model.keys, tensors))
    assert {layer.kind for layer in read.layers} == {LayerKind.FULL}
    assert read.kv_bytes(10) == 4 * (2 * 32 * 2 * 10 + 4 * 16 * 32)


@pytest.mark.parametrize(
    ("arch", "keys", "sliding"),
    [
        ("gemma3", {"attention__sliding_window": 512}, [0, 1, 2, 3]),
        ("gemma2", {"attention__sliding_window": 512}, [0, 2]),
        ("smallthinker", {"attention__sliding_window": 512}, [1, 2, 3]),
        (
            "any",
            {
                "attention__sliding_window": 512,
                "attention__sliding_window_pattern": [False, True, True, False],
            },
            [1, 2],
        ),
        (
            "any",
            {"attention__sliding_window": 512, "attention__sliding_window_pattern": 2},
            [0, 2],
        ),
        ("llama4", {}, [0, 1, 2]),
        ("llama", {"attention__sliding_window": 4096}, []),
    ],
)
def test_which_layers_slide(
    tmp_path: Path, arch: str, keys: dict[str, Any], sliding: list[int]
) -> None:
    """By the pattern in the file, a period or an array, else by what the architecture does."""
    model = tiny(**keys)
    read = facts(tmp_path, Model(arch, model.keys, model.tensors))
    assert [layer.index for layer in layers_of(read, LayerKind.SLIDING)] == sliding
    assert (read.sliding_window is not None) == bool(sliding)
    assert bool(read.notes) == (arch == "llama")


def test_sliding_layers_may_have_heads_of_their_own_length(tmp_path: Path) -> None:
    """key_length_swa and value_length_swa hold for sliding layers alone."""
    model = tiny(
        attention__sliding_window=8,
        attention__sliding_window_pattern=2,
        attention__key_length_swa=4,
        attention__value_length_swa=6,
    )
    first, second = facts(tmp_path, model).layers[:2]
    assert (first.key_length, first.value_length) == (4, 6)
    assert (second.key_length, second.value_length) == (16, 16)


def test_layers_that_share_a_cache_read_it_and_keep_none(tmp_path: Path) -> None:
    """The last shared_kv_layers add to what is read, not to what is stored."""
    model = facts(tmp_path, tiny(attention__shared_kv_layers=1))
    assert [layer.owns_kv for layer in model.layers] == [True, True, True, False]
    assert model.kv_bytes(8) == 3 * 128 * 8
    assert model.kv_read_bytes(8) == 4 * 128 * 8


def test_quantized_caches_are_smaller(tmp_path: Path) -> None:
    """q8_0 takes 34 bytes for 32 elements; keys and values may differ."""
    model = facts(tmp_path, tiny())
    assert model.kv_bytes(32, "q8_0") == model.kv_bytes(32) * 17 / 32
    both = (model.kv_bytes(32, "q8_0") + model.kv_bytes(32, "q4_0")) / 2
    assert model.kv_bytes(32, "Q8_0/q4_0") == both


def test_an_old_mla_file_says_so(tmp_path: Path) -> None:
    """Files from before MLA was kept apart are counted as MLA, with a warning."""
    model = known_models.deepseek_v2_lite().with_keys(
        attention__key_length=192,
        attention__value_length=128,
        attention__key_length_mla=None,
        attention__value_length_mla=None,
        attention__head_count_kv=16,
    )
    read = facts(tmp_path, model)
    assert round(read.kv_bytes(1) / KIB, 1) == 30.4
    assert any("caches 16 heads of 192 + 128" in note for note in read.notes)


def test_per_layer_tables_and_vision_are_not_read_in_decoding(tmp_path: Path) -> None:
    """Lookup tables and the encoders of other inputs are sidecars."""
    model = tiny()
    tensors = dict(model.tensors)
    tensors["per_layer_token_embd.weight"] = ((64, 96), "Q8_0")
    tensors["v.blk.0.attn_q.weight"] = ((64, 64), "Q8_0")
    read = facts(tmp_path, Model(model.arch, model.keys, tensors))
    assert read.bytes_by_role()[Role.SIDECAR] == (64 * 96 + 64 * 64) * 34 / 32
    assert Role.SIDECAR not in read.active_bytes_by_role()


def test_a_shared_expert_is_known_without_its_key(tmp_path: Path) -> None:
    """Qwen3.6 names only the width of its shared expert."""
    model = facts(tmp_path, known_models.qwen36_35b())
    assert model.experts_shared == 1
    assert model.mixture


def test_hidden_state_of_5120_is_10_kib(tmp_path: Path) -> None:
    """One hop carries n_embd × 2 bytes."""
    assert facts(tmp_path, known_models.qwen35_27b()).hidden_bytes == 10 * KIB


@pytest.mark.parametrize("make", [make for make, *_ in MODELS])
def test_facts_survive_their_own_file(tmp_path: Path, make: Callable[[], Model]) -> None:
    """What is read from GGUF can be written as a model-facts file and is equal again."""
    model = facts(tmp_path, make())
    path = tmp_path / "facts.toml"
    path.write_text(dump_model_facts(model), encoding="utf-8")
    assert load_model_facts(path) == model
    assert path.stat().st_size < 20_000


def test_a_split_model_is_whole_from_any_shard(tmp_path: Path) -> None:
    """Given the first or the last shard, all that exist are read."""
    model = known_models.glm_4_5_air()
    count = len(model.tensors)
    shards = write_split(tmp_path, "glm", model, [100, count - 200, 100])
    whole = facts(tmp_path, model)
    for path in (shards[0], shards[2]):
        read = read_model_file(path)
        assert read.completeness is Completeness.READ
        assert read.missing_shards == ()
        assert read.bytes_by_role() == whole.bytes_by_role()
        assert read.parameters == whole.parameters


def test_missing_shards_are_named_and_derived(tmp_path: Path) -> None:
    """From one shard of three, the bytes by role come within two percent, marked as derived."""
    model = known_models.glm_4_5_air()
    count = len(model.tensors)
    whole = facts(tmp_path, model)
    shards = write_split(tmp_path, "glm", model, [100, count - 200, 100])
    shards[1].unlink()
    shards[2].unlink()
    read = read_model_file(shards[0])
    assert read.completeness is Completeness.DERIVED
    assert read.missing_shards == (shards[1].name, shards[2].name)
    assert read.parameters is None
    assert any("2 shards are missing" in note for note in read.notes)
    for role, size in whole.active_bytes_by_role().items():
        assert read.active_bytes_by_role()[role] == pytest.approx(size, rel=0.02)


@pytest.mark.parametrize(
    "make", [known_models.glm_4_5_air, known_models.deepseek_r1, known_models.qwen35_27b]
)
def test_a_shard_of_metadata_alone_is_derived_from_shapes(
    tmp_path: Path, make: Callable[[], Model]
) -> None:
    """With no tensor at all, shapes and file type still give the weights within five percent."""
    model = make()
    kind = model.tensors["output.weight"][1]
    number = int(gguf.LlamaFileType[f"MOSTLY_{kind}"])
    typed = Model(model.arch, model.keys, model.tensors, {"general.file_type": number})
    whole = facts(tmp_path, typed)
    shards = write_split(tmp_path, "m", typed, [0, len(model.tensors)])
    shards[1].unlink()
    read = read_model_file(shards[0])
    assert read.completeness is Completeness.DERIVED
    assert read.active_bytes_per_token() == pytest.approx(whole.active_bytes_per_token(), rel=0.05)


def test_what_cannot_be_derived_is_said(tmp_path: Path) -> None:
    """Without a file type nothing is made up for tensors that no layer shows."""
    model = known_models.glm_4_5_air()
    shards = write_split(tmp_path, "m", model, [3, len(model.tensors) - 3])
    shards[1].unlink()
    read = read_model_file(shards[0])
    assert read.completeness is Completeness.PARTIAL
    assert Role.ROUTED_EXPERTS not in read.bytes_by_role()
    assert any("not even derived" in note for note in read.notes)
    assert read.kv_bytes(1) == 184 * KIB


def test_a_tied_model_gets_no_output_that_it_never_has(tmp_path: Path) -> None:
    """Gemma multiplies with its embedding; other models' output may be in a missing shard."""
    model = tiny().without("output.weight")
    for arch, tied in (("gemma3", True), ("llama", False)):
        typed = Model(arch, model.keys, model.tensors, {"general.file_type": 7})
        shards = write_split(tmp_path, arch, typed, [10, len(model.tensors) - 10])
        shards[1].unlink()
        assert read_model_file(shards[0]).tied_embeddings is tied


def test_a_missing_first_shard_is_an_error(tmp_path: Path) -> None:
    """Only it holds the metadata, and the message says so."""
    shards = write_split(tmp_path, "m", tiny(), [10, len(tiny().tensors) - 10])
    shards[0].unlink()
    with pytest.raises(GgufError, match="first shard holds the metadata"):
        read_model_file(shards[1])


def test_a_renamed_shard_that_is_not_the_first_is_an_error(tmp_path: Path) -> None:
    """By its own keys a shard knows which it is."""
    shards = write_split(tmp_path, "m", tiny(), [10, len(tiny().tensors) - 10])
    renamed = shards[1].rename(tmp_path / "renamed.gguf")
    with pytest.raises(GgufError, match="one of 2 shards and not the first"):
        read_model_file(renamed)
    first = read_model_file(shards[0].rename(tmp_path / "first.gguf"))
    assert first.completeness is not Completeness.READ
    assert first.missing_shards == ("the 1 other shards of first.gguf",)


def test_shards_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    """A tensor in two shards is one too many, and so is a shard of another model."""
    shards = write_split(tmp_path, "m", tiny(), [10, len(tiny().tensors) - 10])
    shards[1].write_bytes(shards[0].read_bytes())
    with pytest.raises(GgufError, match="in another shard as well"):
        read_model_file(shards[0])
    write_split(tmp_path, "m", tiny(), [1, 1, len(tiny().tensors) - 2])[1].rename(shards[1])
    with pytest.raises(GgufError, match="one of 3 shards"):
        read_model_file(shards[0])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"block_count": None}, "llama.block_count is missing"),
        ({"block_count": 0}, "block_count is 0"),
        ({"block_count": 2**31}, "layers cannot be"),
        ({"block_count": 3}, "block 3 is not among the 3 layers"),
        ({"embedding_length": 0}, "embedding_length is 0"),
        ({"nextn_predict_layers": 4}, "cannot be the draft head"),
        ({"attention__head_count_kv": [2, 2, 2, 2, 2]}, "5 values for 4 layers"),
        ({"attention__head_count_kv": "two"}, "not a count"),
        ({"attention__head_count": 2.5}, "not a count"),
        ({"expert_count": 4, "expert_used_count": 8}, "8 experts of 4"),
        ({"expert_count": 4}, "0 experts of 4"),
    ],
)
def test_metadata_that_makes_no_model_is_refused(
    tmp_path: Path, keys: dict[str, Any], said: str
) -> None:
    """Each impossible key is named with what it says."""
    with pytest.raises(GgufError, match=said):
        facts(tmp_path, tiny(**keys))


def test_a_file_without_an_architecture_is_no_model(tmp_path: Path) -> None:
    """Such files exist (adapters' calibration data), and they are recognized."""
    path = write(tmp_path / "m.gguf", tiny())
    raw = path.read_bytes().replace(b"general.architecture", b"general.architectura")
    path.write_bytes(raw)
    with pytest.raises(GgufError, match="names no architecture"):
        read_model_file(path)


def vocabulary(path: Path, tokens: list[str]) -> Path:
    """A file with a vocabulary and nothing else of interest."""
    return write(path, Model("llama", {}, {}, {"tokenizer.ggml.tokens": tokens}))


@pytest.mark.parametrize(
    ("second", "match"),
    [
        (["a", "b", "c"], TokenLists.EQUAL),
        (["a", "b", "c", "pad"], TokenLists.PADDED),
        (["a", "b"], TokenLists.PADDED),
        (["a", "x", "c"], TokenLists.DIFFERENT),
        (["a", "b", "x", "pad"], TokenLists.DIFFERENT),
        (["c", "a", "b", "pad"], TokenLists.DIFFERENT),
    ],
)
def test_vocabularies_are_compared_id_by_id(
    tmp_path: Path, second: list[str], match: TokenLists
) -> None:
    """A drafter fits when every id means the same token, whatever the family is called."""
    one = vocabulary(tmp_path / "a.gguf", ["a", "b", "c"])
    other = vocabulary(tmp_path / "b.gguf", second)
    assert compare_tokens(one, other) is match
    assert compare_tokens(other, one) is match


def test_equal_vocabularies_have_equal_hashes(tmp_path: Path) -> None:
    """The hash in the facts says the same as the comparison; joining tokens does not fool it."""
    hashes = []
    for tokens in (["ab", "c"], ["a", "bc"], ["ab", "c"]):
        model = tiny(vocab_size=None)
        named = Model(model.arch, model.keys, model.tensors, {"tokenizer.ggml.tokens": tokens})
        read = facts(tmp_path, named)
        assert read.vocab == 2
        hashes.append(read.tokens_sha256)
    assert hashes[0] == hashes[2] != hashes[1]


def test_a_file_without_a_vocabulary_cannot_be_compared(tmp_path: Path) -> None:
    """The message names the file and the key."""
    one = vocabulary(tmp_path / "a.gguf", ["a"])
    with pytest.raises(GgufError, match="has no vocabulary"):
        compare_tokens(one, write(tmp_path / "b.gguf", tiny()))


def test_types_of_a_fork_are_sized_by_their_place(tmp_path: Path) -> None:
    """A type that the library does not know is as large as the gap to the next tensor."""
    path = write(tmp_path / "m.gguf", tiny())
    whole = read_model_file(path)
    raw = bytearray(path.read_bytes())
    at = raw.index(b"blk.0.ffn_up.weight") + len(b"blk.0.ffn_up.weight") + 4 + 2 * 8
    raw[at : at + 4] = (138).to_bytes(4, "little")
    path.write_bytes(raw)
    read = read_model_file(path)
    assert read.bytes_by_role() == whole.bytes_by_role()
    assert read.bytes_by_quantization(Role.DENSE_FFN)["IQ3_K"] == math.prod((64, 128)) * 18 / 32
