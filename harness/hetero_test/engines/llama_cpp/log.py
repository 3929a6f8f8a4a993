"""The values that a log of llama.cpp, or of a fork of it, is read into: facts, no judgment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from hetero_test.values.remark import GRAVE, Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDevice:
    """One device as the engine lists it.

    Attributes:
        id: such as ``CUDA0``.
        name: the card's model, or an RPC device's ``host:port``.
        memory_mib: all of its memory, MiB.
        free_mib: what nobody used when it was listed, MiB.
    """

    id: str
    name: str
    memory_mib: int
    free_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Memory and graph of one inference context.

    Attributes:
        kv_mib: KV cache or recurrent state, MiB by buffer type; several caches are summed.
        compute_mib: compute buffers, MiB by buffer type.
        kv_layers: device by layer of its cache.
        splits: graph splits of a batch of one; None: not told.
    """

    kv_mib: Mapping[str, float]
    compute_mib: Mapping[str, float]
    kv_layers: Mapping[int, str]
    splits: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedTensors:
    """Tensors whose preferred buffer type cannot hold them.

    Attributes:
        tensor: the first of them.
        others: how many more.
        preferred: the buffer type that would have been faster, such as ``CPU_REPACK``.
        used: the one that they went to.
    """

    tensor: str
    others: int
    preferred: str
    used: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """One model as it was loaded in earnest.

    Attributes:
        path: as printed.
        draft: whether it was announced as a draft model.
        vocabulary: number of tokens.
        experts: number of routed experts a layer; 0 for a dense model.
        weights_mib: MiB by buffer type.
        layers: device by layer, the output layer being the last one.
        overrides: buffer type by tensor, for tensors that were moved away from their layer.
        moved: tensors that the preferred buffer type of their device could not hold.
        using: address by device that it uses; empty where none is told.
        contexts: the first is the model's own, later ones draft with its own heads.
        lines: all that tells of its placement, verbatim without clocks.
        partly_offloaded: some layers were left to the CPU, as the count of layers says.
    """

    path: str
    draft: bool
    vocabulary: int | None
    experts: int | None
    weights_mib: Mapping[str, float]
    layers: Mapping[int, str]
    overrides: Mapping[str, str]
    moved: tuple[MovedTensors, ...]
    using: Mapping[str, str]
    contexts: tuple[Context, ...]
    lines: tuple[str, ...]
    partly_offloaded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One final timing; None where the log does not tell it or tells ``0.00`` or ``inf``.

    Attributes:
        tokens: how many were read or written.
        ms: milliseconds for all of them.
        tok_s: tokens a second.
    """

    tokens: int | None = None
    ms: float | None = None
    tok_s: float | None = None

    @classmethod
    def of(cls, tokens: int, ms: float | None, tok_s: float | None = None) -> Rate:
        """From what was printed; what is not positive and finite is unknown.

        Args:
            tokens: how many.
            ms: what they took; None: not told.
            tok_s: their rate as it was printed; None: it is computed.
        """
        if ms is None or not 0 < ms < inf:
            return cls(tokens=tokens)
        rate = tok_s if tok_s is not None and tok_s > 0 else tokens / ms * 1000
        return cls(tokens=tokens, ms=ms, tok_s=rate if 0 < rate < inf else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """Draft statistics of one request; None where the log does not tell.

    Attributes:
        accepted: drafted tokens that the target took.
        offered: drafted tokens, taken or not.
        mean_length: tokens committed a round, the target's own among them.
        rounds: times that drafts were made.
        draft_ms: milliseconds of drafting in all rounds.
    """

    accepted: int | None = None
    offered: int | None = None
    mean_length: float | None = None
    rounds: int | None = None
    draft_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaLog:
    """All that one log says.

    Attributes:
        system: the instruction sets that the CPU backend uses, such as ``AVX2``.
        drafting: the ways of speculation that were set up.
        models: in the order in which they were loaded in earnest.
        overflow: a table grew beyond measure, so placements are not known.
        unread_timings: timing lines of a dialect that is not known.
        remarks: the different lines that no row reads; while it is tried what fits, only aborts.
        lines: placement, speculation and draft lines, for the report.
    """

    build: str | None
    system: tuple[str, ...]
    devices: tuple[ListedDevice, ...]
    drafting: tuple[str, ...]
    models: tuple[LoadedModel, ...]
    listening: bool
    prompt: Rate
    decode: Rate
    drafts: Drafts
    overflow: bool
    unread_timings: tuple[str, ...]
    remarks: tuple[Remark, ...]
    lines: tuple[str, ...]
    tail: tuple[str, ...]

    @property
    def faults(self) -> tuple[Remark, ...]:
        """The lines that show that a run went wrong."""
        return tuple(remark for remark in self.remarks if remark.weight in GRAVE)

    @property
    def main(self) -> LoadedModel | None:
        """The model under test, once it is loaded; of one that was loaded again, the last."""
        mains = [model for model in self.models if not model.draft]
        return next((model for model in reversed(mains) if model.path == mains[0].path), None)

    @property
    def draft(self) -> LoadedModel | None:
        """The draft model, once it is loaded; an MTP head is none, it is part of the main one."""
        return next((model for model in self.models if model.draft), None)
