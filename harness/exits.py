"""A judged record to the exit code that a CI job gates on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import ExitCode
from harness.record import Ending
from harness.verdict import Conclusion

if TYPE_CHECKING:
    from harness.record import Record
    from harness.verdict import Judgment

ENDINGS = {
    Ending.INTERRUPTED: ExitCode.INTERRUPTED,
    Ending.TOTAL_TIMEOUT: ExitCode.TOTAL_TIMEOUT,
    Ending.BROKEN: ExitCode.COULD_NOT_FINISH,
}
CONCLUSIONS = {
    Conclusion.PASS: ExitCode.PASS,
    Conclusion.FAIL: ExitCode.FAIL,
    Conclusion.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
}


def conclusion_code(judgment: Judgment) -> ExitCode:
    """What a judgment alone amounts to, however its matrix ended."""
    return CONCLUSIONS[judgment.conclusion]


def exit_code(record: Record, judgment: Judgment) -> ExitCode:
    """How an early end, else the conclusion, is told to the caller."""
    return ENDINGS.get(record.ending, conclusion_code(judgment))
