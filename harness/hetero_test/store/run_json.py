"""``run.json``: a judged record as the JSON document that other programs read, and stored values.

:func:`document` gives schema ``hetero-test/run/1``, first version; unknown is null, never 0.
:func:`to_data` and :func:`from_file` write any frozen value and read it back; pydantic rebuilds
it from its annotations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from hetero_test.errors import StoreError
from hetero_test.formats.files import STORED, read_bytes
from hetero_test.formats.json import JsonError, parse_object
from hetero_test.publish.printable import json_text
from hetero_test.values.verdict import Result

if TYPE_CHECKING:
    from pathlib import Path

    from hetero_test.values.record import Record
    from hetero_test.values.run import Run
    from hetero_test.values.variant import PlannedVariant
    from hetero_test.values.verdict import Explanation, Judgment, VariantSummary, Verdict

SCHEMA = "hetero-test/run/1"


def document(
    record: Record, judgment: Judgment, folders: Mapping[tuple[str, str, str, int], str]
) -> dict[str, Any]:
    """The whole of a run directory as plain data; for the arguments see :func:`pieces`."""
    parts = _parts(record, judgment, folders)
    return {name: list(part) if isinstance(part, Iterator) else part for name, part in parts}


def pieces(
    record: Record, judgment: Judgment, folders: Mapping[tuple[str, str, str, int], str]
) -> Iterator[str]:
    """The text of the same, a run at a time: the whole of long streams is many times the record.

    Args:
        record: what was asked and what came of it.
        judgment: what the judge made of it.
        folders: where each run's files lie, relative to the run directory, by
            (list name, variant, probe, repeat).
    """
    before = "{"
    for name, part in _parts(record, judgment, folders):
        yield f"{before}{_json(name)}: "
        before = ", "
        if isinstance(part, Iterator):
            yield "["
            for place, each in enumerate(part):
                yield (", " if place else "") + _json(each)
            yield "]"
        else:
            yield _json(part)
    yield "}\n"


def _parts(
    record: Record, judgment: Judgment, folders: Mapping[tuple[str, str, str, int], str]
) -> Iterable[tuple[str, Any]]:
    """Keys and values in their order; runs are made plain one by one, as they are asked for."""
    manifest = record.manifest
    summaries = {summary.id: summary for summary in judgment.summaries}

    def listed(name: str, runs: tuple[Run, ...]) -> Iterator[dict[str, Any]]:
        return (_run(run, folders.get((name, *run.key))) for run in runs)

    return {
        "schema": SCHEMA,
        "conclusion": judgment.conclusion.value,
        "headline": judgment.headline,
        "reason": judgment.reason,
        "counts": {result.value.lower(): judgment.count(result) for result in Result},
        "ending": record.ending.value,
        "ending_reason": record.ending_reason,
        "harness": manifest.harness,
        "started": manifest.started,
        "engine": to_data(manifest.engine) | {"version": _version(record)},
        "matrix": to_data(manifest.matrix),
        "model": [to_data(file) for file in manifest.model],
        "model_flags": list(manifest.model_flags),
        "env": dict(manifest.env),
        "inherited": dict(manifest.inherited),
        "pinned": to_data(manifest.pinned),
        "strict": manifest.strict,
        "probes": [to_data(probe) for probe in manifest.probes],
        "repeats": manifest.repeats,
        "rig": to_data(manifest.rig),
        "variants": [_variant(e, summaries[e.variant.id]) for e in manifest.variants],
        "runs": listed("runs", record.runs),
        "warmup": listed("warmup", record.warmup),
        "rechecks": listed("rechecks", record.rechecks),
        "verdicts": [_verdict(verdict) for verdict in judgment.verdicts],
        "clusters": [
            {
                "letter": cluster.letter,
                "md5": cluster.md5,
                "residency": list(cluster.residencies),
                "runs": [
                    {"variant": name, "probe": probe, "repeat": repeat}
                    for name, probe, repeat in cluster.runs
                ],
            }
            for cluster in judgment.clusters
        ],
        "warnings": list(judgment.warnings),
        "evidence": to_data(judgment.evidence),
        "noted": list(record.warnings),
    }.items()


def _version(record: Record) -> str | None:
    told = (v for run in record.runs if (v := run.reading.version) is not None)
    return next(told, record.manifest.engine.version)


def _variant(entry: PlannedVariant, summary: VariantSummary) -> dict[str, Any]:
    return {
        "id": entry.variant.id,
        "name": entry.variant.name,
        "flags": list(entry.variant.flags),
        "env": dict(entry.variant.env),
        "planned": entry.planned,
        "why_not": entry.why_not,
        "refused": entry.refused,
        "effect": None if summary.effect is None else summary.effect.value,
        "moved": None if summary.moved is None else summary.moved.value,
        "doubts": list(summary.doubts),
        "exact": summary.exact,
        "summary": summary.text,
    }


_OWN_FILE_ONLY = frozenset(
    # Of the cell and the process: what the command line and the state say already.
    {"flags", "env_delta", "unset", "cwd", "stopped", "start_error"}
    | {"leftovers", "output_truncated", "dialogue_error"}
    # Of the output: texts, and what would be as long as the prompt or the stream once more.
    | {"stream_trouble", "echo", "echo_expected", "echo_trouble", "end_of_sequence", "vocabulary"}
    | {
        "signs",
        "remarks",
        "sightings",
        "picked",
        "chances",
        "chances_trouble",
        "version",
        "lines",
        "tail",
    }
    # What stands under its own name in ``context``, and what is a rendering of it.
    | {"main", "draft", "movers", "causes", "cache", "rows"}
    | {"timings"}  # each of which stands for itself
)
"""Facts of a run that stand in the run's own file and not in the document of all runs."""


def _run(run: Run, folder: str | None) -> dict[str, Any]:
    """One flat object: every fact of every part, under its own name."""
    shown: dict[str, Any] = {}
    for part in (run.cell, run.finding, run.outcome, run.reading, run.timings):
        shown |= {
            each.name: _plain(getattr(part, each.name))
            for each in fields(part)
            if each.name not in _OWN_FILE_ONLY
        }
    return shown | {
        "env": dict(run.cell.env),
        "context": _plain(run.reading.recorded),
        "tokens": None if run.stream is None else len(run.stream),
        "stop_reason": run.stop_reason,
        "md5": run.md5,
        "residency": {"known": run.residency.known, **to_data(run.residency)}
        | {"facts": dict(run.residency.facts)},
        "effect": _plain(run.effect),
        "effect_parts": _plain(run.effect_parts),
        "warnings": list(run.warnings),
        "folder": folder,
    }


def _explanation(explanation: Explanation) -> dict[str, Any]:
    def candidates(top: tuple[tuple[int, float], ...]) -> list[dict[str, float]]:
        return [{"id": token, "logprob": logprob} for token, logprob in top]

    return {
        "text": explanation.text,
        "tie": None if explanation.tie is None else explanation.tie.value,
        "gap": explanation.gap,
        "bound": explanation.bound,
        "values": explanation.values,
        "this_top": candidates(explanation.this_top),
        "reference_top": candidates(explanation.reference_top),
        "largest_before": explanation.largest_before,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    difference = verdict.difference
    return {
        "kind": verdict.kind.value,
        "variant": verdict.variant,
        "probe": verdict.probe,
        "repeat": verdict.repeat,
        "against": None
        if verdict.against is None
        else {"variant": verdict.against[0], "repeat": verdict.against[1]},
        "result": verdict.result.value,
        "reason": verdict.reason,
        "cause": verdict.cause,
        "explanation": None if verdict.explanation is None else _explanation(verdict.explanation),
        "first_difference": None if difference is None else difference.index,
        "continuations": None
        if difference is None
        else {"this": list(difference.this), "reference": list(difference.reference)},
        "prefix": None if difference is None else difference.prefix,
    }


T = TypeVar("T")


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    """Building one takes longer than using it a hundred times."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def to_data(value: object) -> dict[str, Any]:
    """A frozen value as plain data, keys in the order of its fields."""
    data: dict[str, Any] = _plain(value)
    return data


def _plain(value: Any) -> Any:
    """What JSON can hold; a number that is none is unknown, and unknown is null."""
    if type(value) is int or type(value) is str:  # most of what there is
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, PurePath):
        return str(value)
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(held) for key, held in value.items()}
    return [held if type(held) is int else _plain(held) for held in value]


def to_text(value: object, *, schema: str) -> str:
    """A frozen value as a JSON text that names its schema."""
    return dumps({"schema": schema, **to_data(value)})


def dumps(data: dict[str, Any]) -> str:
    """A JSON text that any program can read, and nobody is misled by."""
    return json_text(data)


def _json(data: Any) -> str:
    return json_text(data).rstrip("\n")


def from_file(path: Path, kind: type[T], *, schema: str) -> T:
    """The value that a file holds.

    Raises:
        StoreError: the file cannot be read, is cut short, or is of another schema.
    """
    data = load(path)
    if (held := data.pop("schema", None)) != schema:
        name = schema.rpartition("/")[0]
        if isinstance(held, str) and held.rpartition("/")[0] == name:
            raise StoreError(
                f"{path}: it holds {held}, and this version of hetero-test reads {schema}",
                hint="use the version that wrote it, or run the matrix again into another --out",
            )
        raise StoreError(
            f"{path}: it does not hold {schema}",
            hint="it was written by something else than hetero-test, or was changed since",
        )
    try:
        value: T = _adapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise StoreError(f"{path}: {where}: {first['msg']}") from error
    if (key := _other_key(data, to_data(value))) is not None:
        raise StoreError(f"{path}: {key}: it is missing, unknown, or of another type")
    return value


def _other_key(held: object, meant: object) -> str | None:
    """Where a file differs from what its value would be written as; None where nowhere.

    A value that was quietly converted, or filled in for a key that is missing, is none that
    this program wrote.
    """
    if not isinstance(held, dict) or not isinstance(meant, dict):
        return None if held == meant else ""
    for key in dict.fromkeys((*held, *meant)):
        if key not in held or key not in meant:
            return str(key)
        if (inner := _other_key(held[key], meant[key])) is not None:
            return f"{key}.{inner}" if inner else str(key)
    return None


def load(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        StoreError: it cannot be read, or is no JSON object.
    """
    try:
        return parse_object(read_bytes(path, most=STORED))
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    except JsonError as error:
        raise StoreError(f"{path}: not what was written: {error}") from error
