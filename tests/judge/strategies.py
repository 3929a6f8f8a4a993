"""Random matrices: played on random rigs, and then spoilt at random.

Strategies are made once: making them costs more than drawing from them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from hetero_test.values.reading import Residency
from hetero_test.values.record import Ending, Manifest, Pinned, Record
from hetero_test.values.run import Effect, Probe, Purpose, Run, RunState
from hetero_test.values.variant import PlannedVariant
from tests.judge.factories import ON_DEVICE, RECIPE, planned, probe, residency, stream
from tests.judge.rig import World, asked, play
from tests.runs import PLAIN, altered, beside

NAMES = "01234"
NEVER = (RunState.REFUSED, RunState.NO_MEMORY)
BAD = [state for state in RunState if state is not RunState.OK]
PROMPTS = [(probe("a"),), (probe("a"),), (probe("a"), probe("b"))]


def _plan(
    claims: list[bool],
    repeats: int,
    probes: tuple[Probe, ...],
    pinned: Pinned,
    on_device: tuple[tuple[str, str], ...],
    strict: bool,
) -> Manifest:
    entries: list[PlannedVariant] = [
        planned(str(n), claims=claim) for n, claim in enumerate(claims, 1)
    ]
    return asked(
        variants=(planned("0"), *entries),
        repeats=repeats,
        probes=probes,
        pinned=pinned,
        on_device=on_device,
        strict=strict,
    )


PLANS = st.builds(
    _plan,
    st.lists(st.sampled_from([True, True, True, False]), min_size=1, max_size=4),
    st.sampled_from([1, 2, 2, 3, 4]),
    st.sampled_from(PROMPTS),
    st.sampled_from([RECIPE, RECIPE, Pinned(), replace(RECIPE, asked=True)]),
    st.sampled_from([ON_DEVICE, ON_DEVICE, ()]),
    st.sampled_from([False, False, True]),
)
"""Up to four variants, some of them not claimed, with up to four repeats."""

_SIZE = st.sampled_from([(4400,), (4400,), (5011,), (4800,)])
_SIZES = st.fixed_dictionaries(dict.fromkeys(NAMES, _SIZE))
_MOVING = st.fixed_dictionaries(
    dict.fromkeys(NAMES, st.sampled_from([(4400,), (4400,), (5011,), (5011, 4400), (4800,)]))
)
_KINDS = st.dictionaries(st.sampled_from("234"), st.just("RTX"), max_size=2)
_BUDGET = st.sampled_from([None, None, 1.25])
_ID = st.sampled_from(NAMES)
_EXTRA = st.sampled_from(["0", "1", "2", "1f", "2f", "0s", "1s", "0w", "0-home-2", "1p", "1c"])

SOUND = st.builds(World, auto=_SIZES, kind=_KINDS, budget=_BUDGET)
"""Rigs that run everything well and give each residency one stream."""
WORLDS = st.builds(
    World,
    auto=_MOVING,
    kind=_KINDS,
    budget=_BUDGET,
    bad=st.dictionaries(
        st.tuples(_EXTRA, st.sampled_from([1, 1, 2])), st.sampled_from(BAD), max_size=2
    ),
    wrong=st.dictionaries(_ID, st.integers(0, 59), max_size=1),
    noise=st.frozensets(_ID, max_size=1),
    unknown=st.frozensets(_ID, max_size=1),
    most=st.dictionaries(_ID, st.sampled_from([2000, 4000, 4400]), max_size=2),
    refuses_size=st.booleans(),
)
"""Rigs of every sort."""


def _beside(
    swaps: int | None, share: float | None, kind: str | None, device: str | None
) -> dict[str, Any]:
    told = beside(PLAIN, swaps=swaps, pcie_share=share, draft_kind=kind, main_device=device).reading
    return {"movers": told.movers, "draft": told.draft, "main": told.main}


_STATES = st.sampled_from(BAD)
EDITS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.sampled_from([stream("A"), stream("A9"), (), (7,), (7, 8, 9)]).map(
        lambda ids: {"stream": ids}
    ),
    _STATES.map(lambda state: {"state": state, "reason": f"it was {state}", "stream": None}),
    _STATES.map(lambda state: {"state": state}),
    st.builds(
        lambda slots, kind: {"residency": residency(slots, kind)},
        st.sampled_from([4400, 5011, "?"]),
        st.sampled_from(["GTX 1080 Ti", "RTX"]),
    ),
    st.just({"residency": Residency(unknown="no line tells")}),
    st.builds(
        _beside,
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, 0.5]),
        st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, "0", "1"]),
    ),
    st.sampled_from([None, *Effect]).map(lambda effect: {"effect": effect}),
    st.just({"devices": ("0: other",)}),
)
"""One thing that may be otherwise in a run."""

_PLACE = st.integers(0, 10**6)
_WHAT = st.sampled_from(["change", "change", "change", "lose", "add"])
_PURPOSE = st.sampled_from(list(Purpose))
_MORE = st.sampled_from(["1f", "0s", "1s", "0-home-2", "0p", "1p", "0c", "other", "1"])
_SPOILT = st.lists(st.tuples(_PLACE, _WHAT, EDITS, _MORE, _PURPOSE), max_size=4)
_ENDINGS = st.sampled_from([*[Ending.COMPLETE] * 6, Ending.INTERRUPTED, Ending.RUNNING])


def _record(
    plan: Manifest,
    world: World,
    spoilt: list[tuple[int, str, dict[str, Any], str, Purpose]],
    ending: Ending,
) -> Record:
    made, _ = play(plan, world)
    assume(made.runs)  # there are none where the baseline did not start in a warm-up
    for turn, (place, what, edit, more, purpose) in enumerate(spoilt):
        every = [("runs", n) for n in range(len(made.runs))]
        every += [("rechecks", n) for n in range(len(made.rechecks))]
        name, at = every[place % len(every)]
        runs: list[Run] = list(getattr(made, name))
        if what == "lose" and len(runs) > 1:
            del runs[at]
        elif what == "add":
            new = altered(runs[at], variant=more, purpose=purpose, order=10**6 + turn)
            runs.append(new)
        else:
            runs[at] = altered(runs[at], **edit)
        values: dict[str, Any] = {name: tuple(runs)}
        made = replace(made, **values)
    return made if ending is Ending.COMPLETE else replace(made, ending=ending)


RECORDS = st.builds(_record, PLANS, WORLDS, _SPOILT, _ENDINGS)
"""A matrix on some rig, with up to four of its runs changed, lost or added."""
EVEN_RECORDS = st.builds(_record, PLANS, SOUND, _SPOILT, _ENDINGS)
"""The same on a sound rig, which more often comes to a PASS."""
EITHER = st.one_of(RECORDS, EVEN_RECORDS)
