"""Matrix files: TOML in, variants out, every mistake with its line.

The JSON schema for editors is written by
``python -m hetero_test.plan.matrix > matrices/schema.json``.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from hetero_test.engines import ENGINES, names
from hetero_test.errors import MatrixError, UsageError
from hetero_test.formats import files
from hetero_test.formats.toml_lines import Located, complaints, load, parse, suggestion
from hetero_test.launch.leftovers import MARK_VARIABLE
from hetero_test.resources import folder
from hetero_test.values.record import MatrixFacts
from hetero_test.values.variant import BASELINE_PURPOSE, Needs, Variant

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
SET_ALWAYS = ("LC_ALL", MARK_VARIABLE)
"""Variables that every launch sets; see :mod:`hetero_test.launch.process`."""
EXTRA_RUN_SUFFIXES = "fspcw"
"""Letters that extra runs append to a variant's id; see :mod:`hetero_test.session.schedule`."""


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=True)


class _Needs(_Table):
    """What the rig and the model flags must bring."""

    devices: Annotated[
        str | int | None,
        Field(description='number of devices: ">=2", "==1", "<=4", or a number that must be there'),
    ] = None
    drafter: Annotated[bool | None, Field(description="whether a drafter must be given")] = None
    experts: Annotated[
        bool | None, Field(description="whether the model must be a mixture of experts")
    ] = None


class _Baseline(_Table):
    """Variant 0: the user's own command, untouched."""

    id: Id = "0"
    name: str = BASELINE_PURPOSE
    on_device: Annotated[
        dict[str, str],
        Field(description="environment that shows the engine one device alone; {device} is filled"),
    ] = {}


class _Variant(_Table):
    """One placement."""

    id: Annotated[Id, Field(description="short and unique; appears in tables and folder names")]
    name: Annotated[str, Field(description="what it does, in a few words")]
    flags: Annotated[list[str], Field(description="appended to the user's model flags")] = []
    env: Annotated[dict[str, str], Field(description="set in the engine's environment")] = {}
    needs: _Needs = _Needs()
    effect: Annotated[
        dict[str, str | int],
        Field(description='what the log must prove: a place, "as picked" or "no trace"'),
    ] = {}
    claims: Annotated[
        bool, Field(description="false: compared and shown, but not claimed to be bit-exact")
    ] = True
    for_each: Annotated[
        Literal["device", "other_device"] | None,
        Field(description="one variant for each device; {device} in flags, env, name, effect"),
    ] = None


class _Pinned(_Table):
    """The recipe that removes known sources of difference."""

    flags: list[str] = []
    env: dict[str, str] = {}


class _Harmless(_Table):
    """Lines that the user knows to be harmless on this rig."""

    lines: Annotated[
        list[str],
        Field(description="regular expressions; a line that one matches never speaks against"),
    ] = []

    @field_validator("lines")
    @classmethod
    def _compile(cls, lines: list[str]) -> list[str]:
        for line in lines:
            try:
                found = re.compile(line).search("")
            except re.error as error:
                raise ValueError(f"not a regular expression: {line!r}: {error}") from error
            if found is not None:
                raise ValueError(f"matches every line: {line!r}")
        return lines


class MatrixFile(_Table):
    """A matrix file: the variants of one engine and how to tell that they took effect."""

    engine: Annotated[
        str,
        Field(
            description=f"engine family: {', '.join(ENGINES)}, or one of an installed package "
            "with an entry point in hetero_test.engines"
        ),
    ]
    note: Annotated[str | None, Field(description="shown in the plan and the report")] = None
    owns: Annotated[
        list[str], Field(description="flags refused after --; this file sets them")
    ] = []
    baseline: _Baseline = _Baseline()
    variant: Annotated[list[_Variant], Field(min_length=1)]
    pinned: _Pinned = _Pinned()
    harmless: _Harmless = _Harmless()


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A validated matrix.

    Attributes:
        owns: flags that the user may not give after ``--``.
        baseline: variant 0, without flags.
        on_device: environment that shows the engine one device alone.
        variants: in file order, placeholders not filled in yet.
        pinned_flags: of the pinned recipe, with ``pinned_env``.
        harmless: regular expressions of lines that never speak against a placement.
    """

    engine: str
    note: str | None
    owns: tuple[str, ...]
    baseline: Variant
    on_device: tuple[tuple[str, str], ...]
    variants: tuple[Variant, ...]
    pinned_flags: tuple[str, ...]
    pinned_env: tuple[tuple[str, str], ...]
    harmless: tuple[str, ...]
    facts: MatrixFacts


def shipped() -> tuple[str, ...]:
    """Names of the matrices that come with the program."""
    return tuple(sorted(path.stem for path in folder("matrices").glob("*.toml")))


def find(name: str) -> Matrix:
    """A shipped matrix by name, or a file by path.

    Raises:
        UsageError: there is neither.
        MatrixError: the file does not hold together; every complaint with ``file:line``.
    """
    if "/" not in name and not name.endswith(".toml"):
        if name not in shipped():
            raise UsageError(
                f"--matrix {name}: no matrix of that name{suggestion(name, shipped())}",
                hint=f"shipped are {', '.join(shipped())}; a file of your own ends in .toml",
            )
        text = (folder("matrices") / f"{name}.toml").read_text(encoding="utf-8")
        facts = MatrixFacts(name=name, path=f"{name}.toml", sha256=_hash(text.encode()))
        return _build(parse(text, name=f"matrices/{name}.toml"), facts)
    path = Path(name)
    located = load(path, what="matrix file")
    facts = MatrixFacts(name=path.stem, path=str(path), sha256=_hash(_content(path)))
    return _build(located, facts)


def _content(path: Path) -> bytes:
    try:
        return files.read_bytes(path, most=files.WRITTEN_BY_HAND)
    except OSError as error:
        raise MatrixError((f"{path}: cannot read this matrix file: {error.strerror}",)) from error


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


def _build(located: Located, facts: MatrixFacts) -> Matrix:
    """Validate and convert; all complaints at once."""
    found: tuple[str, ...] = ()
    parsed: MatrixFile | None = None
    try:
        parsed = MatrixFile.model_validate(located.data)
    except ValidationError as error:
        found = complaints(located, error, MatrixFile)
    found += _check(located)
    if parsed is None or found:
        raise MatrixError(tuple(sorted(set(found), key=_line)))
    return Matrix(
        engine=parsed.engine,
        note=parsed.note,
        owns=tuple(parsed.owns),
        baseline=Variant(id=parsed.baseline.id, name=parsed.baseline.name),
        on_device=tuple(parsed.baseline.on_device.items()),
        variants=tuple(_variant(entry) for entry in parsed.variant),
        pinned_flags=tuple(parsed.pinned.flags),
        pinned_env=tuple(parsed.pinned.env.items()),
        harmless=tuple(parsed.harmless.lines),
        facts=facts,
    )


def _line(complaint: str) -> tuple[int, str]:
    found = re.match(r".*?:(\d+): ", complaint)
    return (int(found.group(1)) if found else 0, complaint)


def _variant(entry: _Variant) -> Variant:
    return Variant(
        id=entry.id,
        name=entry.name,
        flags=tuple(entry.flags),
        env=tuple(entry.env.items()),
        needs=Needs(
            devices=devices_needed(entry.needs.devices),
            drafter=entry.needs.drafter,
            experts=entry.needs.experts,
        ),
        effect=tuple((part, str(value)) for part, value in entry.effect.items()),
        claims=entry.claims,
        for_each=entry.for_each,
    )


def devices_needed(value: str | int | None) -> tuple[str, int] | None:
    """``">=2"`` as ``(">=", 2)``; a bare number means at least that many.

    Raises:
        ValueError: it is neither.
    """
    if value is None:
        return None
    if isinstance(value, int):
        if value < 1:
            raise ValueError(f"not a number of devices: {value} (at least 1)")
        return (">=", value)
    found = re.fullmatch(r"\s*(>=|==|<=)?\s*(\d{1,4})\s*", value)
    if found is None:
        raise ValueError(f'not a number of devices: {value!r} (write ">=2", "==1" or "<=4")')
    return (found.group(1) or ">=", int(found.group(2)))


def _check(located: Located) -> tuple[str, ...]:
    """What the shapes alone cannot tell; looks only at parts that have the right shape."""
    found = []
    engine = located.data.get("engine")
    if isinstance(engine, str) and engine not in ENGINES and engine not in (known := names()):
        text = f"unknown engine {engine!r}{suggestion(engine, known)}"
        found.append(located.complaint(("engine",), f"{text} (known: {', '.join(known)})"))
    entries = located.data.get("variant")
    if not isinstance(entries, list):
        return tuple(found)
    baseline = located.data.get("baseline")
    base_id = baseline.get("id", "0") if isinstance(baseline, dict) else "0"
    for table, key in (("baseline", "on_device"), ("pinned", "env")):
        values = located.data.get(table)
        if isinstance(values, dict):
            found += _check_env(located, (table, key), values.get(key))
    seen: dict[object, str] = {base_id: "the baseline"}
    placements: dict[str, str] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, dict):
            found += _check_variant(located, index, entry, seen, placements)
    for index, entry in enumerate(entries):
        name = entry.get("id") if isinstance(entry, dict) else None
        if isinstance(name, str) and name[-1:] in EXTRA_RUN_SUFFIXES and name[:-1] in seen:
            text = f"{name!r} is the name of extra runs of variant {name[:-1]!r}; choose another"
            found.append(located.complaint(("variant", index, "id"), text))
    return tuple(found)


def _check_variant(
    located: Located,
    index: int,
    entry: dict[str, object],
    seen: dict[object, str],
    placements: dict[str, str],
) -> list[str]:
    found = []
    where = ("variant", index)
    name = entry.get("id")
    if isinstance(name, str):
        if name in seen:
            text = f"{name!r} is already the id of {seen[name]}"
            found.append(located.complaint((*where, "id"), text))
        seen.setdefault(name, f"variant[{index}]")
    found += _check_env(located, (*where, "env"), entry.get("env"))
    needs = entry.get("needs")
    devices = needs.get("devices") if isinstance(needs, dict) else None
    if isinstance(devices, str | int) and not isinstance(devices, bool):
        try:
            devices_needed(devices)
        except ValueError as error:
            found.append(located.complaint((*where, "needs", "devices"), str(error)))
    if not entry.get("flags") and not entry.get("env"):
        found.append(located.complaint(where, "it sets no flags and no env, so it is the baseline"))
    else:
        placement = json.dumps([entry.get("flags"), entry.get("env")], default=str, sort_keys=True)
        if entry.get("for_each") is not None and "{" not in placement:
            text = "neither flags nor env hold a {placeholder}, so it would be the same each time"
            found.append(located.complaint((*where, "for_each"), text))
        if placement in placements:
            found.append(
                located.complaint(where, f"the same flags and env as {placements[placement]}")
            )
        placements.setdefault(placement, f"variant[{index}]")
    flags = entry.get("flags")
    for position, flag in enumerate(flags if isinstance(flags, list) else ()):
        if isinstance(flag, str) and "\0" in flag:
            path = (*where, "flags", position)
            found.append(located.complaint(path, "a flag cannot hold a NUL character"))
    return found


def _check_env(located: Located, where: tuple[str | int, ...], env: object) -> list[str]:
    """Variables that no process can be given, or that the harness sets whatever a file says."""
    found = []
    for name, value in env.items() if isinstance(env, dict) else ():
        if not name or "=" in name or "\0" in name:
            found.append(f"{name!r} is no name of an environment variable")
        elif name in SET_ALWAYS:
            found.append(f"hetero-test sets {name} itself, so this would change nothing")
        elif isinstance(value, str) and "\0" in value:
            found.append(f"the value of {name} holds a NUL character")
    return [located.complaint(where, text) for text in found]


def schema() -> str:
    """The JSON schema of a matrix file, as it is committed."""
    made = MatrixFile.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "hetero-test matrix"
    return json.dumps(made, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema())
