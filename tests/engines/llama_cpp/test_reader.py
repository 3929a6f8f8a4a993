"""Any bytes are read: nothing in them raises, or changes what the lines around them say."""

from __future__ import annotations

import io
import re
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hetero_test.engines.llama_cpp import patterns
from hetero_test.engines.llama_cpp.log import LlamaLog
from hetero_test.engines.llama_cpp.models import Models
from hetero_test.engines.llama_cpp.patterns import lines_of
from hetero_test.engines.llama_cpp.reader import FinalTimings, Startup, nothing, read
from hetero_test.engines.llama_cpp.tables import Tables
from tests.engines.llama_cpp.samples import LOGS


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
    monkeypatch.setattr(patterns, "_CHUNK_BYTES", size)
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


def test_every_row_is_taken_by_one_noun() -> None:
    """What a row finds is not lost, and not counted twice."""
    nouns = (Startup(Tables()), Models(Tables()), FinalTimings())
    taken = [name for noun in nouns for name in noun.events()]
    assert sorted(taken) == sorted(patterns.PATTERNS)


def test_every_row_starts_with_its_key() -> None:
    """A row is found by the first bytes of its message, so these must be literal."""
    for name, pattern in patterns.PATTERNS.items():
        key = pattern[: patterns.KEY]
        assert re.escape(key.decode()) in {key.decode(), f"\\{key.decode()}", "\\-\\ "}, name
        assert pattern in patterns.ROWS[key].pattern
