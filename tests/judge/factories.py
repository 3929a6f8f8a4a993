"""Records by hand, a line a variant: ``judged("0: A A", "1: B@5011 B@5011", "1f: A A")``.

A line is an id and its runs by repeat. A word is one run:

- ``A`` a stream; ``A17`` the same with another token at 17; ``A<40`` its first 40 tokens
- ``@5011`` its expert slots (4400 if not given), ``@?`` a residency that no line tells
- ``~other`` the main model on device 1, which is a card of that kind
- ``!CRASHED`` its state; such a run has no stream unless one is named
- ``-`` no record of it
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from hetero_test.judge.judge import judge
from hetero_test.values.reading import Place, Residency, Speculation
from hetero_test.values.record import (
    Ending,
    EngineFacts,
    Limits,
    Manifest,
    MatrixFacts,
    Pinned,
    Record,
    Rig,
)
from hetero_test.values.run import Effect, Probe, Purpose, Run, RunState
from hetero_test.values.variant import PlannedVariant, Variant
from hetero_test.values.verdict import Judgment, Kind, Verdict
from tests.runs import altered, beside
from tests.runs import made as run_of

LENGTH = 60
CARD = "GTX 1080 Ti"
RECIPE = Pinned(flags=("--adapt-every", "0"), env=(("STRATA_IQ_MT_MIN", "1"),))
ON_DEVICE = (("CUDA_VISIBLE_DEVICES", "{device}"),)
DRAFTS = Speculation(rounds=22, window=6, accepted=38, offered=62, tokens_per_round=2.73)

WORD = re.compile(
    r"(?P<stream>[A-Z]\w*)?(?:<(?P<cut>\d+))?(?:@(?P<slots>\d+|\?))?(?:~(?P<kind>\w+))?"
    r"(?:!(?P<state>[A-Z_]+))?"
)


@lru_cache(maxsize=4096)
def stream(name: str, length: int = LENGTH) -> tuple[int, ...]:
    """The stream of a name: ``A`` is 60 ids, ``A17`` has another one at index 17."""
    letters = name.rstrip("0123456789")
    draw = random.Random(letters)
    ids = [draw.randrange(151936) for _ in range(length)]
    if name != letters:
        ids[int(name.removeprefix(letters))] += 1
    return tuple(ids)


def residency(slots: int | str = 4400, kind: str = CARD) -> Residency:
    """So many expert slots on a card of a kind; ``?`` for a log that does not tell."""
    if slots == "?":
        return Residency(unknown="no line tells the final size")
    return Residency(
        facts=(("slots", int(slots)),), main_kind=f"cuda {kind}", label=f"{slots} slots on {kind}"
    )


def run(variant: str, repeat: int = 1, word: str = "A", **changed: Any) -> Run:
    """One run in a word; whatever the word cannot say is given by name."""
    found = WORD.fullmatch(word)
    assert found is not None, word
    state = RunState(found["state"] or "OK")
    ids = None
    if found["stream"] is not None:
        ids = stream(found["stream"])[: int(found["cut"] or LENGTH)]
    base, extra = variant[:1], variant[1:]
    place = residency(found["slots"] or 4400, found["kind"] or CARD)
    values: dict[str, Any] = {
        "variant": variant,
        "of": base,
        "probe": "default",
        "repeat": repeat,
        "order": repeat - 1,
        "purpose": purpose_of(extra),
        "state": state,
        "reason": None if state is RunState.OK else f"it was {state.lower()}",
        "stream": ids,
        "residency": place if ids is not None else Residency(unknown="it did not come that far"),
        "main": Place(device="0" if found["kind"] is None else "1"),
        "places": {"main": base},
        "effect": None if base == "0" else Effect.PROVEN,
    }
    return run_of(**(values | changed))


def purpose_of(extra: str) -> Purpose:
    """Why extra runs are made, from how their ids end."""
    if extra.endswith(("p", "c")):
        return Purpose.RECHECK
    if extra.startswith("-home"):
        return Purpose.HOME
    names = {"": Purpose.ROUND, "f": Purpose.ANCHOR, "w": Purpose.AFTER_HANG}
    return names.get(extra, Purpose.SHARED)


def runs_of(line: str, **changed: Any) -> list[Run]:
    """The runs of one line."""
    name, _, words = line.partition(":")
    return [
        run(name, repeat, word, **changed)
        for repeat, word in enumerate(words.split(), 1)
        if word != "-"
    ]


def planned(
    name: str, *effect: tuple[str, str], claims: bool = True, **changed: Any
) -> PlannedVariant:
    """A variant that can run here, unless it is said otherwise."""
    flags = () if name == "0" else ("--place", name)
    variant = Variant(id=name, name=f"placement {name}", flags=flags, effect=effect, claims=claims)
    values: dict[str, Any] = {"variant": variant, "planned": True}
    return PlannedVariant(**(values | changed))


def manifest(*names: str, **changed: Any) -> Manifest:
    """A plan with the baseline and some variants."""
    values: dict[str, Any] = {
        "harness": "0.1.0",
        "argv": ("hetero-test",),
        "started": "2026-11-29T12:00:00Z",
        "engine": EngineFacts(
            name="strata",
            path="/build/strata",
            sha256="ab" * 32,
            size_bytes=1,
            version=None,
            build_dir="/build",
        ),
        "matrix": MatrixFacts(name="strata", path="strata.toml", sha256="cd" * 32),
        "model_flags": ("--pack", "p"),
        "model": (),
        "env": (),
        "rig": Rig(device_count=2),
        "probes": (probe("default"),),
        "variants": tuple(planned(name) for name in ("0", *names)),
        "repeats": 2,
        "warmup": 0,
        "limits": Limits(run_s=1, idle_s=1),
        "pinned": RECIPE,
        "on_device": ON_DEVICE,
    }
    return Manifest(**(values | changed))


def probe(name: str) -> Probe:
    """A prompt."""
    return Probe(name=name, ids=(1, 2, 3), max_new=LENGTH)


def record(*lines: str, **changed: Any) -> Record:
    """A complete matrix of these lines; keywords change the manifest, and how it ended.

    Repeats are as many as the longest line has words; ``warm`` are lines of warm-up runs.
    """
    ending = changed.pop("ending", Ending.COMPLETE)
    warm = [each for line in changed.pop("warm", ()) for each in runs_of(line)]
    why = changed.pop("ending_reason", None)
    found = [each for line in lines for each in runs_of(line)]
    names = dict.fromkeys(each.variant for each in found if each.purpose is Purpose.ROUND)
    missing = dict.fromkeys(line.partition(":")[0] for line in lines if len(line.split(":")[0]) < 2)
    changed.setdefault("repeats", max(len(line.split()) - 1 for line in lines))
    asked = manifest(*(name for name in {**names, **missing} if name != "0"), **changed)
    extra = [each for each in found if each.purpose in {Purpose.RECHECK, Purpose.AFTER_HANG}]
    mine = [each for each in found if each not in extra]
    return in_planned_order(
        Record(
            manifest=asked,
            runs=tuple(mine),
            warmup=tuple(altered(each, purpose=Purpose.WARMUP) for each in warm),
            rechecks=tuple(extra),
            ending=ending,
            ending_reason=why,
        )
    )


def in_planned_order(made: Record) -> Record:
    """Order numbers as the plan gives them: round by round, extra runs behind."""
    width = len(made.manifest.variants)
    ids = [entry.variant.id for entry in made.manifest.variants]

    def order(place: int, each: Run) -> int:
        if each.purpose is not Purpose.ROUND or each.variant not in ids:
            return 1000 + place
        at = ids.index(each.variant)
        return (each.repeat - 1) * width + (at if each.repeat % 2 else width - 1 - at)

    return replace(
        made,
        runs=tuple(altered(each, order=order(n, each)) for n, each in enumerate(made.runs)),
        rechecks=tuple(altered(each, order=2000 + n) for n, each in enumerate(made.rechecks)),
    )


def judged(*lines: str, **changed: Any) -> Judgment:
    """What the judge makes of a record by hand."""
    return judge(record(*lines, **changed))


def two_prompts(first: Record, second: Record) -> Record:
    """One record of two: the runs of the second are of a prompt called ``long``."""
    asked = replace(first.manifest, probes=(probe("default"), probe("long")))
    long = [
        tuple(altered(r, probe="long") for r in runs) for runs in (second.runs, second.rechecks)
    ]
    return replace(
        first,
        manifest=asked,
        runs=(*first.runs, *long[0]),
        rechecks=(*first.rechecks, *long[1]),
    )


def changed(made: Record, variant: str, repeat: int | None = None, /, **values: Any) -> Record:
    """The record with the runs under one id changed: all repeats, or one of them."""

    def apply(runs: Sequence[Run]) -> tuple[Run, ...]:
        return tuple(
            altered(each, **values)
            if each.variant == variant and repeat in (None, each.repeat)
            else each
            for each in runs
        )

    return replace(
        made, runs=apply(made.runs), rechecks=apply(made.rechecks), warmup=apply(made.warmup)
    )


def context(made: Record, variant: str, repeat: int | None = None, /, **values: Any) -> Record:
    """The record with something known beside the residency of the runs under one id."""

    def apply(runs: Sequence[Run]) -> tuple[Run, ...]:
        return tuple(
            beside(each, **values)
            if each.variant == variant and repeat in (None, each.repeat)
            else each
            for each in runs
        )

    return replace(made, runs=apply(made.runs), rechecks=apply(made.rechecks))


def of(judgment: Judgment, kind: Kind, variant: str) -> list[Verdict]:
    """The verdicts of one kind on one id, in their order."""
    return [v for v in judgment.verdicts if v.kind is kind and v.variant == variant]


def first_exact(made: Judgment, variant: str) -> Verdict:
    """The first exact verdict on a variant."""
    return of(made, Kind.EXACT, variant)[0]


def results(judgment: Judgment, kind: Kind, variant: str) -> list[str]:
    """Their results in words: ``["PASS", "FAIL"]``."""
    return [verdict.result.value for verdict in of(judgment, kind, variant)]


def only(judgment: Judgment, kind: Kind, variant: str) -> Verdict:
    """The only verdict of a kind on an id."""
    (verdict,) = of(judgment, kind, variant)
    return verdict


def two_cards(second: str = "baseline") -> Record:
    """The two-card rig of seven variants; its second shares the baseline's residency or 1's."""
    two = "2: A A" if second == "baseline" else "2: B@5011 B@5011"
    others = (f"{n}: B@5011 B@5011" for n in "3456")
    made = record("0: A A", "1: B@5011 B@5011", two, *others, "1f: A A")
    few = planned("7", planned=False, why_not="needs 1 device, 2 found", few_devices=True)
    asked = replace(made.manifest, variants=(*made.manifest.variants, few))
    made = replace(made, manifest=asked)
    for name in "345":
        made = changed(made, name, effect=Effect.UNOBSERVABLE)
    return made
