"""The header of a GGUF file: bounded memory, and no file that can do harm."""

from __future__ import annotations

import os
import resource
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hetero_test.errors import ExitCode, UsageError
from hetero_test.gguf.header import (
    GgufError,
    LongArray,
    TextArray,
    read_header,
    read_tokens,
)
from hetero_test.triage.model.from_gguf import read_model_file
from tests.gguf.files import Model, write

if TYPE_CHECKING:
    from pathlib import Path

    from hetero_test.triage.model.facts import ModelFacts

KEYS = {
    "block_count": 2,
    "embedding_length": 32,
    "feed_forward_length": 64,
    "attention.head_count": 2,
    "attention.head_count_kv": [1, 1],
    "rope.freq_base": 1e6,
}
PLAIN = {"tokenizer.ggml.tokens": ["<s>", "a", "bé"], "general.name": "tiny"}
TENSORS: dict[str, tuple[tuple[int, ...], str]] = {
    "token_embd.weight": ((32, 3), "Q8_0"),
    "blk.0.attn_q.weight": ((32, 32), "Q4_0"),
    "blk.1.ffn_up.weight": ((32, 64), "F16"),
}
TINY = Model("llama", KEYS, TENSORS, PLAIN)


def u32(value: int) -> bytes:
    """A little-endian word."""
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    """A little-endian double word."""
    return struct.pack("<Q", value)


def text(value: bytes) -> bytes:
    """A string with its length."""
    return u64(len(value)) + value


def preamble(tensors: int = 0, keys: int = 0, version: int = 3) -> bytes:
    """The first 24 bytes."""
    return b"GGUF" + u32(version) + u64(tensors) + u64(keys)


def test_keys_values_and_tensors_are_read(tmp_path: Path) -> None:
    """What the library writes is read back: scalars, texts, arrays, the tensor table."""
    header = read_header(write(tmp_path / "m.gguf", TINY))
    assert header.version == 3
    assert header.fields["llama.block_count"] == 2
    assert header.fields["llama.attention.head_count_kv"] == (1, 1)
    assert header.fields["llama.rope.freq_base"] == 1e6
    assert header.fields["general.name"] == "tiny"
    tokens = header.fields["tokenizer.ggml.tokens"]
    assert isinstance(tokens, TextArray)
    assert tokens.count == 3
    assert {info.name: info.shape for info in header.tensors} == {
        name: shape for name, (shape, _) in TENSORS.items()
    }


def test_the_library_finds_the_data_at_the_same_place(tmp_path: Path) -> None:
    """Offsets and the beginning of the data section are the library's."""
    path = write(tmp_path / "m.gguf", TINY)
    theirs = gguf.GGUFReader(path)
    header = read_header(path)
    assert header.data_offset == theirs.data_offset
    assert [header.data_offset + info.offset for info in header.tensors] == [
        tensor.data_offset for tensor in theirs.tensors
    ]


def test_tokens_come_one_by_one(tmp_path: Path) -> None:
    """The vocabulary is read as bytes, in the order of the ids."""
    path = write(tmp_path / "m.gguf", TINY)
    assert list(read_tokens(path)) == [b"<s>", b"a", "bé".encode()]


def test_files_of_the_other_byte_order_are_refused(tmp_path: Path) -> None:
    """A big-endian file is refused, and the message says why."""
    path = tmp_path / "big.gguf"
    writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG)
    writer.add_uint32("llama.block_count", 7)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(GgufError, match=r"big\.gguf is a big-endian GGUF file"):
        read_header(path)


def test_long_arrays_of_numbers_are_counted_and_passed_over(tmp_path: Path) -> None:
    """Scores and types of a vocabulary are not kept."""
    scores = {"tokenizer.ggml.scores": [0.5] * 20_000, "after": 1}
    header = read_header(write(tmp_path / "m.gguf", Model("llama", {}, {}, scores)))
    assert header.fields["tokenizer.ggml.scores"] == LongArray(20_000)
    assert header.fields["after"] == 1


@pytest.mark.process
def test_a_vocabulary_of_150000_is_read_within_300_mb(tmp_path: Path) -> None:
    """Peak memory of a process that reads all facts, with merges, scores and types."""
    count = 150_000
    plain = {
        "tokenizer.ggml.tokens": [f"token {i}" for i in range(count)],
        "tokenizer.ggml.merges": [f"to {i}" for i in range(count)],
        "tokenizer.ggml.token_type": [1] * count,
        "tokenizer.ggml.scores": [0.0] * count,
    }
    path = write(tmp_path / "m.gguf", Model("llama", KEYS, TENSORS, plain))
    program = (
        "import re, sys; from pathlib import Path\n"
        "from hetero_test.triage.model.from_gguf import read_model_file\n"
        "assert read_model_file(Path(sys.argv[1])).vocab == 150_000\n"
        # Not ru_maxrss: a process inherits that of the one it was forked from.
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text()).group(1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], check=True, capture_output=True, timeout=120
    )
    assert int(done.stdout) * 1024 < 300 * 10**6


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"GG", "no GGUF"),
        (b"GGML" + bytes(60), "no GGUF"),
        (b"<!doctype html>", "no GGUF"),
        (b"GGUF", "ends within"),
        (preamble(version=1), "version 1"),
        (preamble(version=9), "version 9"),
        (preamble(tensors=2**63), "cannot be"),
        (preamble(keys=2**40), "cannot be"),
        (preamble(keys=1), "ends within"),
        (preamble(keys=1) + text(b"") + u32(4) + u32(1), "without a name"),
        (preamble(keys=1) + u64(2**63), "text of 9223372036854775808 bytes"),
        (preamble(keys=1) + text(b"k") + u32(8) + u64(2**62), "text of"),
        (preamble(keys=1) + text(b"k") + u32(77), "unknown type 77"),
        (preamble(keys=1) + text(b"\xff\xfe") + u32(4) + u32(1), "not UTF-8"),
        (preamble(keys=1) + text(b"k") + u32(8) + text(b"\xc3"), "not UTF-8"),
        (preamble(keys=2) + 2 * (text(b"k") + u32(4) + u32(1)), "second time"),
        # Arrays: of more than there is, of arrays (which could nest without end), of nothing known.
        (preamble(keys=1) + text(b"k") + u32(9) + u32(4) + u64(2**61), "ends within"),
        (preamble(keys=1) + text(b"k") + u32(9) + u32(8) + u64(2**61), "array of"),
        (preamble(keys=1) + text(b"k") + u32(9) + u32(9) + u64(1), "unknown type 9"),
        (preamble(keys=1) + text(b"k") + u32(9) + u32(99) + u64(0), "unknown type 99"),
        (preamble(keys=1) + text(b"general.alignment") + u32(4) + u32(0), "alignment is 0"),
        (preamble(keys=1) + text(b"general.alignment") + u32(4) + u32(33), "alignment is 33"),
        (preamble(keys=1) + text(b"general.alignment") + u32(8) + text(b"x"), "alignment is 'x'"),
        (preamble(tensors=1) + text(b"t") + u32(5), "5 dimensions"),
        (preamble(tensors=1) + text(b"t") + u32(0), "0 dimensions"),
        (preamble(tensors=1) + text(b"") + u32(1), "a tensor ''"),
        (preamble(tensors=1) + text(b"t") + u32(1) + u64(0) + u32(0) + u64(0), "the shape [0]"),
        (
            preamble(tensors=1) + text(b"t") + u32(2) + 2 * u64(2**60) + u32(0) + u64(0),
            "the shape",
        ),
        (
            preamble(tensors=2) + 2 * (text(b"t") + u32(1) + u64(1) + u32(0) + u64(0)),
            "stands here again",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_file_is_told_what_is_wrong(tmp_path: Path, content: bytes, said: str) -> None:
    """Each claim that cannot be is refused before it is believed."""
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    with pytest.raises(GgufError) as caught:
        read_header(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("offset", "kind", "said"),
    [
        (2**62, 0, "cut short"),
        (0, 0, "cut short"),
        (2**62, 999, "cut short"),
        (0, 999, "cut short|overlaps"),
    ],
)
def test_tensors_outside_of_the_file_are_refused(
    tmp_path: Path, offset: int, kind: int, said: str
) -> None:
    """Nothing may lie beyond the end, whether the type is known or not."""
    path = tmp_path / "m.gguf"
    key = text(b"general.architecture") + u32(8) + text(b"llama")
    row = text(b"t") + u32(1) + u64(64) + u32(kind) + u64(offset)
    path.write_bytes(preamble(tensors=1, keys=1) + key + row)
    with pytest.raises(GgufError, match=said):
        read_model_file(path)


def test_a_file_cut_short_is_told_by_how_much(tmp_path: Path) -> None:
    """A download that stopped in the data is an error, and the way out is named."""
    path = write(tmp_path / "m.gguf", TINY)
    os.truncate(path, path.stat().st_size - 100)
    with pytest.raises(GgufError, match="cut short") as caught:
        read_model_file(path)
    assert "--model-facts" in str(caught.value)


def test_overlapping_tensors_are_refused(tmp_path: Path) -> None:
    """Two tensors may not lie in one place."""
    path = write(tmp_path / "m.gguf", TINY)
    raw = bytearray(path.read_bytes())
    at = raw.index(b"blk.1.ffn_up.weight") + len(b"blk.1.ffn_up.weight") + 4 + 16 + 4
    raw[at : at + 8] = u64(32)
    path.write_bytes(raw)
    with pytest.raises(GgufError, match="overlaps"):
        read_model_file(path)


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """A folder, a pipe without a writer, a loop of links and nothing at all."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("", "pipe", "loop", "none", "nul\0"):
        with pytest.raises(GgufError, match="cannot read the model"):
            read_header(tmp_path / name)


def test_an_unreadable_file_is_a_usage_error(tmp_path: Path, monkeypatch: object) -> None:
    """The reason that the system gives is passed on."""
    assert isinstance(monkeypatch, pytest.MonkeyPatch)
    path = write(tmp_path / "m.gguf", TINY)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(UsageError, match="Permission denied"):
        read_header(path)


def test_a_sparse_terabyte_of_nothing_is_refused_at_once(tmp_path: Path) -> None:
    """A file of zeros behind a good start neither hangs nor fills the memory."""
    claims = [
        preamble(keys=60_000),
        preamble(tensors=100_000),
        preamble(keys=1) + text(b"k") + u32(9) + u32(8) + u64(2**36),
        preamble(keys=60_000) + text(b"k") + u32(8) + u64(2**24 - 1),
    ]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for claim in claims:
        path = tmp_path / "m.gguf"
        path.write_bytes(claim)
        os.truncate(path, 2**40)
        with pytest.raises(GgufError):
            read_header(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_many_arrays_cannot_fill_the_memory(tmp_path: Path) -> None:
    """Numbers are kept up to a budget over all keys, then only counted."""
    arrays = {f"k{i}": [1] * 16_000 for i in range(70)}
    fields = read_header(write(tmp_path / "m.gguf", Model("llama", {}, {}, arrays))).fields
    kept = sum(len(value) for value in fields.values() if isinstance(value, tuple))
    assert kept <= 1_000_000
    assert any(isinstance(value, LongArray) for value in fields.values())


def read_or_refused(path: Path) -> ModelFacts | str:
    """The facts, or why they are not read; nothing else comes out."""
    try:
        return read_model_file(path)
    except UsageError as error:
        return str(error)


def is_in_order(found: ModelFacts | str, path: Path) -> bool:
    """Facts that hold together, or words that name the file."""
    if isinstance(found, str):
        return path.name in found
    return bool(found.arch) and all(size >= 0 for size in found.bytes_by_role().values())


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=400))
def test_any_bytes_are_refused_in_words(tmp_path: Path, content: bytes) -> None:
    """Noise, with and without a good start, never ends in a traceback."""
    path = tmp_path / "m.gguf"
    for start in (b"", b"GGUF" + u32(3), preamble(tensors=2, keys=3)):
        path.write_bytes(start + content)
        found = read_or_refused(path)
        assert isinstance(found, str)
        assert is_in_order(found, path)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_good_file_with_some_bytes_changed_is_read_or_refused(
    tmp_path: Path, data: st.DataObject
) -> None:
    """Flipped bytes, huge counts and cuts anywhere never end in a traceback."""
    path = tmp_path / "m.gguf"
    good = tmp_path / "good.gguf"
    if not good.exists():
        write(good, TINY)
    raw = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 9))
        new = data.draw(st.binary(min_size=1, max_size=8) | st.just(b"\xff" * 8))
        raw[at : at + len(new)] = new
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)) | st.just(len(raw)))])
    assert is_in_order(read_or_refused(path), path)


KNOWN_KEYS = [
    "block_count",
    "embedding_length",
    "feed_forward_length",
    "leading_dense_block_count",
    "expert_count",
    "expert_used_count",
    "expert_shared_count",
    "expert_feed_forward_length",
    "nextn_predict_layers",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.kv_lora_rank",
    "attention.key_length_mla",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.shared_kv_layers",
    "rope.dimension_count",
    "full_attention_interval",
    "ssm.state_size",
    "ssm.inner_size",
    "kda.head_dim",
    "wkv.head_size",
    "shortconv.l_cache",
    "vocab_size",
]
VALUES: st.SearchStrategy[Any] = (
    st.integers(0, 5)
    | st.integers(0, 2**32 - 1)
    | st.booleans()
    | st.floats(width=32)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
    | st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5)
    | st.lists(st.booleans(), min_size=1, max_size=5)
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    keys=st.dictionaries(st.sampled_from(KNOWN_KEYS), VALUES, max_size=6),
    arch=st.sampled_from(["llama", "gpt-oss", "qwen35", "deepseek2", "gemma3", "llama4"]),
    split=st.booleans(),
)
def test_any_metadata_is_read_or_refused(
    tmp_path: Path, keys: dict[str, Any], arch: str, *, split: bool
) -> None:
    """Keys with values of any type and size never end in a traceback, whole or split."""
    plain: dict[str, Any] = {**PLAIN, "split.count": 3} if split else {**PLAIN}
    model = Model(arch, {**KEYS, **keys}, TENSORS, {**plain, "general.file_type": 7})
    path = write(tmp_path / "m.gguf", model)
    assert is_in_order(read_or_refused(path), path)


def test_without_the_library_the_message_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing extra is a message with the command that installs it, not a traceback."""
    path = write(tmp_path / "m.gguf", Model("llama", KEYS, TENSORS, {}))
    monkeypatch.setitem(sys.modules, "gguf.constants", None)
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(UsageError, match=r"hetero-test\[llama\]"):
        read_model_file(path)
