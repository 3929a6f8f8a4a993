"""What a CI run of GitHub gets beside the exit code: an annotation and a step summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.publish.printable import printable
from hetero_test.values.verdict import Conclusion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hetero_test.values.verdict import Judgment

SUMMARY_BYTES = 1024 * 1024
"""GitHub refuses the whole summary of a step above this."""
LEVEL = {
    Conclusion.PASS: "notice",
    Conclusion.FAIL: "error",
    Conclusion.INCONCLUSIVE: "warning",
}


def annotation(judgment: Judgment, env: Mapping[str, str]) -> str | None:
    """The workflow command that marks the job, or None outside of GitHub Actions."""
    if env.get("GITHUB_ACTIONS") != "true":
        return None
    text = printable(judgment.headline, 1000)
    # The runner's own escapes; a raw % or newline would end the command early.
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{LEVEL[judgment.conclusion]} title=hetero-test::{text}"


def write_summary(report: str, env: Mapping[str, str]) -> str | None:
    """Append the report to the step summary; returns why it could not, if so."""
    name = env.get("GITHUB_STEP_SUMMARY")
    if not name:
        return None
    try:
        path = Path(name)
        if path.exists() and not path.is_file():  # a pipe would be waited for
            return f"{name}: this step's summary is no file"
        held = path.stat().st_size if path.exists() else 0
        if held + len(report.encode()) > SUMMARY_BYTES:
            return f"{name}: no room for the report in this step's summary"
        with path.open("a", encoding="utf-8") as file:
            file.write(report)
    except OSError as error:
        return f"{name}: {error.strerror}"
    return None
