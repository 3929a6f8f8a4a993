"""The models that a log tells of: which were loaded in earnest, and where they were placed.

Lines come in, each with the arguments of its row of `patterns.PATTERNS`, and go to
:class:`Models`; it fills one :class:`LoadingModel` a model, step by step, since what a log says
of a model comes in no fixed order. :meth:`LoadingModel.loaded` gives the frozen value.

Newer builds load every model twice: first without memory, to see whether it fits, then in
earnest. Only what is loaded in earnest counts, and of several lines on one thing the last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hetero_test.engines.lines import decoded
from hetero_test.engines.llama_cpp.log import Context, LoadedModel, MovedTensors
from hetero_test.engines.llama_cpp.patterns import text_of
from hetero_test.engines.llama_cpp.tables import KEPT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hetero_test.engines.llama_cpp.tables import Tables

_PLUGGED_IN: Final = re.compile(r"\) \((?:unknown id|[\dA-Fa-f:.-]{7,64})$")
"""Where a device is, behind its name: ``NVIDIA GeForce RTX 3090) (0000:01:00.0``."""


class Models:
    """Takes the lines on models.

    Attributes:
        fitting: it is being tried what fits; the models of that time are loaded without memory.
    """

    def __init__(self, tables: Tables) -> None:
        self.fitting = False
        self._tables = tables
        self._begun: list[LoadingModel] = []
        self._current = LoadingModel()
        self._draft_follows = False

    def in_earnest(self) -> list[LoadingModel]:
        """The models that were loaded in earnest, in their order."""
        if not self._begun and self._current.placed:
            return [self._current]  # the beginning of the log is missing
        return [model for model in self._begun if not model.dry]

    def events(self) -> Mapping[str, Callable[..., None]]:
        """What takes each row, by its name."""
        return {
            "fit_begin": self._fit_begin,
            "fit_end": self._fit_end,
            "draft_model": self._draft_model,
            "model": self._model,
            "context": self._context,
            "dry": self._dry,
            "vocabulary": self._vocabulary,
            "experts": self._experts,
            "using": self._using,
            "split_device": self._split_device,
            "layer": self._layer,
            "override": self._override,
            "old_override": self._override,
            "moved": self._moved,
            "offloaded": self._offloaded,
            "kv_self": self._kv_self,
            "kv_layer": self._kv_layer,
            "splits": self._splits,
        }

    # ---- which model the next lines are about ----------------------------------------------

    def _fit_begin(self, _line: bytes) -> None:
        self.fitting = True

    def _fit_end(self, _line: bytes) -> None:
        self.fitting = False

    def _draft_model(self, _line: bytes) -> None:
        self._draft_follows = True

    def _model(self, _line: bytes, _pairs: bytes, _tensors: bytes, path: bytes) -> None:
        # Older builds name the devices before the first model, not behind it.
        using = {} if self._begun else self._current.using
        self._current = LoadingModel(
            path=decoded(path), draft=self._draft_follows, dry=self.fitting, using=using
        )
        self._draft_follows = False
        self._tables.add(self._begun, self._current)

    def _context(self, _line: bytes) -> None:
        self._tables.add(self._current.contexts, LoadingContext())

    # ---- what it is ------------------------------------------------------------------------

    def _dry(self, _line: bytes, value: bytes) -> None:
        self._current.dry = value == b"1"

    def _vocabulary(self, _line: bytes, value: bytes) -> None:
        self._current.vocabulary = int(value)

    def _experts(self, _line: bytes, value: bytes) -> None:
        self._current.experts = int(value)

    # ---- where it is -----------------------------------------------------------------------

    def _using(self, line: bytes, name: bytes, what: bytes, _free: bytes) -> None:
        address = _PLUGGED_IN.sub("", decoded(what))
        self._tables.put(self._current.using, decoded(name), address)
        self._current.keep(line)

    def _split_device(self, _line: bytes, name: bytes) -> None:
        self._tables.put(self._current.using, decoded(name), "")

    def _layer(self, _line: bytes, layer: bytes, device: bytes) -> None:
        self._tables.put(self._current.layers, int(layer), decoded(device))

    def _override(self, _line: bytes, tensor: bytes, buffer: bytes) -> None:
        self._tables.put(self._current.overrides, decoded(tensor), decoded(buffer))

    def _moved(
        self, line: bytes, tensor: bytes, others: bytes, preferred: bytes, used: bytes
    ) -> None:
        moved = MovedTensors(
            tensor=decoded(tensor),
            others=int(others),
            preferred=decoded(preferred),
            used=decoded(used).rstrip("."),
        )
        if self._tables.add(self._current.moved, moved):
            self._current.keep(line)

    def _offloaded(self, line: bytes, some: bytes, all_: bytes) -> None:
        # "All layers are offloaded" is said on CPU-only runs too and proves nothing. That some
        # are not offloaded is proof.
        self._current.partly_offloaded = int(some) < int(all_)
        self._current.keep(line)

    def on_buffer(self, line: bytes, buffer: bytes, what: bytes | None, size: bytes) -> None:
        """A line on a buffer; not by a row, since it begins with any name.

        Args:
            line: the line.
            buffer: name of the buffer type.
            what: what is in it, such as ``KV``; None: weights, in builds that do not name them.
            size: MiB, as printed.
        """
        name, mib = decoded(buffer), float(size)
        match what:
            case b"KV" | b"RS":
                # Models with several caches print one line each.
                kv = self._current.context().kv_mib
                self._tables.put(kv, name, kv.get(name, 0.0) + mib)
            case b"compute":
                self._tables.put(self._current.context().compute_mib, name, mib)
            case b"output":
                return
            case _:
                weights = self._current.weights_mib
                self._tables.put(weights, name, weights.get(name, 0.0) + mib)
        self._current.keep(line)

    def _kv_self(self, line: bytes, _size: bytes) -> None:
        self._current.keep(line)

    def _kv_layer(self, _line: bytes, layer: bytes, device: bytes) -> None:
        self._tables.put(self._current.context().kv_layers, int(layer), decoded(device))

    def _splits(self, line: bytes, prompt: bytes, decode: bytes | None) -> None:
        # Decoding is what is timed: where both are told, the one for a batch of one.
        self._current.context().splits = int(decode or prompt)
        self._current.keep(line)


@dataclass(slots=True)
class LoadingContext:
    """One inference context so far; the fields are those of :class:`Context`."""

    kv_mib: dict[str, float] = field(default_factory=dict)
    compute_mib: dict[str, float] = field(default_factory=dict)
    kv_layers: dict[int, str] = field(default_factory=dict)
    splits: int | None = None

    def loaded(self) -> Context:
        """The context as far as it was told."""
        return Context(
            kv_mib=self.kv_mib,
            compute_mib=self.compute_mib,
            kv_layers=self.kv_layers,
            splits=self.splits,
        )


@dataclass(slots=True)
class LoadingModel:
    """One model so far; the fields are those of :class:`LoadedModel`.

    Attributes:
        dry: it is loaded without memory, to see whether it fits; nothing is placed.
    """

    path: str = ""
    draft: bool = False
    dry: bool = False
    vocabulary: int | None = None
    experts: int | None = None
    weights_mib: dict[str, float] = field(default_factory=dict)
    layers: dict[int, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    moved: list[MovedTensors] = field(default_factory=list)
    using: dict[str, str] = field(default_factory=dict)
    contexts: list[LoadingContext] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    partly_offloaded: bool = False

    @property
    def placed(self) -> bool:
        """Whether anything is known of where it is."""
        return bool(self.weights_mib or self.layers)

    def context(self) -> LoadingContext:
        """The context that lines are about at this moment; the first begins unannounced."""
        if not self.contexts:
            self.contexts.append(LoadingContext())
        return self.contexts[-1]

    def keep(self, line: bytes) -> None:
        """Keep a line on its placement for the report."""
        if len(self.lines) < 10 * KEPT:
            self.lines.append(text_of(line))

    def loaded(self) -> LoadedModel:
        """The model as far as it was told."""
        return LoadedModel(
            path=self.path,
            draft=self.draft,
            vocabulary=self.vocabulary,
            experts=self.experts,
            weights_mib=self.weights_mib,
            layers=self.layers,
            overrides=self.overrides,
            moved=tuple(self.moved),
            using=self.using,
            contexts=tuple(context.loaded() for context in self.contexts),
            lines=tuple(self.lines),
            partly_offloaded=self.partly_offloaded,
        )
