"""The nine public models, as llama.cpp's converter writes them: keys, tensors, types.

Shapes are those of the published configurations; types follow the named quantization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.gguf.files import Model, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = tuple[str, Shape, str]


def _norms(block: int, width: int, *names: str) -> Iterator[Row]:
    for name in names:
        yield f"blk.{block}.{name}.weight", (width,), "F32"


def _experts(block: int, width: int, ff: int, count: int, kind: str) -> Iterator[Row]:
    yield f"blk.{block}.ffn_gate_inp.weight", (width, count), "F32"
    yield f"blk.{block}.ffn_gate_exps.weight", (width, ff, count), kind
    yield f"blk.{block}.ffn_up_exps.weight", (width, ff, count), kind
    yield f"blk.{block}.ffn_down_exps.weight", (ff, width, count), kind


def _dense(block: int, width: int, ff: int, kind: str, suffix: str = "") -> Iterator[Row]:
    yield f"blk.{block}.ffn_gate{suffix}.weight", (width, ff), kind
    yield f"blk.{block}.ffn_up{suffix}.weight", (width, ff), kind
    yield f"blk.{block}.ffn_down{suffix}.weight", (ff, width), kind


def _grouped(
    block: int, width: int, heads: tuple[int, int, int], kind: str, *, bias: bool = False
) -> Iterator[Row]:
    """Attention with grouped heads: (query heads, key/value heads, head length)."""
    query, key_value = heads[0] * heads[2], heads[1] * heads[2]
    yield f"blk.{block}.attn_q.weight", (width, query), kind
    yield f"blk.{block}.attn_k.weight", (width, key_value), kind
    yield f"blk.{block}.attn_v.weight", (width, key_value), kind
    yield f"blk.{block}.attn_output.weight", (query, width), kind
    if bias:
        yield f"blk.{block}.attn_q.bias", (query,), "F32"
        yield f"blk.{block}.attn_k.bias", (key_value,), "F32"
        yield f"blk.{block}.attn_v.bias", (key_value,), "F32"


def _latent(
    block: int, width: int, heads: int, query_rank: int | None, kind: str, *, merged: bool
) -> Iterator[Row]:
    """MLA with lora 512, rope 64, heads of 128 + 64 and 128; merged also has the old kv_b."""
    blk = f"blk.{block}."
    if query_rank is None:
        yield blk + "attn_q.weight", (width, heads * 192), kind
    else:
        yield blk + "attn_q_a.weight", (width, query_rank), kind
        yield blk + "attn_q_a_norm.weight", (query_rank,), "F32"
        yield blk + "attn_q_b.weight", (query_rank, heads * 192), kind
    yield blk + "attn_kv_a_mqa.weight", (width, 576), kind
    yield blk + "attn_kv_a_norm.weight", (512,), "F32"
    if merged:
        yield blk + "attn_kv_b.weight", (512, heads * 256), kind
    yield blk + "attn_k_b.weight", (128, 512 * heads), kind
    yield blk + "attn_v_b.weight", (512, 128 * heads), kind
    yield blk + "attn_output.weight", (heads * 128, width), kind


def _ends(width: int, vocab: int, kind: str, output: str | None = None) -> Iterator[Row]:
    yield "token_embd.weight", (width, vocab), kind
    yield "output_norm.weight", (width,), "F32"
    yield "output.weight", (width, vocab), output or kind


def _model(arch: str, keys: dict[str, object], rows: Iterator[Row], **plain: object) -> Model:
    tensors = {name: (shape, kind) for name, shape, kind in rows}
    return Model(arch=arch, keys=keys, tensors=tensors, plain_keys=dict(plain))


def qwen3_moe(layers: int, width: int, heads: int, ff: int, kind: str) -> Model:
    """Qwen3-30B-A3B and Qwen3-235B-A22B."""

    def rows() -> Iterator[Row]:
        yield from _ends(width, 151_936, kind)
        for i in range(layers):
            yield from _norms(i, width, "attn_norm", "ffn_norm")
            yield from _norms(i, 128, "attn_q_norm", "attn_k_norm")
            yield from _grouped(i, width, (heads, 4, 128), kind)
            yield from _experts(i, width, ff, 128, kind)

    keys: dict[str, object] = {
        "block_count": layers,
        "embedding_length": width,
        "feed_forward_length": 6144,
        "context_length": 40_960,
        "attention.head_count": heads,
        "attention.head_count_kv": 4,
        "attention.key_length": 128,
        "attention.value_length": 128,
        "expert_count": 128,
        "expert_used_count": 8,
        "expert_feed_forward_length": ff,
        "vocab_size": 151_936,
    }
    return _model("qwen3moe", keys, rows())


def qwen3_30b() -> Model:
    """Qwen3-30B-A3B in Q5_K throughout (the real mixture has some Q6_K)."""
    return qwen3_moe(48, 2048, 32, 768, "Q5_K")


def qwen3_235b() -> Model:
    """Qwen3-235B-A22B in Q8_0."""
    return qwen3_moe(94, 4096, 64, 1536, "Q8_0")


def deepseek(
    *,
    layers: int,
    dense: int,
    width: int,
    heads: int,
    query_rank: int | None,
    ff: int,
    experts: tuple[int, int, int, int],
    vocab: int,
    kind: str,
    merged: bool = False,
) -> Model:
    """The deepseek2 family; experts are (total, used, shared, width of one)."""
    total, used, shared, expert_ff = experts

    def rows() -> Iterator[Row]:
        yield from _ends(width, vocab, kind)
        for i in range(layers):
            yield from _norms(i, width, "attn_norm", "ffn_norm")
            yield from _latent(i, width, heads, query_rank, kind, merged=merged)
            if i < dense:
                yield from _dense(i, width, ff, kind)
                continue
            yield from _experts(i, width, expert_ff, total, kind)
            yield from _dense(i, width, expert_ff * shared, kind, "_shexp")
            if query_rank is not None:
                yield f"blk.{i}.exp_probs_b.bias", (total,), "F32"

    keys: dict[str, object] = {
        "block_count": layers,
        "embedding_length": width,
        "feed_forward_length": ff,
        "leading_dense_block_count": dense,
        "attention.head_count": heads,
        "attention.head_count_kv": 1,
        "attention.key_length": 576,
        "attention.value_length": 512,
        "attention.key_length_mla": 192,
        "attention.value_length_mla": 128,
        "attention.kv_lora_rank": 512,
        "rope.dimension_count": 64,
        "expert_count": total,
        "expert_used_count": used,
        "expert_shared_count": shared,
        "expert_feed_forward_length": expert_ff,
        "vocab_size": vocab,
    }
    if query_rank is not None:
        keys["attention.q_lora_rank"] = query_rank
    return _model("deepseek2", keys, rows())


def deepseek_r1() -> Model:
    """DeepSeek-R1 in BF16, with the merged and the split projections as one fork writes it."""
    return deepseek(
        layers=61,
        dense=3,
        width=7168,
        heads=128,
        query_rank=1536,
        ff=18_432,
        experts=(256, 8, 1, 2048),
        vocab=129_280,
        kind="BF16",
        merged=True,
    )


def deepseek_v2_lite() -> Model:
    """DeepSeek-V2-Lite in Q4_0."""
    return deepseek(
        layers=27,
        dense=1,
        width=2048,
        heads=16,
        query_rank=None,
        ff=10_944,
        experts=(64, 6, 2, 1408),
        vocab=102_400,
        kind="Q4_0",
    )


def kimi_k2() -> Model:
    """Kimi-K2 in Q4_0."""
    return deepseek(
        layers=61,
        dense=1,
        width=7168,
        heads=64,
        query_rank=1536,
        ff=18_432,
        experts=(384, 8, 1, 2048),
        vocab=163_840,
        kind="Q4_0",
    )


def gpt_oss_120b(prefix: str = "gpt-oss") -> Model:
    """gpt-oss-120b in MXFP4, attention and tables in Q8_0."""
    layers, width, vocab = 36, 2880, 201_088

    def rows() -> Iterator[Row]:
        yield from _ends(width, vocab, "Q8_0")
        for i in range(layers):
            blk = f"blk.{i}."
            yield from _norms(i, width, "attn_norm", "post_attention_norm")
            yield from _grouped(i, width, (64, 8, 64), "Q8_0", bias=True)
            yield blk + "attn_output.bias", (width,), "F32"
            yield blk + "attn_sinks.weight", (64,), "F32"
            yield from _experts(i, width, width, 128, "MXFP4")
            yield blk + "ffn_gate_inp.bias", (128,), "F32"
            for part in ("gate", "up", "down"):
                yield f"{blk}ffn_{part}_exps.bias", (width, 128), "F32"

    keys: dict[str, object] = {
        "block_count": layers,
        "embedding_length": width,
        "feed_forward_length": width,
        "context_length": 131_072,
        "attention.head_count": 64,
        "attention.head_count_kv": 8,
        "attention.key_length": 64,
        "attention.value_length": 64,
        "attention.sliding_window": 128,
        "expert_count": 128,
        "expert_used_count": 4,
        "expert_feed_forward_length": width,
        "vocab_size": vocab,
    }
    return _model(prefix, keys, rows())


def glm_4_5_air() -> Model:
    """GLM-4.5-Air in Q8_0: 46 layers and a draft head."""
    layers, width, vocab = 47, 4096, 151_552

    def rows() -> Iterator[Row]:
        yield from _ends(width, vocab, "Q8_0")
        for i in range(layers):
            yield from _norms(i, width, "attn_norm", "post_attention_norm")
            yield from _grouped(i, width, (96, 8, 128), "Q8_0", bias=True)
            if i == 0:
                yield from _dense(i, width, 10_944, "Q8_0")
                continue
            yield from _experts(i, width, 1408, 128, "Q8_0")
            yield from _dense(i, width, 1408, "Q8_0", "_shexp")
            yield f"blk.{i}.exp_probs_b.bias", (128,), "F32"
        head = f"blk.{layers - 1}.nextn."
        yield head + "eh_proj.weight", (2 * width, width), "Q8_0"
        yield head + "enorm.weight", (width,), "F32"
        yield head + "hnorm.weight", (width,), "F32"
        yield head + "shared_head_norm.weight", (width,), "F32"

    keys: dict[str, object] = {
        "block_count": layers,
        "embedding_length": width,
        "feed_forward_length": 10_944,
        "leading_dense_block_count": 1,
        "nextn_predict_layers": 1,
        "attention.head_count": 96,
        "attention.head_count_kv": 8,
        "attention.key_length": 128,
        "attention.value_length": 128,
        "expert_count": 128,
        "expert_used_count": 8,
        "expert_shared_count": 1,
        "expert_feed_forward_length": 1408,
        "vocab_size": vocab,
    }
    return _model("glm4moe", keys, rows())


def _delta_net(block: int, width: int, value_heads: int, kind: str) -> Iterator[Row]:
    """A linear layer of Qwen3.5: 16 key heads and so many value heads of 128."""
    blk, inner = f"blk.{block}.", value_heads * 128
    yield blk + "attn_qkv.weight", (width, inner + 2 * 16 * 128), kind
    yield blk + "attn_gate.weight", (width, inner), kind
    yield blk + "ssm_alpha.weight", (width, value_heads), kind
    yield blk + "ssm_beta.weight", (width, value_heads), kind
    yield blk + "ssm_out.weight", (inner, width), kind
    yield blk + "ssm_conv1d.weight", (4, inner + 2 * 16 * 128), "F32"
    yield blk + "ssm_a", (value_heads,), "F32"
    yield blk + "ssm_dt.bias", (value_heads,), "F32"
    yield blk + "ssm_norm.weight", (128,), "F32"


def _gated(block: int, width: int, heads: tuple[int, int], kind: str) -> Iterator[Row]:
    """A full-attention layer of Qwen3.5: heads of 256, the queries with their gates."""
    blk = f"blk.{block}."
    yield blk + "attn_q.weight", (width, heads[0] * 512), kind
    yield blk + "attn_k.weight", (width, heads[1] * 256), kind
    yield blk + "attn_v.weight", (width, heads[1] * 256), kind
    yield blk + "attn_output.weight", (heads[0] * 256, width), kind
    yield from _norms(block, 256, "attn_q_norm", "attn_k_norm")


def _qwen35_keys(
    layers: int, width: int, heads: int, kv_heads: int, inner: int
) -> dict[str, object]:
    return {
        "block_count": layers,
        "embedding_length": width,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": 256,
        "attention.value_length": 256,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": inner,
        "ssm.state_size": 128,
        "ssm.group_count": 16,
        "ssm.time_step_rank": inner // 128,
        "rope.dimension_count": 64,
        "vocab_size": 248_320,
    }


def qwen35_27b(*, draft_head: bool = False) -> Model:
    """Qwen3.5-27B in Q8_0: every fourth layer attends; with the draft head as in MTP files."""
    width, ff = 5120, 17_408
    layers = 65 if draft_head else 64

    def rows() -> Iterator[Row]:
        yield from _ends(width, 248_320, "Q8_0")
        for i in range(layers):
            yield from _norms(i, width, "attn_norm", "post_attention_norm")
            if i % 4 == 3 or i == 64:
                yield from _gated(i, width, (24, 4), "Q8_0")
            else:
                yield from _delta_net(i, width, 48, "Q8_0")
            yield from _dense(i, width, ff, "Q8_0")
        if draft_head:
            yield "blk.64.nextn.eh_proj.weight", (2 * width, width), "Q8_0"
            yield from _norms(64, width, "nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm")

    keys = _qwen35_keys(layers, width, 24, 4, 6144)
    keys.update({"feed_forward_length": ff, "full_attention_interval": 4})
    if draft_head:
        keys["nextn_predict_layers"] = 1
    return _model("qwen35", keys, rows())


def qwen36_35b() -> Model:
    """Qwen3.6-35B-A3B in Q4_0; the interval is left to the default."""
    width = 2048

    def rows() -> Iterator[Row]:
        yield from _ends(width, 248_320, "Q4_0")
        for i in range(40):
            yield from _norms(i, width, "attn_norm", "post_attention_norm")
            if i % 4 == 3:
                yield from _gated(i, width, (16, 2), "Q4_0")
            else:
                yield from _delta_net(i, width, 32, "Q4_0")
            yield from _experts(i, width, 512, 256, "Q4_0")
            yield from _dense(i, width, 512, "Q4_0", "_shexp")
            yield f"blk.{i}.ffn_gate_inp_shexp.weight", (width,), "F32"

    keys = _qwen35_keys(40, width, 16, 2, 4096)
    keys.update(
        {
            "expert_count": 256,
            "expert_used_count": 8,
            "expert_feed_forward_length": 512,
            "expert_shared_feed_forward_length": 512,
        }
    )
    return _model("qwen35moe", keys, rows())
