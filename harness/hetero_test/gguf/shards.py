"""The files of a model that was split: which exist, which are missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hetero_test.gguf.header import GgufError, GgufHeader, read_header

if TYPE_CHECKING:
    from pathlib import Path

MAX_SHARDS = 10_000
_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf\Z")
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
    found = _NAME.match(path.name)
    if found is None:
        header = read_header(path)
        count = _count(header)
        if count == 1:
            return Shards(headers=(header,), missing=())
        if _number(header) != 0:
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
        if _count(header) not in (1, count):
            raise GgufError(f"{header.path} says that it is one of {_count(header)} shards")
    missing = tuple(shard.name for shard in paths if not shard.exists())
    return Shards(headers=tuple(headers), missing=missing)


def _count(header: GgufHeader) -> int:
    value = header.fields.get("split.count", 1)
    return value if isinstance(value, int) and 0 < value <= MAX_SHARDS else 1


def _number(header: GgufHeader) -> int:
    value = header.fields.get("split.no", 0)
    return value if isinstance(value, int) else 0
