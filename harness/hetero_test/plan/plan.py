"""Matrix, rig and model flags to the cells of the rounds; and what cannot run here, and why."""

from __future__ import annotations

import re
from dataclasses import replace
from operator import eq, ge, le
from typing import TYPE_CHECKING

from hetero_test.errors import NothingToCompareError, UsageError
from hetero_test.formats.toml_lines import suggestion
from hetero_test.values.run import Cell, Purpose, RunState
from hetero_test.values.run_ids import Question, extra_ids, recheck_id
from hetero_test.values.variant import PlannedVariant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hetero_test.engines.base import Engine, Survey
    from hetero_test.plan.matrix import Matrix
    from hetero_test.values.record import Manifest
    from hetero_test.values.run import Device
    from hetero_test.values.variant import Variant

COMPARE = {">=": ge, "==": eq, "<=": le}
PLACEHOLDER = re.compile(r"\{([a-z]+(?:_[a-z]+)*)\}")
NEEDS_A_DRAFTER = "needs a drafter"
_MISSING = {"device": "device", "fast": "first device", "other": "second device"}
"""What a placeholder of a device stands for, in words, where the rig has none."""


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


def expand(
    matrix: Matrix, survey: Survey, engine: Engine, flags: Sequence[str]
) -> tuple[Variant, ...]:
    """The matrix's variants, those with ``for_each`` once a device, placeholders filled in."""
    out: list[Variant] = []
    for variant in matrix.variants:
        if variant.for_each is None:
            out.append(_filled(variant, engine.placeholders(survey, flags, None)))
            continue
        devices = _devices_of(variant, survey)
        if not devices:  # kept, so that the report says why it did not run
            out.append(_filled(variant, engine.placeholders(survey, flags, None)))
        out += [
            _filled(
                replace(variant, id=_id_of(variant, device)),
                engine.placeholders(survey, flags, device),
            )
            for device in devices
        ]
    return tuple(out)


def _devices_of(variant: Variant, survey: Survey) -> Sequence[Device]:
    """The devices for each of which a variant is made; none where it is made once."""
    if variant.for_each is None:
        return ()
    return survey.devices if variant.for_each == "device" else survey.devices[1:]


def _id_of(variant: Variant, device: Device) -> str:
    return f"{variant.id}-{device.id}"


def _filled(variant: Variant, values: Mapping[str, str]) -> Variant:
    """What stands for nothing here is told in words in the name, else kept for `_unfilled`."""

    def fill(text: str) -> str:
        return PLACEHOLDER.sub(lambda found: values.get(found.group(1), found.group()), text)

    return replace(
        variant,
        name=PLACEHOLDER.sub(lambda found: _named(found.group(1)), fill(variant.name)),
        flags=tuple(map(fill, variant.flags)),
        env=tuple((key, fill(value)) for key, value in variant.env),
        effect=tuple((part, fill(value)) for part, value in variant.effect),
    )


def _unfilled(variant: Variant) -> str | None:
    """That this rig gives a placeholder no value, in words; None where all are filled in."""
    texts = (*variant.flags, *(value for _, value in (*variant.env, *variant.effect)))
    name = next((found.group(1) for found in map(PLACEHOLDER.search, texts) if found), None)
    if name is None:
        return None
    of_device = name.partition("_")[0] in _MISSING
    return f"this rig has no {_missing(name)}" if of_device else f"unknown here: {_missing(name)}"


def _named(name: str) -> str:
    """What a name shows for a placeholder that stands for nothing here."""
    return f"the {_missing(name)}" if name.partition("_")[0] in _MISSING else "?"


def _missing(name: str) -> str:
    """A placeholder in words: ``other`` and ``other_buffer`` are the second device('s)."""
    word, _, what = name.partition("_")
    if word not in _MISSING:
        return name.replace("_", " ")
    return f"{_MISSING[word]}'s {what.replace('_', ' ')}" if what else _MISSING[word]


def _not_there(option: str, name: str, known: Sequence[str], survey: Survey) -> Exception:
    """What to say of an id that no variant here has."""
    made_of = next((each for each in known if name.startswith(f"{each}-")), None)
    if made_of is not None and not survey.devices:
        what = f"{option} {name}: variant {made_of} is made for each device, and none was found"
        return NothingToCompareError(what, hint=f"asked with: {survey.how}")
    return UsageError(
        f"{option} {name}: no such variant{suggestion(name, known)}",
        hint=f"variants here: {', '.join(known)}",
    )


def _chosen(
    option: str, names: Sequence[str], known: Sequence[str], matrix: Matrix, survey: Survey
) -> tuple[str, ...]:
    """The ids that are meant by ids of this rig and of the matrix file.

    Raises:
        UsageError: there is no such variant.
        NothingToCompareError: what is missing is the device that it would be made for.
    """
    made_of = {
        variant.id: [_id_of(variant, device) for device in _devices_of(variant, survey)]
        for variant in matrix.variants
    }
    for name in names:
        if name not in known and not made_of.get(name):
            raise _not_there(option, name, known, survey)
    return tuple(each for name in names for each in (made_of.get(name) or (name,)))


def plan_variants(
    matrix: Matrix,
    variants: Sequence[Variant],
    survey: Survey,
    *,
    drafter: bool,
    experts: bool | None = None,
    cannot_fit: Callable[[Variant], str | None] = lambda _: None,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
) -> tuple[PlannedVariant, ...]:
    """Which variants can run here, the baseline first; the others with the reason why not.

    Args:
        matrix: the variants come from.
        variants: as expanded for this rig.
        survey: of the rig.
        drafter: whether the model flags bring one.
        experts: whether the model is a mixture of experts, None where that is not known.
        cannot_fit: why a placement cannot fit its devices, from sizes alone.
        only: ids; if there are any, no others are run. The id of the file stands for all that
            is made of it, one for each device.
        skip: ids that are not run, likewise.

    Raises:
        UsageError: ``only`` or ``skip`` names a variant that is not there.
        NothingToCompareError: what is missing is the device that it would be made for.
    """
    known = [matrix.baseline.id, *(variant.id for variant in variants)]
    only = _chosen("--only", only, known, matrix, survey)
    skip = _chosen("--skip", skip, known, matrix, survey)
    _refuse_clashes(matrix.baseline.id, known)
    if matrix.baseline.id in skip:
        raise UsageError(f"--skip {matrix.baseline.id}: the baseline cannot be skipped")
    planned = [PlannedVariant(variant=matrix.baseline, planned=True)]
    for variant in variants:
        found = _can_run(variant, survey, drafter=drafter, experts=experts)
        if found.planned and (why_not := cannot_fit(variant)) is not None:
            why_not = f"{RunState.NO_MEMORY}: {why_not}"
            found = PlannedVariant(variant=variant, planned=False, why_not=why_not)
        if found.planned and ((only and variant.id not in only) or variant.id in skip):
            why = "left out by --only" if only and variant.id not in only else "left out by --skip"
            found = PlannedVariant(variant=variant, planned=False, why_not=why)
        planned.append(found)
    return tuple(planned)


def _refuse_clashes(baseline: str, known: Sequence[str]) -> None:
    """Ids that are not unique once devices are filled in, or that extra runs need.

    Raises:
        UsageError: there is one.
    """
    extra = extra_ids(baseline, known)
    extra |= {recheck_id(name, question) for name in (*known, *extra) for question in Question}
    for name in known:
        if known.count(name) > 1:
            raise UsageError(
                f"the matrix gives two variants the id {name}",
                hint="one of them is repeated for each device: choose another id for the other",
            )
        if name in extra:
            raise UsageError(
                f"the matrix calls a variant {name}, which is the id of another one's extra runs",
                hint="choose another id for it in the matrix file",
            )


def _can_run(
    variant: Variant, survey: Survey, *, drafter: bool, experts: bool | None
) -> PlannedVariant:
    def no(why: str, *, refused: bool = False, few: bool = False) -> PlannedVariant:
        return PlannedVariant(
            variant=variant, planned=False, why_not=why, refused=refused, few_devices=few
        )

    needs = variant.needs
    if needs.drafter is True and not drafter:
        return no(NEEDS_A_DRAFTER)
    if needs.drafter is False and drafter:
        return no("is for a model without a drafter")
    if None not in (needs.experts, experts) and needs.experts != experts:
        return no(
            "needs a model with experts" if needs.experts else "needs a model without experts"
        )
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
    if (why := _unfilled(variant)) is not None:
        few = survey.device_count is not None and survey.device_count < 2
        return no(why, few=few)
    if missing := _not_listed(variant, survey):
        return no(f"this engine's help does not list {', '.join(missing)}", refused=True)
    return PlannedVariant(variant=variant, planned=True)


def _not_listed(variant: Variant, survey: Survey) -> list[str]:
    """Flags of a variant that the engine's help does not know; none where it gave no help."""
    if survey.known_flags is None:
        return []
    names = [flag.partition("=")[0] for flag in variant.flags if flag.startswith("-")]
    return [name for name in names if not _is_number(name) and name not in survey.known_flags]


def _is_number(word: str) -> bool:
    return word[1:2].isdigit()


def require_something(planned: Sequence[PlannedVariant], engine: Engine, survey: Survey) -> None:
    """Refuse a plan in which nothing could be compared.

    Raises:
        NothingToCompareError: only the baseline could run; the message names what is missing.
    """
    rest = planned[1:]
    if any(entry.planned for entry in rest):
        return
    whys = dict.fromkeys(str(entry.why_not) for entry in rest)
    hints = []
    if survey.device_count == 0:
        hints.append(
            f"no device was found ({survey.how}): use an engine that is built for the devices of "
            "this machine, and see that their driver works"
        )
    if any(_lacks_only_a_drafter(entry, survey) for entry in rest):
        hints.append(f"give a drafter after -- ({engine.drafter_flags})")
    if any("number of devices is unknown" in why for why in whys):
        hints.append("say how many devices there are with --devices N")
    if refused := dict.fromkeys(entry.why_not for entry in rest if entry.refused):
        hints.append(f"build an engine that has the flags ({'; '.join(map(str, refused))})")
    if any("left out" in why for why in whys):
        hints.append("name variants that can run here with --only")
    raise NothingToCompareError(
        "there is nothing to compare: no variant but the baseline can run here "
        f"({'; '.join(whys)})",
        hint="; ".join(hints) or None,
    )


def _lacks_only_a_drafter(entry: PlannedVariant, survey: Survey) -> bool:
    """Whether a drafter would let a variant run that cannot run without one."""
    if entry.why_not != NEEDS_A_DRAFTER:
        return False
    return _can_run(entry.variant, survey, drafter=True, experts=None).planned


def base_flags(manifest: Manifest, *, pinned: bool) -> tuple[str, ...]:
    """The user's flags, followed by the pinned recipe where it applies."""
    recipe = manifest.pinned.flags if pinned else ()
    return (*manifest.model_flags, *recipe)


def base_env(manifest: Manifest, *, pinned: bool) -> tuple[tuple[str, str], ...]:
    """What the harness sets for every run, with the pinned recipe's environment."""
    return (*manifest.env, *(manifest.pinned.env if pinned else ()))


def variant_by_id(manifest: Manifest, name: str) -> Variant:
    """One variant of the matrix."""
    return next(entry.variant for entry in manifest.variants if entry.variant.id == name)


def sizing_count(manifest: Manifest) -> int:
    """How many runs are made before the rounds to learn sizes: one a variant if pinned."""
    return sum(entry.planned for entry in manifest.variants) if manifest.pinned.asked else 0


def round_count(manifest: Manifest) -> int:
    """How many cells the rounds have."""
    planned = sum(entry.planned for entry in manifest.variants)
    return planned * len(manifest.probes) * manifest.repeats


def rounds(manifest: Manifest, engine: Engine) -> tuple[Cell, ...]:
    """Every cell of the rounds, in order."""
    return tuple(
        cell(manifest, engine, variant, key, order=order, purpose=Purpose.ROUND)
        for order, variant, key in round_keys(manifest)
    )


def round_keys(manifest: Manifest) -> Iterator[tuple[int, Variant, tuple[str, str, int]]]:
    """Order, variant and key of each cell: round by round, every second round reversed."""
    planned = [entry.variant for entry in manifest.variants if entry.planned]
    order = manifest.warmup + sizing_count(manifest)
    for repeat in range(1, manifest.repeats + 1):
        for variant in planned if repeat % 2 else planned[::-1]:
            for probe in manifest.probes:
                yield order, variant, (variant.id, probe.name, repeat)
                order += 1


def cell(
    manifest: Manifest,
    engine: Engine,
    variant: Variant,
    key: tuple[str, str, int],
    *,
    order: int,
    purpose: Purpose,
    pinned: bool | None = None,
    base: Sequence[str] | None = None,
) -> Cell:
    """One cell of a variant.

    Args:
        manifest: of the matrix.
        engine: combines flags.
        variant: whose placement it runs.
        key: id (of an extra run, if it is one), probe and repeat.
        order: position in the planned order.
        purpose: why it is run.
        pinned: with the pinned recipe; as the user asked if not given.
        base: flags in place of the user's, such as with another cache size.
    """
    name, probe, repeat = key
    pinned = manifest.pinned.asked if pinned is None else pinned
    base = base_flags(manifest, pinned=pinned) if base is None else base
    is_baseline = variant.id == manifest.variants[0].variant.id
    return Cell(
        variant=name,
        of=variant.id,
        probe=probe,
        repeat=repeat,
        order=order,
        purpose=purpose,
        flags=tuple(base) if is_baseline else engine.combine(base, variant.flags),
        env=(*base_env(manifest, pinned=pinned), *variant.env),
    )
