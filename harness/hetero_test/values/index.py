"""Where the runs of a record are found: by key, by id, by command, by prompt.

Judge, schedule and report ask for the runs of one variant at a time. Made once for each record
(:attr:`hetero_test.values.record.Record.index`), so that nobody looks through all runs for each.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from hetero_test.values.run import Effect, Purpose, Run, RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hetero_test.values.record import Record

Key = TypeVar("Key")
Command = tuple[str, str]
"""Id and prompt: what the repeats of one command share."""


class Index:
    """What is found of a record; each part is made when somebody asks for it first."""

    def __init__(self, record: Record) -> None:
        self._record = record

    # ---- the plan -------------------------------------------------------------------------

    @cached_property
    def rank(self) -> Mapping[str, int]:
        """The place of each variant in the matrix, by id; the baseline's is 0."""
        variants = self._record.manifest.variants
        return {entry.variant.id: place for place, entry in enumerate(variants)}

    # ---- rounds and extra runs --------------------------------------------------------------

    @cached_property
    def by_key(self) -> Mapping[tuple[str, str, int], Run]:
        """Each run by its key; of two with one key the last."""
        return {run.key: run for run in self._record.runs}

    @cached_property
    def by_id(self) -> Mapping[str, tuple[Run, ...]]:
        """The runs under each id, in the order of the record."""
        return _grouped(self._record.runs, lambda run: run.variant)

    @cached_property
    def by_command(self) -> Mapping[Command, tuple[Run, ...]]:
        """The runs of each command, in the order of the record."""
        return _grouped(self._record.runs, lambda run: (run.variant, run.probe))

    @cached_property
    def by_prompt(self) -> Mapping[str, tuple[Run, ...]]:
        """The runs of each prompt, by its name, in the order of the record."""
        return _grouped(self._record.runs, lambda run: run.probe)

    @cached_property
    def rounds(self) -> Mapping[str, tuple[Run, ...]]:
        """The runs of the rounds by prompt, in matrix order, then by repeat."""
        rank = self.rank
        return {
            name: tuple(
                sorted(
                    (r for r in runs if r.purpose is Purpose.ROUND and r.variant in rank),
                    key=lambda run: (rank[run.variant], run.repeat),
                )
            )
            for name, runs in self.by_prompt.items()
        }

    @cached_property
    def first_usable(self) -> Mapping[Command, Run]:
        """The first OK run of each command that has one."""
        found: dict[Command, Run] = {}
        for run in self._record.runs:
            if run.usable:
                found.setdefault((run.variant, run.probe), run)
        return found

    @cached_property
    def effects(self) -> Mapping[str, Effect | None]:
        """Each variant's worst effect over its OK runs; None for the baseline and without any."""
        found = {
            name: Effect.worst(run.effect for run in self.by_id.get(name, ()) if run.usable)
            for name in self.rank
        }
        return found | dict.fromkeys(self._baseline)

    def behind(self, name: str) -> str:
        """The id of the matrix variant behind that of an extra run."""
        runs = self.by_id.get(name)
        return runs[0].of if runs else name

    # ---- what is not run again -----------------------------------------------------------------

    @cached_property
    def given_up(self) -> frozenset[Command]:
        """Commands that are not launched again, after what became of one of their runs."""
        runs = self._record.runs
        return frozenset((run.variant, run.probe) for run in runs if run.state.not_repeated)

    @cached_property
    def hung_before(self) -> frozenset[str]:
        """Ids of the variants that hung in a warm-up; the baseline ran again after that."""
        hung = {run.variant for run in self._record.warmup if run.state is RunState.TIMED_OUT}
        return frozenset(hung.difference(self._baseline))

    @property
    def _baseline(self) -> tuple[str, ...]:
        """The baseline's id, if anything was planned."""
        return tuple(entry.variant.id for entry in self._record.manifest.variants[:1])

    # ---- further runs ----------------------------------------------------------------------------

    @cached_property
    def again(self) -> Mapping[Command, tuple[Run, ...]]:
        """Runs that were made to explain a difference, by their command, by repeat."""
        made = (run for run in self._record.rechecks if run.purpose is Purpose.RECHECK)
        # Runs under the id of a further run are that only if they were made as one.
        ordered = sorted(made, key=lambda run: run.repeat)
        return _grouped(ordered, lambda run: (run.variant, run.probe))


def _grouped(runs: Iterable[Run], key: Callable[[Run], Key]) -> dict[Key, tuple[Run, ...]]:
    found: dict[Key, list[Run]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return {name: tuple(members) for name, members in found.items()}
