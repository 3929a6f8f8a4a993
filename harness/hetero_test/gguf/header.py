"""The headers of a GGUF file and of its shards, in bounded memory: keys, values, tensors.

The format is https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3,
little-endian. The types and their block sizes are those of the library ``gguf``. Its reader is not
used: it maps the file and keeps three array objects for every string, 616 MB for a vocabulary of
150,000 with its merges, and follows any count that the file states. Here long arrays are counted
and hashed as they pass, and every count is checked before it is believed.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from hetero_test.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_KEYS = 65_536
MAX_TENSORS = 200_000
"""A mixture of 400 experts with a tensor for each would have 75,000."""
MAX_NAME_BYTES = 65_535
"""Of keys, by the format; tensor names are shorter still."""
MAX_TEXT_BYTES = 16 * 2**20
"""Of all texts together, tokens apart. The longest are chat templates, some 100 kB."""
MAX_STRINGS = 4_000_000
"""In all arrays together. Tokens and merges of the largest vocabularies are under a million."""
MAX_DIMENSIONS = 4
MAX_KEPT = 16_384
"""Arrays of up to this many numbers are kept (per-layer values), of longer ones the length."""
MAX_KEPT_IN_ALL = 1_000_000

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING = 8
_ARRAY = 9

Scalar = int | float | bool | str


class GgufError(UsageError):
    """The file is not a GGUF file that this program can read; says what and where."""


@dataclass(frozen=True, slots=True)
class TextArray:
    """An array of strings: how many, and what identifies them."""

    count: int
    sha256: str
    """Over every string's length (8 bytes, little-endian) and bytes, in order."""


@dataclass(frozen=True, slots=True)
class LongArray:
    """An array of numbers that was too long to keep."""

    count: int


Value = Scalar | tuple[int | float | bool, ...] | TextArray | LongArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """One row of the tensor table."""

    name: str
    shape: tuple[int, ...]
    """Elements by dimension, fastest first, as in the file."""
    type_id: int
    """``ggml_type``; see `hetero_test.gguf.types`."""
    offset: int
    """Bytes from the start of the data section."""

    @property
    def elements(self) -> int:
        """The product of the shape."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """Everything before the data section."""

    path: Path
    version: int
    fields: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    data_offset: int
    """Byte at which the data section begins."""
    file_bytes: int


def read_header(path: Path) -> GgufHeader:
    """Read the header of one file (one shard, where a model is split).

    Raises:
        GgufError: the file cannot be read, is not GGUF, ends early, or states what cannot be.
    """
    with _open(path) as stream:
        cursor = _Cursor(stream, path)
        tensor_count, key_count = _preamble(cursor)
        fields = dict(_fields(cursor, key_count))
        tensors = tuple(_tensor_infos(cursor, tensor_count))
        alignment = fields.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment <= 0 or alignment % 8:
            raise cursor.error(f"general.alignment is {alignment!r}")
        return GgufHeader(
            path=path,
            version=cursor.version,
            fields=fields,
            tensors=tensors,
            data_offset=-(-cursor.position // alignment) * alignment,
            file_bytes=cursor.size,
        )


def read_tokens(path: Path) -> Iterator[bytes]:
    """The vocabulary of a file, token by token, in the order of their ids.

    Raises:
        GgufError: as `read_header`, or the file has no ``tokenizer.ggml.tokens``.
    """
    with _open(path) as stream:
        cursor = _Cursor(stream, path)
        _, key_count = _preamble(cursor)
        for _ in range(key_count):
            key, kind = _key(cursor)
            if key == "tokenizer.ggml.tokens" and kind == _ARRAY:
                if cursor.number("I") == _STRING:
                    yield from cursor.strings(cursor.number("Q"), key)
                    return
                raise cursor.error(f"{key} is no array of strings")
            _value(cursor, key, kind)
    raise GgufError(f"{path} has no vocabulary (tokenizer.ggml.tokens)")


def _open(path: Path) -> BinaryIO:
    try:
        if not path.is_file():  # a pipe would be waited for
            reason = "it is no regular file" if path.exists() else "there is no such file"
            raise GgufError(f"cannot read the model {path}: {reason}")
        return path.open("rb")
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        why = getattr(error, "strerror", None) or str(error)
        raise GgufError(f"cannot read the model {path}: {why}") from error


def _preamble(cursor: _Cursor) -> tuple[int, int]:
    """Check magic, byte order and version; the counts of tensors and keys."""
    magic = cursor.take(min(4, cursor.size))
    if magic != MAGIC:
        what = "is empty" if not magic else f"begins with {magic!r}, not with {MAGIC!r}"
        raise GgufError(
            f"{cursor.path} is no GGUF file: it {what}", hint="give the .gguf file of the model"
        )
    version = cursor.number("I")
    if version & 0xFFFF == 0:  # written on a machine of the other byte order
        raise GgufError(
            f"{cursor.path} is a big-endian GGUF file, which this program does not read",
            hint="give the little-endian file, or describe the model with --model-facts FILE.toml",
        )
    if version not in VERSIONS:
        raise cursor.error(f"GGUF version {version} is none of {VERSIONS}")
    cursor.version = version
    tensor_count, key_count = cursor.number("Q"), cursor.number("Q")
    if tensor_count > MAX_TENSORS or key_count > MAX_KEYS:
        raise cursor.error(f"{tensor_count} tensors and {key_count} keys cannot be")
    return tensor_count, key_count


def _key(cursor: _Cursor) -> tuple[str, int]:
    key = cursor.text("a key", limit=MAX_NAME_BYTES)
    if not key:
        raise cursor.error("a key without a name")
    return key, cursor.number("I")


def _fields(cursor: _Cursor, count: int) -> Iterator[tuple[str, Value]]:
    seen: set[str] = set()
    for _ in range(count):
        key, kind = _key(cursor)
        if key in seen:
            raise cursor.error(f"the key {key!r} stands here a second time")
        seen.add(key)
        yield key, _value(cursor, key, kind)


def _value(cursor: _Cursor, key: str, kind: int) -> Value:
    if kind == _STRING:
        return cursor.text(key)
    if kind in _SCALARS:
        return cursor.numbers(_SCALARS[kind], 1)[0]
    if kind != _ARRAY:
        raise cursor.error(f"{key!r} is of the unknown type {kind}")
    inner, count = cursor.number("I"), cursor.number("Q")
    if inner == _STRING:
        digest = hashlib.sha256()
        for text in cursor.strings(count, key):
            digest.update(len(text).to_bytes(8, "little"))
            digest.update(text)
        return TextArray(count, digest.hexdigest())
    if inner not in _SCALARS:
        raise cursor.error(f"{key!r} is an array of the unknown type {inner}")
    if count > MAX_KEPT or not cursor.may_keep(count):
        cursor.skip(count * struct.calcsize("<" + _SCALARS[inner]), key)
        return LongArray(count)
    return cursor.numbers(_SCALARS[inner], count)


def _tensor_infos(cursor: _Cursor, count: int) -> Iterator[TensorInfo]:
    seen: set[str] = set()
    for _ in range(count):
        name = cursor.text("a tensor's name", limit=MAX_NAME_BYTES)
        if not name or name in seen:
            raise cursor.error(f"a tensor {name!r}" + (" stands here again" if name else ""))
        seen.add(name)
        dimensions = cursor.number("I")
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise cursor.error(f"the tensor {name!r} has {dimensions} dimensions")
        info = TensorInfo(
            name=name,
            shape=tuple(int(extent) for extent in cursor.numbers("Q", dimensions)),
            type_id=cursor.number("I"),
            offset=cursor.number("Q"),
        )
        if not 0 < info.elements < 2**63:
            raise cursor.error(f"the tensor {name!r} has the shape {list(info.shape)}")
        yield info


class _Cursor:
    """A position in the file; reading past the end is an error in words."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self.path = path
        self.version = 0
        self.position = 0
        self._stream = stream
        self.size = stream.seek(0, 2)
        stream.seek(0)
        self._strings_left = MAX_STRINGS
        self._text_left = MAX_TEXT_BYTES
        self._numbers_left = MAX_KEPT_IN_ALL

    def error(self, what: str) -> GgufError:
        said = what if len(what) < 200 else what[:200] + "…"
        return GgufError(
            f"{self.path}: {said} (near byte {self.position})",
            hint="the file is damaged or not finished; fetch it again",
        )

    def take(self, count: int, what: str = "the header") -> bytes:
        if count > self.size - self.position:
            raise self.error(f"the file ends within {what}")
        try:
            raw = self._stream.read(count)
        except OSError as error:
            raise self.error(f"reading fails: {error.strerror}") from error
        if len(raw) != count:  # it shrank while we read
            raise self.error(f"the file ends within {what}")
        self.position += count
        return raw

    def skip(self, count: int, what: str) -> None:
        if count > self.size - self.position:
            raise self.error(f"the file ends within {what}")
        self.position = self._stream.seek(count, 1)

    def numbers(self, code: str, count: int) -> tuple[int | float | bool, ...]:
        layout = f"<{count}{code}"
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def number(self, code: str) -> int:
        """One unsigned integer; the code says its width."""
        width = struct.calcsize("<" + code)
        return int.from_bytes(self.take(width), "little")

    def may_keep(self, count: int) -> bool:
        """Whether so many more numbers may be kept; counts them if so."""
        fits = count <= self._numbers_left
        self._numbers_left -= count if fits else 0
        return fits

    def text(self, what: str, *, limit: int = MAX_TEXT_BYTES) -> str:
        length = self.number("Q")
        if length > min(limit, self._text_left):
            raise self.error(f"{what!r} would be a text of {length} bytes")
        self._text_left -= length
        try:
            return self.take(length, what).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error(f"{what!r} is not UTF-8 text") from error

    def strings(self, count: int, what: str) -> Iterator[bytes]:
        """The strings of an array, as bytes: tokens need not be whole characters."""
        if count > self._strings_left or count * 8 > self.size - self.position:
            raise self.error(f"{what!r} would be an array of {count} strings")
        self._strings_left -= count
        for _ in range(count):
            length = self.number("Q")
            if length > MAX_NAME_BYTES:
                raise self.error(f"{what!r} has a string of {length} bytes")
            yield self.take(length, what)


MAX_SHARDS = 10_000
_SHARD_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf\Z")
"""``llama_split_path`` of llama.cpp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """The headers of all files that exist, the first one first."""

    headers: tuple[GgufHeader, ...]
    missing: tuple[str, ...]
    """Names of the files that are not there."""


def read_shards(path: Path) -> Shards:
    """Read the headers of a model, given its only file or any one of its shards.

    Raises:
        GgufError: a file is damaged, the first shard is missing, or the shards contradict
            each other.
    """
    found = _SHARD_NAME.match(path.name)
    if found is None:
        header = read_header(path)
        count = _shard_count(header)
        if count == 1:
            return Shards(headers=(header,), missing=())
        if _shard_number(header) != 0:
            raise GgufError(
                f"{path} is one of {count} shards and not the first",
                hint="give the first, named as NAME-00001-of-0000N.gguf",
            )
        return Shards(headers=(header,), missing=(f"the {count - 1} other shards of {path.name}",))
    count = int(found["count"])
    if not 0 < int(found["number"]) <= count <= MAX_SHARDS:
        raise GgufError(f"{path}: there is no shard {found['number']} of {found['count']}")
    names = [f"{found['stem']}-{i:05d}-of-{count:05d}.gguf" for i in range(1, count + 1)]
    paths = [path.with_name(name) for name in names]
    if not paths[0].exists():
        given = "" if path.name == names[0] else f" beside {path.name}"
        raise GgufError(
            f"there is no {paths[0]}{given}",
            hint="only the first shard holds the metadata; the others are not needed",
        )
    headers = [read_header(shard) for shard in paths if shard.exists()]
    for header in headers:
        if _shard_count(header) not in (1, count):
            raise GgufError(f"{header.path} says that it is one of {_shard_count(header)} shards")
    missing = tuple(shard.name for shard in paths if not shard.exists())
    return Shards(headers=tuple(headers), missing=missing)


def _shard_count(header: GgufHeader) -> int:
    value = header.fields.get("split.count", 1)
    return value if isinstance(value, int) and 0 < value <= MAX_SHARDS else 1


def _shard_number(header: GgufHeader) -> int:
    value = header.fields.get("split.no", 0)
    return value if isinstance(value, int) else 0
