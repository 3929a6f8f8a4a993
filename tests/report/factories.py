"""Records made by hand, small and large, honest and hostile."""

from __future__ import annotations

import random
from dataclasses import replace

from hetero_test.values.reading import Residency, Speculation, Timings
from hetero_test.values.record import (
    Ending,
    EngineFacts,
    Limits,
    Manifest,
    MatrixFacts,
    ModelFile,
    Record,
    Rig,
)
from hetero_test.values.run import Device, Effect, EffectPart, Probe, Purpose, Run, RunState
from hetero_test.values.variant import PlannedVariant, Variant
from tests.runs import altered, made

CARD = "NVIDIA GeForce GTX 1080 Ti"
BASE_FLAGS = ("--pack", "/home/alice/models/pack", "--spec", "4", "--mtp", "/home/alice/models/mtp")
NAMES = (
    ("0", "the user's own command", ()),
    ("1", "main 0, draft 1", ("--main-device", "0", "--draft-device", "1")),
    ("2", "main 1, draft 0", ("--main-device", "1", "--draft-device", "0")),
    ("3", "main 0, draft 1, parallel prefill", ("--main-device", "0", "--draft-prefill-parallel")),
    ("4", "main 0, draft 1, batched chain", ("--main-device", "0", "--draft-chain-batch")),
    ("6", "roles picked by the engine", ("--auto-roles",)),
)


def stream(seed: int, length: int = 60) -> tuple[int, ...]:
    """Ids that do not repeat themselves."""
    draw = random.Random(seed)
    return tuple(draw.randrange(151936) for _ in range(length))


def slots(count: int) -> Residency:
    """So many slots on the one card."""
    return Residency(
        facts=(("slots CUDA0", count),), main_kind=f"cuda {CARD}", label=f"{count} slots on {CARD}"
    )


def run(variant: str = "0", repeat: int = 1, **changed: object) -> Run:
    """A usable run; everything can be changed."""
    defaults: dict[str, object] = {
        "variant": variant,
        "of": variant.rstrip("fs"),
        "probe": "default",
        "repeat": repeat,
        "order": repeat - 1,
        "purpose": Purpose.ROUND,
        "state": RunState.OK,
        "exit_code": 0,
        "elapsed_s": 12.5,
        "stream": stream(1),
        "residency": slots(4400),
        "speculation": Speculation(
            rounds=22, window=6, accepted=38, offered=62, tokens_per_round=2.73
        ),
        "timings": Timings(
            decode_tok_s=7.2 + repeat / 50,
            prefill_tok_s=17.7 + repeat / 10,
            ttft_ms=6120.5,
            draft_ms_per_round=4.63,
        ),
        "major_faults": 12 * repeat,
        "blocks_read": 4096,
        "version": "0.1.40.3",
        "lines": (
            f"strata generate: role device 0: {CARD}, cc 6.1, dp4a yes, free VRAM 10897 MiB",
            "strata generate: peer access 0 -> 1: yes (reported only)",
        ),
        "tail": ("decode                   60 tokens in 8303.7 ms  ->  7.23 tok/s",),
        "argv": ("/home/alice/strata/build/strata", *BASE_FLAGS, "--max-new", "60"),
        "env": (("LC_ALL", "C"),),
    }
    return made(**{**defaults, **changed})


def planned(
    names: tuple[tuple[str, str, tuple[str, ...]], ...] = NAMES,
) -> tuple[PlannedVariant, ...]:
    """All variants planned."""
    return tuple(
        PlannedVariant(variant=Variant(id=name, name=text, flags=flags), planned=True)
        for name, text, flags in names
    )


def manifest(**changed: object) -> Manifest:
    """What the two-card rig was asked."""
    defaults: dict[str, object] = {
        "harness": "0.1.0",
        "argv": ("hetero-test", "--build-dir", "/home/alice/strata/build", "--", *BASE_FLAGS),
        "started": "2026-11-29T12:00:00Z",
        "engine": EngineFacts(
            name="strata",
            path="/home/alice/strata/build/strata",
            sha256="ab12" * 16,
            size_bytes=12_582_912,
            version=None,
            build_dir="/home/alice/strata/build",
        ),
        "matrix": MatrixFacts(name="strata", path="strata.toml", sha256="cd34" * 16),
        "model_flags": BASE_FLAGS,
        "model": (
            ModelFile(flag="--pack", path="/home/alice/models/pack"),
            ModelFile(flag="--mtp", path="/home/alice/models/mtp"),
        ),
        "env": (),
        "rig": Rig(
            devices=tuple(
                Device(id=str(n), name=CARD, kind=CARD, memory_bytes=11_811_160_064)
                for n in range(2)
            ),
            device_count=2,
            how="strata-device --list-devices",
            facts=(
                ("CPU", "Intel Xeon E5-2680 v4"),
                ("memory", "125.8 GiB"),
                ("driver", "550.54.15"),
                ("system", "Linux 6.8"),
            ),
        ),
        "probes": (
            Probe(name="default", ids=stream(7, 95), max_new=60, source="generated, seed 7"),
        ),
        "variants": planned(),
        "repeats": 2,
        "warmup": 0,
        "limits": Limits(run_s=3600, idle_s=900),
    }
    return Manifest(**{**defaults, **changed})  # type: ignore[arg-type]


def two_cards() -> Record:
    """The two-card rig: two residencies, an anchor, everything equal where it must be."""
    runs = []
    for order, (name, text, flags) in enumerate(NAMES):
        moved = name not in {"0", "2"}
        runs += [
            run(
                name,
                repeat,
                order=order + (repeat - 1) * len(NAMES),
                stream=stream(2 if moved else 1),
                residency=slots(5011 if moved else 4400),
                effect=None if name == "0" else Effect.PROVEN if moved else Effect.UNOBSERVABLE,
                effect_parts=(effect_part(Effect.PROVEN),) if moved else (),
                timings=Timings(
                    decode_tok_s=7.2 + repeat / 50 + (0.6 if name == "4" else 0),
                    prefill_tok_s=17.7 + repeat / 10,
                    ttft_ms=6120.5,
                    draft_ms_per_round=4.14 if name == "4" else 4.63,
                ),
                argv=(*run().outcome.argv, *flags),
                lines=(*run().reading.lines, f"strata generate: device roles: those of {text}"),
            )
            for repeat in (1, 2)
        ]
    runs += [
        run("1f", repeat, of="1", order=11 + repeat, purpose=Purpose.ANCHOR, effect=Effect.PROVEN)
        for repeat in (1, 2)
    ]
    return Record(manifest=manifest(), runs=tuple(runs), ending=Ending.COMPLETE)


def effect_part(effect: Effect) -> EffectPart:
    """What a log says of the drafter."""
    return EffectPart(
        part="draft",
        expected="1",
        seen="1" if effect is Effect.PROVEN else None,
        effect=effect,
        line="strata mtp: the draft layer's gr workspace runs on the draft device (0.3 MiB)",
    )


def flipped(record: Record, variant: str, index: int) -> Record:
    """The same record with one token of one variant changed in all its repeats."""
    return replace(
        record,
        runs=tuple(
            altered(r, stream=(*r.stream[:index], r.stream[index] + 1, *r.stream[index + 1 :]))
            if r.variant == variant and r.stream is not None
            else r
            for r in record.runs
        ),
    )


def every_state() -> Record:
    """One variant for each state of a run."""
    names = tuple((str(n), f"ends {state}", ()) for n, state in enumerate(RunState))
    runs = tuple(
        run(
            str(n),
            repeat,
            order=n * 2 + repeat,
            state=state,
            reason=None if state is RunState.OK else f"it was {state.lower()}",
            quote=None if state is RunState.OK else f"strata generate: line of {state}",
            exit_code=None if state is RunState.TIMED_OUT else 0 if state is RunState.OK else 1,
            signal="SIGSEGV" if state is RunState.CRASHED else None,
            stream=stream(1) if state is RunState.OK else None,
        )
        for n, state in enumerate(RunState)
        for repeat in (1, 2)
    )
    return Record(manifest=manifest(variants=planned(names)), runs=runs, ending=Ending.COMPLETE)


def hostile(text: str) -> Record:
    """A record in which everything that comes from outside is ``text``."""
    flip = flipped(two_cards(), "4", 17)
    runs = tuple(
        altered(
            r,
            reason=text,
            quote=text,
            lines=(text, text),
            tail=(text,),
            warnings=(text,),
            argv=(text, text),
            env=((text, text),),
            signal=text,
            state=RunState.CRASHED if r.variant == "3" else r.state,
            residency=replace(r.residency, label=text),
            effect_parts=tuple(
                replace(p, part=text, expected=text, seen=text, line=text) for p in r.effect_parts
            ),
            version=text,
        )
        for r in flip.runs
    )
    asked = manifest(
        argv=(text, text),
        engine=replace(flip.manifest.engine, name=text, version=text),
        matrix=replace(flip.manifest.matrix, name=text),
        model=(ModelFile(flag=text, path=text, size_bytes=1),),
        model_flags=(text,),
        rig=Rig(
            devices=(Device(id=text, name=text, kind=text, note=text),),
            device_count=1,
            how=text,
            facts=((text, text),),
            notes=(text,),
        ),
        variants=(
            *(replace(e, variant=replace(e.variant, name=text)) for e in flip.manifest.variants),
            PlannedVariant(
                variant=Variant(id="9", name=text), planned=False, why_not=text, refused=True
            ),
        ),
        warnings=(text,),
    )
    return Record(
        manifest=asked,
        runs=runs,
        warnings=(text,),
        ending=Ending.INTERRUPTED,
        ending_reason=text,
    )


def large(variants: int = 60, repeats: int = 20, *, wide: str = "") -> Record:
    """More of everything than a report can hold."""
    names = tuple(
        (str(n), f"placement number {n} {wide}", ("--main", wide)) for n in range(variants)
    )
    runs = tuple(
        run(
            str(n),
            repeat,
            order=n + repeat * variants,
            state=RunState.CRASHED if n % 7 == 3 else RunState.OK,
            reason=f"signal in round {repeat} {wide}" if n % 7 == 3 else None,
            quote=f"CUDA error {n} {repeat} {wide}" if n % 7 == 3 else None,
            stream=stream(n % 5 if n % 11 else n * 100 + repeat),
            residency=slots(4400 + n % 5),
            lines=tuple(f"role device {k} of {n} {wide}" for k in range(30)),
            tail=tuple(f"tail {k} of {n} {repeat} {wide}" for k in range(40)),
            warnings=(f"warning {n} {repeat} {wide}",),
            argv=("/build/strata", *(f"--flag-{k}-{n}-{wide}" for k in range(20))),
        )
        for n in range(variants)
        for repeat in range(1, repeats + 1)
    )
    return Record(
        manifest=manifest(variants=planned(names), repeats=repeats),
        runs=runs,
        ending=Ending.COMPLETE,
    )
