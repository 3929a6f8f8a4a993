"""Matrix, rig and model flags to the cells of the rounds; and what cannot run here, and why."""

from __future__ import annotations

from dataclasses import replace
from operator import eq, ge, le
from typing import TYPE_CHECKING

from harness.errors import NothingToCompareError, UsageError
from harness.located import suggestion
from harness.model import Cell, PlannedVariant, Purpose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.engines.base import Engine, Survey
    from harness.matrix import Matrix
    from harness.model import Variant
    from harness.record import Manifest

COMPARE = {">=": ge, "==": eq, "<=": le}


def refuse_owned(flags: Sequence[str], matrix: Matrix) -> None:
    """Flags that the matrix sets may not be given by the user as well.

    Raises:
        UsageError: one was.
    """
    found = [f for f in dict.fromkeys(flag.partition("=")[0] for flag in flags) if f in matrix.owns]
    if found:
        raise UsageError(
            f"{', '.join(found)} after --: the matrix {matrix.facts.name} sets "
            f"{'this flag' if len(found) == 1 else 'these flags'} itself",
            hint="leave it out; length and prompt are set with --max-new, --tokens, --seed, "
            "--vocab and --tokens-file before the --",
        )


def expand(matrix: Matrix, survey: Survey, places: Mapping[str, str]) -> tuple[Variant, ...]:
    """The matrix's variants with device placeholders filled in.

    Args:
        matrix: as read.
        survey: the devices.
        places: further placeholders of the engine, such as ``fast``; name to value.
    """
    out: list[Variant] = []
    ids = [device.id for device in survey.devices]
    first = places.get("fast", ids[0] if ids else "")
    for variant in matrix.variants:
        if variant.for_each is None:
            out.append(_filled(variant, places))
            continue
        chosen = [i for i in ids if variant.for_each == "device" or i != first]
        named = [replace(variant, id=f"{variant.id}-{name}") for name in chosen]
        out += [
            _filled(each, {**places, "device": name})
            for each, name in zip(named, chosen, strict=True)
        ]
    return tuple(out)


def _filled(variant: Variant, places: Mapping[str, str]) -> Variant:
    def fill(text: str) -> str:
        for name, value in places.items():
            text = text.replace("{" + name + "}", value)
        return text

    return replace(
        variant,
        name=fill(variant.name),
        flags=tuple(map(fill, variant.flags)),
        env=tuple((key, fill(value)) for key, value in variant.env),
        effect=tuple((part, fill(value)) for part, value in variant.effect),
    )


def plan_variants(
    matrix: Matrix,
    variants: Sequence[Variant],
    survey: Survey,
    *,
    drafter: bool,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
) -> tuple[PlannedVariant, ...]:
    """Which variants can run here, the baseline first; the others with the reason why not.

    Raises:
        UsageError: ``only`` or ``skip`` names a variant that is not there.
    """
    known = [matrix.baseline.id, *(variant.id for variant in variants)]
    for option, names in (("--only", only), ("--skip", skip)):
        for name in names:
            if name not in known:
                raise UsageError(
                    f"{option} {name}: no such variant{suggestion(name, known)}",
                    hint=f"variants here: {', '.join(known)}",
                )
    if matrix.baseline.id in skip:
        raise UsageError(f"--skip {matrix.baseline.id}: the baseline cannot be skipped")
    planned = [PlannedVariant(variant=matrix.baseline, planned=True)]
    for variant in variants:
        found = _can_run(variant, survey, drafter=drafter)
        if found.planned and ((only and variant.id not in only) or variant.id in skip):
            why = "left out by --only" if only and variant.id not in only else "left out by --skip"
            found = PlannedVariant(variant=variant, planned=False, why_not=why)
        planned.append(found)
    return tuple(planned)


def _can_run(variant: Variant, survey: Survey, *, drafter: bool) -> PlannedVariant:
    def no(why: str, *, refused: bool = False, few: bool = False) -> PlannedVariant:
        return PlannedVariant(
            variant=variant, planned=False, why_not=why, refused=refused, few_devices=few
        )

    needs = variant.needs
    if needs.drafter is True and not drafter:
        return no("needs a drafter")
    if needs.drafter is False and drafter:
        return no("is for a model without a drafter")
    if needs.devices is not None:
        compare, number = needs.devices
        if survey.device_count is None:
            return no("the number of devices is unknown")
        if not COMPARE[compare](survey.device_count, number):
            words = {">=": "at least ", "==": "", "<=": "at most "}[compare]
            plural = "" if number == 1 else "s"
            return no(
                f"needs {words}{number} device{plural}, {survey.device_count} found", few=True
            )
    if survey.known_flags is not None:
        missing = [
            flag
            for flag in variant.flags
            if flag.startswith("-") and not _is_number(flag) and flag not in survey.known_flags
        ]
        if missing:
            return no(f"this engine's help does not list {', '.join(missing)}", refused=True)
    return PlannedVariant(variant=variant, planned=True)


def _is_number(word: str) -> bool:
    return word[1:2].isdigit()


def require_something(planned: Sequence[PlannedVariant], engine: Engine) -> None:
    """Refuse a plan in which nothing could be compared.

    Raises:
        NothingToCompareError: only the baseline could run; the message names what is missing.
    """
    rest = planned[1:]
    if any(entry.planned for entry in rest):
        return
    whys = dict.fromkeys(entry.why_not or "" for entry in rest)
    hints = []
    if any("needs a drafter" in why for why in whys):
        hints.append(f"give a drafter after -- ({engine.drafter_flags})")
    if any("number of devices is unknown" in why for why in whys):
        hints.append("say how many devices there are with --devices N")
    if refused := dict.fromkeys(entry.why_not for entry in rest if entry.refused):
        hints.append(f"build an engine that has the flags ({'; '.join(map(str, refused))})")
    if any("left out" in why for why in whys):
        hints.append("name variants that can run here with --only")
    raise NothingToCompareError(
        "there is nothing to compare: no variant but the baseline can run here "
        f"({'; '.join(why for why in whys if why)})",
        hint="; ".join(hints) or None,
    )


def base_flags(manifest: Manifest, *, pinned: bool) -> tuple[str, ...]:
    """The user's flags, followed by the pinned recipe where it applies."""
    recipe = manifest.pinned.flags if pinned else ()
    return (*manifest.model_flags, *recipe)


def base_env(manifest: Manifest, *, pinned: bool) -> tuple[tuple[str, str], ...]:
    """What the harness sets for every run, with the pinned recipe's environment."""
    return (*manifest.env, *(manifest.pinned.env if pinned else ()))


def rounds(manifest: Manifest) -> tuple[Cell, ...]:
    """Every cell of the rounds: round by round, every second round reversed."""
    planned = [entry.variant for entry in manifest.variants if entry.planned]
    cells: list[Cell] = []
    for repeat in range(1, manifest.repeats + 1):
        turn = planned if repeat % 2 else planned[::-1]
        for variant in turn:
            for probe in manifest.probes:
                cells.append(
                    cell(
                        manifest,
                        variant,
                        probe.name,
                        repeat,
                        order=len(cells),
                        purpose=Purpose.ROUND,
                        pinned=manifest.pinned.asked,
                    )
                )
    return tuple(cells)


def cell(
    manifest: Manifest,
    variant: Variant,
    probe: str,
    repeat: int,
    *,
    order: int,
    purpose: Purpose,
    pinned: bool,
    name: str | None = None,
) -> Cell:
    """One cell of a variant; ``name`` is the id of an extra run, if it is one."""
    return Cell(
        variant=name or variant.id,
        of=variant.id,
        probe=probe,
        repeat=repeat,
        order=order,
        purpose=purpose,
        flags=(*base_flags(manifest, pinned=pinned), *variant.flags),
        env=(*base_env(manifest, pinned=pinned), *variant.env),
    )
