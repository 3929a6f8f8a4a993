"""Going on with a run directory, and what must be the same for that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.errors import UsageError
from hetero_test.plan.defaults import DEMO_FOLDER

if TYPE_CHECKING:
    from hetero_test.store.run_dir import Store
    from hetero_test.values.record import Manifest, Record

BEFORE_MANIFEST = ("probes", ".manifest.json.new")
"""What a process that was killed before it had written the manifest leaves."""


def begin_or_resume(store: Store, manifest: Manifest, *, resume: bool) -> Record:
    """Start a run directory, or go on with one that asks for the same.

    Raises:
        UsageError: the directory was made for something else; the message says what differs.
        StoreError: it cannot be read or written.
    """
    if not resume or not _holds_something(store):
        return store.begin(manifest)
    record = store.load()
    if found := differences(record.manifest, manifest):
        raise UsageError(
            f"--resume: {store.root} was made for something else: {'; '.join(found)}",
            hint="ask for the same, or choose another --out",
        )
    # Limits, strictness and what is redacted may change; all that was measured stays.
    going_on = replace(
        record.manifest,
        limits=manifest.limits,
        strict=manifest.strict,
        prediction=manifest.prediction or record.manifest.prediction,
        redact=manifest.redact,
        secrets=tuple(dict.fromkeys((*record.manifest.secrets, *manifest.secrets))),
    )
    store.begin(going_on)
    return replace(record, manifest=going_on)


def _holds_something(store: Store) -> bool:
    """A folder with neither manifest nor runs is started afresh."""
    if (store.root / "manifest.json").is_file():
        return True
    if (store.root / "runs").exists() or (store.root / "run.json").exists():
        raise UsageError(
            f"--resume: {store.root} holds runs but no manifest.json, so it cannot be gone on with",
            hint="choose another --out",
        )
    store.refuse_used(besides=(*BEFORE_MANIFEST, DEMO_FOLDER))
    return False


def differences(stored: Manifest, asked: Manifest) -> list[str]:
    """What was asked before and is not asked now, in words."""
    before, now = stored, asked
    pairs: tuple[tuple[str, object, object], ...] = (
        ("engine binary (sha256)", before.engine.sha256[:12], now.engine.sha256[:12]),
        ("libraries", before.engine.libraries, now.engine.libraries),
        ("engine", before.engine.name, now.engine.name),
        ("matrix (sha256)", before.matrix.sha256[:12], now.matrix.sha256[:12]),
        ("model flags", " ".join(before.model_flags), " ".join(now.model_flags)),
        ("model files", before.model, now.model),
        ("environment", dict(before.env), dict(now.env)),
        (
            "environment variables",
            _set(before, besides=now),
            _set(now, besides=before),
        ),
        ("prompts", [p.name for p in before.probes], [p.name for p in now.probes]),
        ("prompt ids", [p.ids for p in before.probes], [p.ids for p in now.probes]),
        ("length", [p.max_new for p in before.probes], [p.max_new for p in now.probes]),
        ("repeats", before.repeats, now.repeats),
        ("warm-up runs", before.warmup, now.warmup),
        ("pinned", before.pinned, now.pinned),
        ("variants", _planned(before), _planned(now)),
        ("devices", before.rig.device_count, now.rig.device_count),
        ("device names", before.rig.devices, now.rig.devices),
    )
    return [_told(name, one, other) for name, one, other in pairs if one != other]


def _set(manifest: Manifest, *, besides: Manifest) -> str:
    """The inherited variables that another manifest has not, or has with another value."""
    own = [pair for pair in manifest.inherited if pair not in besides.inherited]
    return " ".join(f"{name}={value}" for name, value in own) or "not set"


def _planned(manifest: Manifest) -> list[str]:
    return [entry.variant.id for entry in manifest.variants if entry.planned]


def _told(name: str, before: object, now: object) -> str:
    one, other = str(before), str(now)
    if len(one) + len(other) > 160:
        return f"{name} differ" + ("" if name.endswith("s") else "s")
    return f"{name}: {one} before, {other} now"
