"""Rules that hold for every matrix, on every rig, however it was spoilt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from hetero_test.judge.judge import judge
from hetero_test.values.reading import Residency
from hetero_test.values.record import Ending, Record
from hetero_test.values.run import (
    Effect,
    Purpose,
    Run,
    RunState,
)
from hetero_test.values.verdict import Conclusion, Judgment, Kind, Result
from tests.judge.factories import changed, stream
from tests.judge.rig import World, asked, play
from tests.judge.strategies import EDITS, EITHER, NEVER, PLANS, SOUND
from tests.runs import altered

PASS, FAIL = Conclusion.PASS, Conclusion.FAIL
slow = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


# ---- the oracle: what a PASS needs, from the raw runs alone -------------------------------


def good(run: Run) -> bool:
    """OK, with tokens, at a known residency."""
    return run.state is RunState.OK and bool(run.stream) and run.residency.unknown is None


def tells(run: Run) -> bool:
    """A good run whose stream is long enough to be evidence."""
    return good(run) and len(run.stream or ()) > 3


def place(run: Run) -> Any:
    """What has to be equal for two runs to be comparable."""
    return (run.probe, run.residency.main_kind, run.residency.facts)


def rounds(record: Record) -> list[Run]:
    names = {entry.variant.id for entry in record.manifest.variants if entry.planned}
    return [run for run in record.runs if run.purpose is Purpose.ROUND and run.variant in names]


def claimed(record: Record) -> set[str]:
    return {entry.variant.id for entry in record.manifest.variants if entry.variant.claims}


def missing_for_a_pass(record: Record) -> list[str]:
    """Every reason that the raw runs give against a PASS."""
    base = record.manifest.variants[0].variant.id
    mine = [run for run in rounds(record) if run.variant in claimed(record)]
    found = []
    if record.ending is not Ending.COMPLETE:
        found.append("it is not complete")
    streams: dict[Any, set[Any]] = {}
    for run in mine:
        if good(run):
            streams.setdefault(place(run), set()).add(run.stream)
    if any(len(of_one) > 1 for of_one in streams.values()):
        found.append("two runs of one residency differ")
    found += [f"runs of {name} at one residency differ" for name in differing(record)]
    for entry in record.manifest.variants:
        for probe in record.manifest.probes:
            found += unsteady(record, entry.variant.id, probe.name)
    for runs in groups_of(mine):
        if untied(record, runs):
            found.append(f"nothing ties the runs like {runs[0].key} to the baseline")
    effects: dict[str, set[Effect | None]] = {}
    for run in mine:
        if run.state is RunState.OK:
            effects.setdefault(run.variant, set()).add(run.effect)
    still = {Effect.CONTRADICTED, Effect.NOT_SEEN}
    moved = {n for n, seen in effects.items() if n != base and not seen & still and seen != {None}}
    if not any(run.of in moved and tells(run) and has_equal(record, run) for run in record.runs):
        found.append("no placement that moved was equal to another one's run")
    return found


def of_command(record: Record) -> list[Run]:
    """Good runs that must repeat each other, with those that were made beside the rounds."""
    ids = {entry.variant.id for entry in record.manifest.variants}
    beside = [run for run in record.runs if run.purpose is not Purpose.ROUND]
    made = [
        *rounds(record),
        *(run for run in beside if run.variant not in ids),
        *(run for run in record.warmup if run.purpose is Purpose.WARMUP),
        *(run for run in record.rechecks if run.purpose is Purpose.AFTER_HANG),
    ]
    planned = {entry.variant.id for entry in record.manifest.variants if entry.planned}
    return [run for run in made if good(run) and run.of in planned]


def differing(record: Record) -> list[str]:
    """Variants that gave two streams at one residency on one list of devices, in any runs."""
    streams: dict[Any, set[Any]] = {}
    for run in of_command(record):
        streams.setdefault((run.of, place(run), run.reading.devices), set()).add(run.stream)
    return [key[0] for key, seen in streams.items() if len(seen) > 1]


def groups_of(mine: Sequence[Run]) -> list[list[Run]]:
    """Good runs by what makes them comparable."""
    found: dict[Any, list[Run]] = {}
    for run in mine:
        if good(run):
            found.setdefault(place(run), []).append(run)
    return list(found.values())


def untied(record: Record, runs: Sequence[Run]) -> bool:
    """Whether neither the baseline nor an extra run speaks for a group that claims anything."""
    ids = [entry.variant.id for entry in record.manifest.variants]
    probe = runs[0].probe
    base = [r for r in record.runs if r.of == ids[0] and r.probe == probe and good(r)]
    if any(run.of == ids[0] for run in runs):
        return False
    first = min(runs, key=lambda run: (ids.index(run.variant), run.repeat))
    own = [run for run in base if run.purpose is Purpose.ROUND and run.variant == ids[0]]
    devices = {None, *(run.reading.main.device for run in own)}
    if first.residency.main_kind in {run.residency.main_kind for run in own}:
        ties = [r for r in record.runs if r.of == first.of and r.purpose is not Purpose.ROUND]
    elif record.manifest.on_device and first.reading.main.device not in devices:
        ties = list(runs)
    else:
        return False  # another kind of device, where no log shows a move: not claimed
    pairs = [(tie, one) for tie in ties for one in base if tells(tie)]
    return not any(place(tie) == place(one) and tie.stream == one.stream for tie, one in pairs)


def unsteady(record: Record, name: str, probe: str) -> list[str]:
    """What is wrong with the repeats of one planned variant."""
    runs = {run.repeat: run for run in rounds(record) if (run.variant, run.probe) == (name, probe)}
    asked_for = range(1, record.manifest.repeats + 1)
    states = [runs[repeat].state if repeat in runs else None for repeat in asked_for]
    is_baseline = name == record.manifest.variants[0].variant.id
    if not is_baseline and states[0] in NEVER and {*states} <= {*NEVER, None}:
        return []
    if not all(repeat in runs and good(runs[repeat]) for repeat in asked_for):
        return [f"not every run of {name} is good"]
    if len({place(run) for run in runs.values()}) > 1:
        return [f"the repeats of {name} had several residencies"]
    return []


def has_equal(record: Record, run: Run) -> bool:
    """Whether another variant's run, or the baseline's, had its stream in its residency."""
    return any(
        good(other)
        and place(other) == place(run)
        and other.stream == run.stream
        and other.of != run.of
        for other in record.runs
    )


@slow
@given(record=EITHER)
def test_a_pass_is_earned(record: Record) -> None:
    """PASS only if a placement was really compared equal, and no compared pair differed."""
    judgment = judge(record)
    event(judgment.conclusion)
    if judgment.conclusion is PASS:
        assert missing_for_a_pass(record) == []


@slow
@given(record=EITHER)
def test_a_pass_has_no_other_verdict_than_its_rules_allow(record: Record) -> None:
    """No FAIL and nothing open beside a PASS; every passed comparison is one of two good runs."""
    assume(recorded_once(record))
    judgment = judge(record)
    if judgment.conclusion is PASS:
        assert judgment.count(Result.FAIL) == judgment.count(Result.INCONCLUSIVE) == 0
    for verdict in judgment.verdicts:
        if verdict.result is Result.PASS and verdict.kind is not Kind.REPEAT:
            mine = run_of(record, verdict.variant, verdict.probe, verdict.repeat)
            assert verdict.against is not None
            reference = run_of(record, verdict.against[0], verdict.probe, verdict.against[1])
            assert good(mine)
            assert good(reference)
            assert mine.stream == reference.stream
            assert place(mine) == place(reference)
            assert mine.variant != reference.variant


@slow
@given(record=EITHER)
def test_a_fail_has_been_seen(record: Record) -> None:
    """FAIL only of two streams that differ at one known residency, or of a wrong output there."""
    assume(recorded_once(record))
    for verdict in judge(record).verdicts:
        if verdict.result is not Result.FAIL:
            continue
        if verdict.kind is Kind.REPEAT:
            command = (verdict.variant, verdict.probe)
            own = [run for run in record.runs if run.key[:2] == command and good(run)]
            beside = [r for r in of_command(record) if (r.of, r.probe) == command]
            mine = [*own, *beside]
            streams = {(place(run), run.stream) for run in mine}
            assert len(streams) > len({where for where, _ in streams})
        else:
            one = run_of(record, verdict.variant, verdict.probe, verdict.repeat)
            assert verdict.against is not None
            reference = run_of(record, verdict.against[0], verdict.probe, verdict.against[1])
            assert good(reference)
            assert one.residency.unknown is None
            assert place(one) == place(reference)
            wrong = one.state in {RunState.TRUNCATED, RunState.DEGENERATE}
            assert wrong or (good(one) and one.stream != reference.stream)


def recorded_once(record: Record) -> bool:
    """Whether no run is stored twice: a verdict then says which one it is of."""
    return max(Counter(run.key for run in record.runs).values(), default=1) == 1


def run_of(record: Record, variant: str, probe: str, repeat: int | None) -> Run:
    (found,) = (run for run in record.runs if run.key == (variant, probe, repeat))
    return found


@slow
@given(record=EITHER, data=st.data())
def test_a_further_run_that_differs_never_leaves_a_pass(
    record: Record, data: st.DataObject
) -> None:
    """A warm-up, a run after a hang or an extra run with another stream ends every PASS."""
    base = record.manifest.variants[0].variant.id
    mine = [run for run in rounds(record) if good(run) and run.variant == base]
    assume(mine)
    model = data.draw(st.sampled_from(mine))
    purpose, name = data.draw(
        st.sampled_from(
            [
                (Purpose.WARMUP, base),
                (Purpose.AFTER_HANG, f"{base}w"),
                (Purpose.SHARED, f"{base}s"),
                (Purpose.HOME, f"{base}-home-4"),
            ]
        )
    )
    more = altered(
        model, purpose=purpose, variant=name, repeat=9, order=10**6, stream=stream("OTHER")
    )
    where = {Purpose.WARMUP: "warmup", Purpose.AFTER_HANG: "rechecks"}.get(purpose, "runs")
    held: dict[str, Any] = {where: (*getattr(record, where), more)}

    assert judge(replace(record, **held)).conclusion is not PASS


@slow
@given(plan=PLANS, world=SOUND, repeats=st.integers(1, 4))
def test_more_care_never_gives_a_better_verdict(plan: Any, world: World, repeats: int) -> None:
    """A first launch that differs is no PASS, be it a repeat or a warm-up."""
    launches = iter(range(10**6))

    def first_differs(cell: Any, count: int) -> Run:
        made = world.run(cell, count)
        return altered(made, stream=stream("OTHER")) if next(launches) == 0 else made

    careful, _ = play(replace(plan, repeats=repeats, warmup=1), first_differs)
    judgment = judge(careful)

    first, *others = [r for r in (*careful.warmup, *careful.runs) if r.of == "0"]
    assume(any(good(run) and place(run) == place(first) for run in others))
    assert judgment.conclusion is not PASS


# ---- sound rigs, and rigs with one fault --------------------------------------------------


@slow
@given(plan=PLANS, world=SOUND)
def test_on_a_sound_rig_nothing_fails_and_nothing_stays_open(plan: Any, world: World) -> None:
    """Streams that only the residency decides: every claim is compared, none differs."""
    made, _ = play(plan, world)
    judgment = judge(made)
    event(judgment.conclusion)

    assert judgment.count(Result.FAIL) == judgment.count(Result.INCONCLUSIVE) == 0
    passed = {v.kind for v in judgment.verdicts if v.result is Result.PASS}
    assert (judgment.conclusion is PASS) == bool({Kind.EXACT, Kind.ANCHOR} & passed)


@slow
@given(plan=PLANS, world=SOUND, at=st.integers(0, 59), name=st.sampled_from("1234"))
def test_one_wrong_token_of_a_claimed_placement_is_found(
    plan: Any, world: World, at: int, name: str
) -> None:
    """At its own residency or at the baseline's, at home or by an anchor: FAIL, at that token."""
    claims = {entry.variant.id for entry in plan.variants if entry.variant.claims}
    assume(name in claims)
    made, _ = play(plan, replace(world, wrong={name: at}))
    judgment = judge(made)
    kinds = {run.residency.main_kind for run in made.runs if run.variant in {name, "0"}}
    assume(len(kinds) == 1 or plan.on_device)

    assert judgment.conclusion is FAIL
    fails = [v for v in judgment.verdicts if v.result is Result.FAIL]
    assert {v.difference and v.difference.index for v in fails} == {at}


# ---- order, names, crashes ----------------------------------------------------------------


@slow
@given(record=EITHER, data=st.data())
def test_no_order_of_runs_changes_anything(record: Record, data: st.DataObject) -> None:
    """The same runs stored in another order are the same judgment, to the word."""
    keys = Counter((run.order, run.key) for run in (*record.runs, *record.rechecks))
    assume(not keys or max(keys.values()) == 1)
    shuffled = replace(
        record,
        runs=tuple(data.draw(st.permutations(record.runs))),
        rechecks=tuple(data.draw(st.permutations(record.rechecks))),
    )

    assert judge(shuffled) == judge(record)


@slow
@given(record=EITHER, data=st.data())
def test_a_run_that_crashes_instead_never_makes_a_pass(record: Record, data: st.DataObject) -> None:
    """Whatever a run was: when it crashes the matrix does not become a PASS."""
    before = judge(record).conclusion
    after = judge(spoilt(record, data, state=RunState.CRASHED, reason="it crashed", stream=None))

    assert before is PASS or after.conclusion is not PASS


@slow
@given(record=EITHER, data=st.data())
def test_a_run_whose_residency_is_unknown_instead_never_makes_a_pass(
    record: Record, data: st.DataObject
) -> None:
    """What is not known proves nothing."""
    before = judge(record).conclusion
    after = judge(spoilt(record, data, residency=Residency(unknown="no line tells")))

    assert before is PASS or after.conclusion is not PASS


@slow
@given(record=EITHER, data=st.data())
def test_a_further_run_that_crashed_never_makes_a_pass(record: Record, data: st.DataObject) -> None:
    """Added under any id, for any purpose."""
    model = data.draw(st.sampled_from(record.runs or record.rechecks))
    more = altered(
        model,
        variant=data.draw(st.sampled_from(["0", "1", "2", "1f", "0s", "1s", "0-home-2", "other"])),
        repeat=data.draw(st.integers(1, 5)),
        purpose=data.draw(st.sampled_from(list(Purpose))),
        order=10**6,
        state=RunState.CRASHED,
        reason="it crashed",
        stream=None,
        residency=Residency(unknown="it crashed"),
    )
    before = judge(record).conclusion
    after = judge(replace(record, runs=(*record.runs, more)))

    assert before is PASS or after.conclusion is not PASS


def spoilt(record: Record, data: st.DataObject, **values: Any) -> Record:
    """The record with one run changed."""
    name = data.draw(st.sampled_from([n for n in ("runs", "rechecks") if getattr(record, n)]))
    runs = list(getattr(record, name))
    at = data.draw(st.integers(0, len(runs) - 1))
    runs[at] = altered(runs[at], **values)
    new: dict[str, Any] = {name: tuple(runs)}
    return replace(record, **new)


@slow
@given(record=EITHER)
def test_other_names_are_the_same_judgment(record: Record) -> None:
    """Ids are names: with others the same verdicts come of the same runs."""
    before, after = judge(record), judge(renamed(record))

    assert after.conclusion is before.conclusion
    assert shape(after) == shape(before, rename)
    assert [c.runs for c in after.clusters] == [
        tuple((rename(name), probe, repeat) for name, probe, repeat in c.runs)
        for c in before.clusters
    ]


def rename(name: str) -> str:
    """Another id: letters in place of digits."""
    return name.translate(str.maketrans("01234", "vwxyz"))


def renamed(record: Record) -> Record:
    def apply(runs: Sequence[Run]) -> tuple[Run, ...]:
        return tuple(altered(run, variant=rename(run.variant), of=rename(run.of)) for run in runs)

    entries = tuple(
        replace(entry, variant=replace(entry.variant, id=rename(entry.variant.id)))
        for entry in record.manifest.variants
    )
    return replace(
        record,
        manifest=replace(record.manifest, variants=entries),
        runs=apply(record.runs),
        rechecks=apply(record.rechecks),
        warmup=apply(record.warmup),
    )


def shape(judgment: Judgment, name: Any = str) -> list[Any]:
    """Verdicts without their words."""
    return [
        (
            v.kind,
            name(v.variant),
            v.probe,
            v.repeat,
            v.result,
            None if v.against is None else (name(v.against[0]), v.against[1]),
            v.difference,
            v.recheck,
        )
        for v in judgment.verdicts
    ]


@slow
@given(record=EITHER, more=st.lists(EDITS, max_size=3), data=st.data())
def test_no_record_makes_the_judge_stumble(
    record: Record, more: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Any record that can be stored can be judged, while it runs and after."""
    for change in more:
        if record.runs:
            record = spoilt(record, data, **change)
    count = data.draw(st.integers(0, len(record.runs)))
    record = replace(record, runs=record.runs[:count])
    judgment = judge(record)

    assert judgment.headline.startswith(f"{judgment.conclusion} — ")
    assert judgment.reason
    assert len(judgment.summaries) == len(record.manifest.variants)


def test_the_oracle_itself_can_tell() -> None:
    """It finds nothing against a sound matrix, and something against each spoilt one."""
    made, _ = play(asked(2), World(auto={"1": (5011,), "2": (5011,)}))

    assert judge(made).conclusion is PASS
    assert missing_for_a_pass(made) == []
    for values in (
        {"state": RunState.CRASHED},
        {"stream": stream("Q")},
        {"residency": Residency(unknown="?")},
    ):
        assert missing_for_a_pass(changed(made, "2", 1, **values)) != []
    still = changed(changed(made, "1", effect=Effect.NOT_SEEN), "2", effect=Effect.NOT_SEEN)
    assert missing_for_a_pass(still) != []
    assert missing_for_a_pass(replace(made, ending=Ending.INTERRUPTED)) != []
    assert missing_for_a_pass(replace(made, runs=made.runs[1:])) != []
