"""The frame of `hetero_test.report.csv` as Parquet; needs pyarrow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from hetero_test.errors import UsageError
from hetero_test.report.csv import frame

if TYPE_CHECKING:
    from hetero_test.publish.redact import Redactor
    from hetero_test.values.record import Record
    from hetero_test.values.verdict import Judgment


def build(record: Record, judgment: Judgment, *, redactor: Redactor) -> bytes:
    """One row a run, redacted.

    Raises:
        UsageError: pyarrow is not installed.
    """
    out = io.BytesIO()
    try:
        frame(record, judgment, redactor=redactor).to_parquet(out, engine="pyarrow", index=False)
    except ImportError as error:
        raise UsageError(
            "--format parquet: pyarrow is not installed",
            hint="pip install 'hetero-test[parquet]', or take --format csv",
        ) from error
    return out.getvalue()
