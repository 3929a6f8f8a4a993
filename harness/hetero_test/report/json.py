"""``run.json`` again, with everything in it fit for publishing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hetero_test.publish.printable import json_text
from hetero_test.store.run_json import document

if TYPE_CHECKING:
    from hetero_test.publish.redact import Redactor
    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Judgment

VECTORS = frozenset({"argv", "model_flags", "flags"})
"""Keys that hold argument vectors, in which a secret is an argument behind its flag."""


def build(record: Record, judgment: Judgment, *, redactor: Redactor) -> str:
    """The JSON document of schema ``hetero-test/run/1``, redacted."""
    data = _redacted(document(record, judgment, {}), redactor)
    return json_text(data, indent=1)


def _redacted(value: Any, redactor: Redactor, key: str = "") -> Any:
    if isinstance(value, str):
        return redactor(value)
    if isinstance(value, dict):
        return {name: _redacted(held, redactor, name) for name, held in value.items()}
    if isinstance(value, list):
        if key in VECTORS and all(isinstance(word, str) for word in value):
            return list(redactor.argv(value))
        return [_redacted(held, redactor) for held in value]
    return value
