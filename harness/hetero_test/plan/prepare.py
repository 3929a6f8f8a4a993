"""Everything before the first launch: matrix, engine, devices, prompts, plan, manifest."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.engines import ENGINES, engine
from hetero_test.engines.base import Binaries, Engine, Survey
from hetero_test.errors import EngineNotFoundError, NothingToCompareError, UsageError
from hetero_test.formats import files
from hetero_test.formats.json import JsonError
from hetero_test.plan import defaults, environment, plan, prompts, visible_devices
from hetero_test.plan.copies import without_copies, without_twins
from hetero_test.plan.matrix import Matrix, find
from hetero_test.plan.options import RunOptions, command_line
from hetero_test.rig import host
from hetero_test.values.record import EngineFacts, Manifest, Pinned, Rig
from hetero_test.values.verdict import LEAST_TOKENS
from hetero_test.version import version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hetero_test.values.run import Probe
    from hetero_test.values.variant import PlannedVariant

FEW_TOKENS = 16
"""Fewer new tokens than this are worth a warning."""
PROBE_ENV = "HETERO_TEST_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A matrix that can be launched."""

    manifest: Manifest
    engine: Engine
    binaries: Binaries
    survey: Survey
    matrix: Matrix


def prepare(options: RunOptions) -> Ready:
    """Turn options into a plan; nothing is launched but the engine's own questions.

    Raises:
        UsageError: an option, flag or file is wrong.
        NothingToCompareError: something is missing; see the message.
    """
    matrix = find(options.matrix)
    flags = options.model_flags
    plan.refuse_owned(flags, matrix)
    family = engine(matrix.engine)
    binaries = _find(family, options.build_dir)
    survey = family.survey(
        binaries,
        flags,
        devices=options.devices,
        kinds=dict(options.kinds),
        fast=options.fast_device,
    )
    require_devices(survey, options.expect_devices)
    variants = plan.plan_variants(
        matrix,
        plan.expand(matrix, survey, family, flags),
        survey,
        drafter=family.has_drafter(flags),
        experts=family.has_experts(flags),
        cannot_fit=lambda v: family.cannot_fit(survey, family.combine(flags, v.flags)),
        only=options.only,
        skip=options.skip,
    )
    variants = without_copies(variants, flags, os.environ)
    variants = without_twins(variants, lambda v: family.combine(flags, v.flags))
    variants = tuple(
        replace(entry, drafter=family.has_drafter(family.combine(flags, entry.variant.flags)))
        for entry in variants
    )
    made = probes(options, family, flags)
    own = family.command(binaries, (), made[0], probe_file=Path("probe"))
    refuse_overridden(variants, own)
    as_flags = environment.as_flags(os.environ, survey, own)
    environment.refuse_owned_variables(as_flags, matrix)
    plan.require_something(variants, family, survey)
    masks = visible_devices.set_already((name for name, _ in matrix.on_device), os.environ)
    manifest = Manifest(
        harness=version(),
        argv=("hetero-test", *(options.argv or command_line(options))),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        engine=_engine_facts(family, binaries, survey),
        matrix=matrix.facts,
        model_flags=flags,
        model=host.model_files(flags),
        env=masks,
        rig=Rig(
            devices=survey.devices,
            device_count=survey.device_count,
            how=survey.how,
            facts=host.host_facts(),
            notes=survey.notes,
        ),
        probes=made,
        variants=variants,
        repeats=options.repeats,
        warmup=_warmup(options),
        limits=options.limits,
        pinned=pinned(matrix, survey, asked=options.pinned),
        inherited=environment.inherited(os.environ, survey, besides=dict(masks)),
        on_device=matrix.on_device,
        owns=matrix.owns,
        harmless=matrix.harmless,
        one_device=bool(options.only) or 1 in {options.devices, options.expect_devices},
        strict=options.strict,
        prediction=prediction(options.predict),
        redact=options.redact,
        mark=f"hetero-test-{uuid.uuid4().hex}",
    )
    warnings = (*_warnings(manifest, matrix), *_set_outside(as_flags))
    return Ready(
        manifest=replace(manifest, warnings=warnings, secrets=_secrets(options, manifest)),
        engine=family,
        binaries=binaries,
        survey=survey,
        matrix=matrix,
    )


def require_devices(survey: Survey, expected: int | None) -> None:
    """Refuse a rig with fewer devices than are expected.

    Raises:
        NothingToCompareError: there are fewer, or nobody can tell.
    """
    if expected is None:
        return
    if survey.device_count is None:
        raise NothingToCompareError(
            f"--expect-devices {expected}: the number of devices could not be found out "
            f"({survey.how})",
            hint="say it with --devices N",
        )
    if survey.device_count < expected:
        plural = "" if expected == 1 else "s"
        raise NothingToCompareError(
            f"--expect-devices {expected}: {expected} device{plural} expected, "
            f"{survey.device_count} found ({survey.how})",
            hint="see whether the driver still lists all cards, and whether a mask hides one",
        )


def refuse_overridden(variants: Sequence[PlannedVariant], command: Sequence[str]) -> None:
    """Flags that follow a variant's own in every command may not be the variant's.

    Args:
        variants: as planned.
        command: what the engine is launched with where there are no flags at all.

    Raises:
        UsageError: a variant has one; it would change nothing.
    """
    own = {word for word in command[1:] if word.startswith("-")}
    for entry in variants:
        for flag in entry.variant.flags:
            if (name := flag.partition("=")[0]) in own:
                raise UsageError(
                    f"variant {entry.variant.id} sets {name}, which hetero-test sets itself after "
                    "it, so it would change nothing",
                    hint="take it out of the matrix file; --max-new, --tokens and --tokens-file "
                    "are options",
                )


def _find(family: Engine, build_dir: Path) -> Binaries:
    """The engine's binaries; a folder of another engine is answered with its name."""
    if not build_dir.is_dir():
        what = "it is a file" if build_dir.exists() else "there is no such folder"
        raise EngineNotFoundError(
            f"--build-dir {build_dir}: {what}",
            hint="give the folder in which the engine was built",
        )
    try:
        return family.find(build_dir)
    except EngineNotFoundError as error:
        others = [name for name in ENGINES if name != family.name and _holds(name, build_dir)]
        if not others:
            raise
        raise EngineNotFoundError(
            error.what, hint=f"this folder holds another engine: give --matrix {others[0]}"
        ) from error


def _holds(name: str, build_dir: Path) -> bool:
    try:
        engine(name).find(build_dir)
    except (EngineNotFoundError, ImportError):
        return False
    return True


def _engine_facts(family: Engine, binaries: Binaries, survey: Survey) -> EngineFacts:
    try:
        digest = host.file_sha256(binaries.engine)
        size = binaries.engine.stat().st_size
    except OSError as error:
        raise EngineNotFoundError(f"{binaries.engine}: cannot be read: {error.strerror}") from error
    return EngineFacts(
        name=family.name,
        path=str(binaries.engine),
        sha256=digest,
        size_bytes=size,
        version=survey.version,
        build_dir=str(binaries.build_dir.absolute()),
        libraries=host.libraries(binaries.engine),
    )


def probes(options: RunOptions, family: Engine, flags: Sequence[str]) -> tuple[Probe, ...]:
    """The prompts: files of the user's, or one from the generator.

    Raises:
        UsageError: a file is wrong, or an id lies outside the model's vocabulary.
    """
    vocabulary = family.vocabulary(flags)
    if options.tokens_files:
        made = [_from_file(path, options) for path in options.tokens_files]
        if len({p.name for p in made}) < len(made):
            raise UsageError("--tokens-file: two of the files have the same name")
        if len({p.ids for p in made}) < len(made):
            raise UsageError("--tokens-file: two of the files hold the same ids")
    else:
        made = [
            prompts.generated(
                count=_setting(options.tokens, "TOKENS", defaults.TOKENS),
                seed=_setting(options.seed, "SEED", defaults.SEED),
                vocab=_setting(options.vocab, "VOCAB", vocabulary or family.probe_vocabulary),
                max_new=options.max_new,
            )
        ]
    for each in made:
        if vocabulary is not None and (high := max(each.ids)) >= vocabulary:
            raise UsageError(
                f"probe {each.name}: the id {high} is outside the model's vocabulary "
                f"of {vocabulary}",
                hint="draw from the model's own with --vocab, or give --tokens-file",
            )
    return tuple(made)


def _from_file(path: Path, options: RunOptions) -> Probe:
    name = "default"
    if len(options.tokens_files) > 1:
        name = "".join(c if c.isalnum() or c in "._-" else "-" for c in path.stem) or "file"
    return prompts.from_file(path, max_new=options.max_new, name=name)


def _setting(given: int | None, name: str, default: int) -> int:
    """An option, else the environment, else the default."""
    if given is not None:
        return given
    text = os.environ.get(PROBE_ENV + name)
    if text is None or not text.strip():
        return default
    if not defaults.is_whole(text):
        raise UsageError(f"${PROBE_ENV}{name}: {text[:40]!r} is not a whole number from 0 on")
    return int(text)


def prediction(path: Path | None) -> str | None:
    """The text of a prediction that is to stand beside the run.

    Raises:
        UsageError: it cannot be read, or is not what ``triage --json`` prints.
    """
    if path is None:
        return None
    from hetero_test.triage.answer import read_back

    try:
        text = files.read_bytes(path, most=files.GIVEN).decode("utf-8")
        read_back.prediction(text)
    except OSError as error:
        raise UsageError(f"--predict {path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        what = error if isinstance(error, JsonError) else "it is not UTF-8 text"
        hint = "make one with hetero-test triage … --json"
        raise UsageError(f"--predict {path}: {what}", hint=hint) from error
    return text


def _warmup(options: RunOptions) -> int:
    if options.warmup is not None:
        return options.warmup
    return 1 if options.repeats >= defaults.MANY_REPEATS else 0


def pinned(matrix: Matrix, survey: Survey, *, asked: bool) -> Pinned:
    """The matrix's recipe, without what this engine's help does not know.

    Raises:
        UsageError: it was asked for, and the matrix has none.
    """
    if asked and not (matrix.pinned_flags or matrix.pinned_env):
        raise UsageError(f"--pinned: the matrix {matrix.facts.name} has no pinned recipe")
    keep: list[str] = []
    left_out: list[str] = []
    dropping = False
    for word in matrix.pinned_flags:
        if word.startswith("-") and not word[1:2].isdigit():
            dropping = survey.known_flags is not None and word not in survey.known_flags
            if dropping:
                left_out.append(word)
        if not dropping:
            keep.append(word)
    return Pinned(flags=tuple(keep), env=matrix.pinned_env, asked=asked, left_out=tuple(left_out))


def _warnings(manifest: Manifest, matrix: Matrix) -> tuple[str, ...]:
    found = []
    if matrix.note:
        found.append(f"matrix {matrix.facts.name}: {matrix.note}")
    if manifest.pinned.asked and manifest.pinned.left_out:
        found.append(
            "the pinned recipe is not complete: this engine does not know "
            + ", ".join(manifest.pinned.left_out)
        )
    if untold := [
        e.variant.id for e in manifest.variants[1:] if e.planned and not e.variant.effect
    ]:
        found.append(
            f"the matrix names no effect of {', '.join(untold)}: no line of the log can show that "
            "it took place"
        )
    if (length := min(prompts.max_new for prompts in manifest.probes)) < FEW_TOKENS:
        passes = "nothing passes" if length < LEAST_TOKENS else "most differences show later"
        found.append(
            f"new tokens are few ({length}): {passes}, and a stream this short cannot be told from "
            "garbage"
        )
    return tuple(found)


def _set_outside(variables: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """That flags are set where no command line shows them."""
    if not variables:
        return ()
    told = ", ".join(f"{name}={os.environ[name]}" for name in variables)
    return (f"every run, the baseline too, takes as flags what the environment sets: {told}",)


def _secrets(options: RunOptions, manifest: Manifest) -> tuple[tuple[str, str], ...]:
    from hetero_test.publish.host import host_secrets

    return host_secrets(
        argv=manifest.argv,
        # A variable may name a model as a flag does.
        model_flags=(*manifest.model_flags, *(value for _, value in manifest.inherited)),
        env=(*manifest.env, *manifest.inherited),
        build_dir=options.build_dir,
        out=options.out,
    )
