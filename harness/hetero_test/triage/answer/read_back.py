"""The JSON documents that triage reads back: a prediction, and a run.

Both are files that a user names, and may have been made by another version or edited by hand. So
all parts that are used are checked first; other parts may be anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from hetero_test.formats.json import JsonError, parse_object
from hetero_test.triage.answer.json import SCHEMA as PREDICTION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RUN: Final = "hetero-test/run/1"

_Speed = Annotated[FiniteFloat, Field(ge=0)] | None


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True)


class _Interval(_Shape):
    low: _Speed = None
    value: _Speed = None
    high: _Speed = None


class _Flags(_Shape):
    flags: str


class _Option(_Shape):
    key: str
    title: str
    incumbent: bool = False
    flags: list[_Flags] = []
    decode_tok_s: _Interval | None = None
    prefill_tok_s: _Interval | None = None


class _Incumbent(_Shape):
    label: str | None = None
    decode_tok_s: _Speed = None
    prefill_tok_s: _Speed = None


class _Prediction(_Shape):
    options: list[_Option] = []
    incumbent: _Incumbent | None = None


class _Speculation(_Shape):
    rounds: int | None = None


class _StoredRun(_Shape):
    variant: str
    state: str | None = None
    probe: str | None = None
    repeat: int | None = None
    folder: str | None = None
    decode_tok_s: _Speed = None
    prefill_tok_s: _Speed = None
    speculation: _Speculation | None = None


class _StoredVariant(_Shape):
    id: str
    name: str | None = None
    flags: list[str] | None = None


class _RunDocument(_Shape):
    variants: list[_StoredVariant] = []
    runs: list[_StoredRun] = []
    model_flags: list[str] | None = None


def prediction(text: str | bytes) -> Mapping[str, Any]:
    """A document of schema ``hetero-test/triage/1``: speeds in tok/s, as `triage.answer.json` says.

    Raises:
        JsonError: it is not such a document, with the place.
    """
    return _checked(text, PREDICTION, _Prediction)


def run(text: str | bytes) -> Mapping[str, Any]:
    """A document of schema ``hetero-test/run/1``: speeds in tok/s, as `store.run_json` says.

    Raises:
        JsonError: it is not such a document, with the place.
    """
    return _checked(text, RUN, _RunDocument)


def _checked(text: str | bytes, schema: str, shape: type[_Shape]) -> Mapping[str, Any]:
    document = parse_object(text)
    if document.get("schema") != schema:
        raise JsonError(f'it is not "{schema}"', place="schema")
    try:
        shape.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise JsonError(first["msg"], place=_dotted(first["loc"])) from error
    return document


def _dotted(path: Sequence[str | int]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")
