"""A model while the lines on its loading are read: what is known of it so far.

What a log says of a model comes in no fixed order and over many lines, so these are filled
step by step. :meth:`LoadingModel.loaded` gives the frozen value that everything else works with.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.engines.llama_lines import text_of
from harness.engines.llama_log import Context, LoadedModel, Moved
from harness.engines.llama_tables import KEPT


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
    moved: list[Moved] = field(default_factory=list)
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
