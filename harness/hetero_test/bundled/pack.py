"""The pack, the drafter and the profile on disk, and how much memory each part takes."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from hetero_test.bundled.failures import failed

if TYPE_CHECKING:
    from pathlib import Path

PACK_FILE = "pack.toml"
DRAFTER_FILE = "dense.txt"
PROFILE_HEAD = "# ranked pairs, most used first: layer expert"

Pair = tuple[int, int]


class Layout(Enum):
    """How a pack keeps its experts, which decides what a forced cache size means."""

    CANONICAL = "canonical"  # blobs of one size; N slots are N slots
    NATIVE = "native"  # blobs of a size each layer; N is a budget of largest blobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """The dimensions of the model."""

    layers: int = 4
    width: int = 64
    hidden: int = 64
    heads: int = 4
    experts: int = 16
    used: int = 2
    vocab: int = 4096
    first_gain: float = 0.6
    later_gain: float = 0.12

    @property
    def pairs(self) -> int:
        """How many (layer, expert) pairs there are."""
        return self.layers * self.experts


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A model, and how many MiB of an emulated device each of its parts takes."""

    layout: Layout
    seed: int
    shape: Dimensions
    weights_mib: int
    session_mib: int
    kv_mib_per_1024: int
    expert_mib: tuple[int, ...]  # of one expert, by layer
    eos_ids: tuple[int, ...]

    @property
    def largest_mib(self) -> int:
        """The size of the largest expert."""
        return max(self.expert_mib)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterPack:
    """What the drafter takes of the device that it is put on."""

    experts_mib: int
    dense_mib: int
    kv_mib: int
    head_mib: int

    @property
    def loaded_mib(self) -> int:
        """Everything except the draft head, which is built after the expert cache."""
        return self.experts_mib + self.dense_mib + self.kv_mib


def read_pack(folder: Path) -> Pack:
    """The pack in a folder.

    Raises:
        EngineStopError: it cannot be read (exit code 1).
    """
    path = folder / PACK_FILE
    table = _table(path)
    try:
        mib = table["mib"]
        shape = Dimensions()
        pack = Pack(
            layout=Layout(table["expert_layout"]),
            seed=int(table["seed"]),
            shape=shape,
            weights_mib=int(mib["weights"]),
            session_mib=int(mib["session"]),
            kv_mib_per_1024=int(mib["kv_per_1024_positions"]),
            expert_mib=tuple(int(size) for size in mib["expert_by_layer"]),
            eos_ids=tuple(int(token) for token in table["eos_ids"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise failed(f"{path} is not a pack: {error!r}") from error
    if len(pack.expert_mib) != shape.layers:
        raise failed(f"{path} is not a pack: expert_by_layer needs {shape.layers} sizes")
    return pack


def read_drafter(folder: Path) -> DrafterPack:
    """The drafter in a folder.

    Raises:
        EngineStopError: it cannot be read (exit code 1).
    """
    path = folder / DRAFTER_FILE
    table = _table(path)
    try:
        return DrafterPack(
            experts_mib=int(table["experts_mib"]),
            dense_mib=int(table["dense_mib"]),
            kv_mib=int(table["kv_mib"]),
            head_mib=int(table["head_mib"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise failed(f"mtp: {path} is not a drafter: {error!r}") from error


def read_profile(path: Path, shape: Dimensions) -> tuple[Pair, ...]:
    """The ranked pairs of a profile; a line is ``layer expert``, ``#`` starts a comment.

    Raises:
        EngineStopError: the file cannot be read, or names a pair twice or one that does not exist.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise failed(f"cannot open {path}") from error
    pairs: dict[Pair, None] = {}
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            layer, expert = (int(word) for word in words)
        except ValueError as error:
            raise failed(f"{path}: line {number} is not a pair: {line!r}") from error
        known = 0 <= layer < shape.layers and 0 <= expert < shape.experts
        if not known or (layer, expert) in pairs:
            raise failed(f"{path}: line {number}: no such pair, or twice: {line!r}")
        pairs[layer, expert] = None
    return tuple(pairs)


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise failed(f"cannot open {path}") from error
    except ValueError as error:
        raise failed(f"{path} cannot be read: {error}") from error
