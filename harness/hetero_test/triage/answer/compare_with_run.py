"""A prediction compared with a run: predicted, measured, and the gap.

Pure: two JSON documents in, rows out. An option of the prediction and a variant of the run belong
together when the variant's flags place alike, or when the variant is named after the option; the
variant that is the user's own command is compared with the prediction's incumbent.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from hetero_test.engines.llama_cpp.placement_flags import parse_text, same_placement
from hetero_test.errors import UsageError
from hetero_test.triage.answer.json import SCHEMA
from hetero_test.triage.options.from_flags import placement_flags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BASELINE = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One speed of one variant, tok/s."""

    variant: str
    name: str
    speed: str
    """``decode`` or ``prefill``."""
    option: str | None
    """Title of the option that predicts it; None: no option does."""
    low: float | None
    predicted: float | None
    high: float | None
    measured: float | None
    """Median over the usable runs; None: no run has it."""

    @property
    def gap(self) -> float | None:
        """Measured over predicted, minus one."""
        if not self.predicted or self.measured is None:
            return None
        return self.measured / self.predicted - 1

    @property
    def inside(self) -> bool | None:
        """Whether what was measured lies in the 80 % interval; None: it has none."""
        if self.low is None or self.high is None or self.measured is None:
            return None
        return self.low <= self.measured <= self.high


def predicted_vs_measured(
    prediction: Mapping[str, Any], run_json: Mapping[str, Any]
) -> list[Compared]:
    """Rows for every variant that was run or is predicted, decode before prefill.

    Args:
        prediction: a document of schema ``hetero-test/triage/1``.
        run_json: a document of schema ``hetero-test/run/1``.

    Raises:
        UsageError: the prediction is of another schema.
    """
    if prediction.get("schema") != SCHEMA:
        raise UsageError(
            f'the prediction\'s schema is {prediction.get("schema")!r}, not "{SCHEMA}"',
            hint="make one with hetero-test triage … --json",
        )
    rows = []
    for variant in run_json.get("variants", []):
        option = _option_for(prediction, run_json, variant)
        for speed in ("decode", "prefill"):
            row = _row(variant, option, prediction, run_json, speed)
            if row.measured is not None or row.predicted is not None:
                rows.append(row)
    return rows


def _option_for(
    prediction: Mapping[str, Any], run_json: Mapping[str, Any], variant: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    options: Sequence[Mapping[str, Any]] = prediction.get("options", [])
    name = str(variant.get("name") or "")
    for option in options:
        if name and name in (option["key"], option["title"]):
            return option
    common = [str(flag) for flag in run_json.get("model_flags") or ()]
    said = placement_flags([*common, *(str(flag) for flag in variant.get("flags") or ())])
    for option in options:
        if any(same_placement(said, parse_text(f["flags"])) for f in option.get("flags", [])):
            return option
    if str(variant.get("id")) == BASELINE:
        return next((option for option in options if option.get("incumbent")), None)
    return None


def _row(
    variant: Mapping[str, Any],
    option: Mapping[str, Any] | None,
    prediction: Mapping[str, Any],
    run_json: Mapping[str, Any],
    speed: str,
) -> Compared:
    key = f"{speed}_tok_s"
    interval = (option or {}).get(key) or {}
    predicted = interval.get("value")
    title = None if option is None else str(option["title"])
    incumbent = prediction.get("incumbent") or {}
    if option is None and str(variant.get("id")) == BASELINE:
        predicted, title = incumbent.get(key), incumbent.get("label")
    return Compared(
        variant=str(variant.get("id")),
        name=str(variant.get("name") or ""),
        speed=speed,
        option=title,
        low=interval.get("low"),
        predicted=predicted,
        high=interval.get("high"),
        measured=measured(run_json.get("runs", []), str(variant.get("id")), key),
    )


def measured(runs: Iterable[Mapping[str, Any]], variant: str, key: str) -> float | None:
    """Median of a speed over the usable runs of a variant; None: no run has it."""
    told = [
        float(run[key])
        for run in runs
        if str(run.get("variant")) == variant and run.get("state") == "OK" and run.get(key)
    ]
    return median(told) if told else None
