"""A rig of values: an engine like Strata that launches nothing, and a loop that plays it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hetero_test.session.schedule import next_cell, wedged
from hetero_test.store.run_dir import add
from hetero_test.values.reading import Place
from hetero_test.values.record import Ending, Manifest, Record
from hetero_test.values.run import Cell, Effect, Purpose, Run, RunState
from hetero_test.values.variant import Variant
from tests.judge.factories import manifest, planned, residency, run, stream

if TYPE_CHECKING:
    from hetero_test.engines.base import Engine, Survey
    from hetero_test.values.run import Device

CACHE = "--cache"
LONGEST = 500


class Unsized:
    """An engine's answers about flags; no cache of it has a size that could be forced."""

    name = "values"
    drafter_flags = "--draft DIR"

    def placeholders(
        self, survey: Survey, flags: Sequence[str], device: Device | None
    ) -> Mapping[str, str]:
        """The device of a ``for_each``, and a second one where there is one."""
        assert CACHE not in flags
        found = {} if device is None else {"device": device.id}
        if len(survey.devices) > 1:
            found["other"] = survey.devices[1].id
        return found

    def combine(self, flags: Sequence[str], variant_flags: Sequence[str]) -> tuple[str, ...]:
        """One after the other."""
        return (*flags, *variant_flags)


class Flags(Unsized):
    """One cache size beside them, of which the last occurrence counts."""

    def size(self, run: Run) -> int | None:
        """On a native pack the budget behind a run, else its final slots."""
        if run.reading.context.get("native_pack"):
            size = run.reading.context.get("budget")
            return size if isinstance(size, int) else None
        slots = run.residency.fact("slots")
        return slots if isinstance(slots, int) else None

    def force(self, flags: Sequence[str], wanted: Run) -> tuple[str, ...] | None:
        """The flags with one size in place of the user's."""
        size = self.size(wanted)
        return None if size is None else (*without_cache(flags), CACHE, str(size))

    def share(self, flags: Sequence[str], baseline: Run, got: Run) -> tuple[str, ...] | None:
        """One size that both can hold, not below half of the baseline's."""
        size, wanted, opened = self.size(baseline), slots(baseline), slots(got)
        if size is None or not wanted or not opened:
            return None
        common = min(size, size * opened // wanted)
        return (*without_cache(flags), CACHE, str(common)) if 2 * common >= size else None


def engine(*, sized: bool = True) -> Engine:
    """The flags' engine, as far as planning asks anything of one."""
    return Flags() if sized else Unsized()  # type: ignore[return-value]


def slots(run: Run) -> int | None:
    """Final slots."""
    found = run.residency.fact("slots")
    return found if isinstance(found, int) else None


def without_cache(flags: Sequence[str]) -> tuple[str, ...]:
    """Flags without any cache size."""
    at = [n for n, flag in enumerate(flags) if flag == CACHE]
    return tuple(f for n, f in enumerate(flags) if n not in at and n - 1 not in at)


@dataclass(frozen=True, kw_only=True)
class World:
    """What a rig does with a cell; every field is by the matrix variant behind it.

    Attributes:
        auto: slots that it opens by itself, by repeat (the last one for later repeats).
        most: slots that it can hold; a larger forced size is clipped.
        refuses_size: a larger forced size is refused instead.
        kind: of the card on which its main model runs; not the first card if given.
        budget: of a native pack: slots for each unit of the forced size.
        bad: state of the run by (id, repeat), for runs that are not OK.
        wrong: token at which its stream differs.
        noise: its stream is another one at each launch.
        unknown: its log tells no residency.
    """

    auto: Mapping[str, Sequence[int]] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)
    refuses_size: bool = False
    kind: Mapping[str, str] = field(default_factory=dict)
    budget: float | None = None
    bad: Mapping[tuple[str, int], RunState] = field(default_factory=dict)
    wrong: Mapping[str, int] = field(default_factory=dict)
    noise: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()

    def run(self, cell: Cell, launch: int) -> Run:
        """What comes of a cell, the n-th of all launches."""
        state = self.bad.get((cell.variant, cell.repeat), RunState.OK)
        forced = forced_size(cell)
        most = self.most.get(cell.of, 10**6)
        opened = self.opened(cell, forced)
        if forced is not None and opened > most and self.refuses_size:
            state = RunState.NO_MEMORY
        values = self.stream(cell, min(opened, most), launch)
        kind = self.kind.get(home(cell), "GTX 1080 Ti")
        place = residency("?" if cell.of in self.unknown else min(opened, most), kind)
        good = state is RunState.OK
        shorter = state in {RunState.TRUNCATED, RunState.DEGENERATE}
        context = {
            "native_pack": self.budget is not None,
            "budget": forced if forced is not None else self.estimate(cell),
        }
        return run(
            cell.variant,
            cell.repeat,
            of=cell.of,
            probe=cell.probe,
            order=cell.order,
            purpose=cell.purpose,
            state=state,
            reason=None if good else f"it was {state.lower()}",
            stream=values if good else values[:20] if shorter else None,
            residency=place if good or shorter else residency("?"),
            main=Place(device="0" if home(cell) not in self.kind else "1"),
            context=context,
            places={"main": cell.of},
            effect=None if cell.of == "0" else Effect.PROVEN,
            flags=cell.flags,
            env=cell.env,
        )

    def estimate(self, cell: Cell) -> int:
        """The size behind an automatic cache."""
        sizes = self.auto.get(cell.of, (4400,))
        return sizes[min(cell.repeat, len(sizes)) - 1]

    def opened(self, cell: Cell, forced: int | None) -> int:
        """Slots that a run opens, before they are clipped."""
        size = self.estimate(cell) if forced is None else forced
        return int(size * (self.budget or 1))

    def stream(self, cell: Cell, opened: int, launch: int) -> tuple[int, ...]:
        """A stream that only the residency decides, but for what is wrong on purpose."""
        kind = self.kind.get(home(cell), "")
        name = f"{cell.probe}-{opened}-{kind}" + (f"-{launch}" if cell.of in self.noise else "")
        ids = list(stream(name + "x"))
        if cell.of in self.wrong:
            ids[self.wrong[cell.of]] += 1
        return tuple(ids)


def forced_size(cell: Cell) -> int | None:
    """The cache size that a cell forces; it is never given twice."""
    at = [n + 1 for n, flag in enumerate(cell.flags) if flag == CACHE]
    assert len(at) < 2
    return int(cell.flags[at[0]]) if at else None


def home(cell: Cell) -> str:
    """The variant whose place a cell runs in: that of a home baseline is another one's."""
    _, found, name = cell.variant.rpartition("-home-")
    return name.rstrip("pc") if found else cell.of


Play = Callable[[Cell, int], Run]


def play(
    asked: Manifest,
    play: World | Play,
    *,
    begun: Record | None = None,
    most: int = LONGEST,
    sized: bool = True,
) -> tuple[Record, list[Cell]]:
    """Run a matrix to its end; the record, and every cell in the order of its launch."""
    launch = play.run if isinstance(play, World) else play
    made = begun or Record(manifest=asked)
    cells: list[Cell] = []
    while (cell := next_cell(made, engine(sized=sized))) is not None:
        assert len(cells) < most, "the matrix does not end"
        cells.append(cell)
        count = len(made.runs) + len(made.warmup) + len(made.rechecks)
        made = add(made, launch(cell, count))
    why = wedged(made)
    ending = Ending.COMPLETE if why is None else Ending.WEDGED
    return replace(made, ending=ending, ending_reason=why), cells


def asked(count: int = 2, **changed: Any) -> Manifest:
    """A plan of so many variants beside the baseline."""
    return manifest(*(str(n) for n in range(1, count + 1)), **changed)


def variant(name: str, *flags: str, **changed: Any) -> Variant:
    """A variant of a matrix file."""
    return replace(planned(name).variant, flags=flags or ("--place", name), **changed)


def keys(cells: Sequence[Cell]) -> list[str]:
    """Ids and repeats of cells: ``1f-2``."""
    return [f"{cell.variant}-{cell.repeat}" for cell in cells]


def extra(cells: Sequence[Cell]) -> list[str]:
    """What was launched beside the rounds."""
    return keys([cell for cell in cells if cell.purpose is not Purpose.ROUND])


def launch_of(bad: dict[tuple[Purpose, str], RunState], world: World | None = None) -> Play:
    """A rig in which runs of one purpose and id come to some state."""

    def launch(cell: Cell, count: int) -> Run:
        state = bad.get((cell.purpose, cell.variant))
        there = {} if state is None else {(cell.variant, cell.repeat): state}
        return replace(world or World(), bad=there).run(cell, count)

    return launch
