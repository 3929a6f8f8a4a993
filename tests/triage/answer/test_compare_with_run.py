"""A prediction beside a run."""

from __future__ import annotations

from typing import Any

import pytest

from hetero_test.errors import UsageError
from hetero_test.triage.answer.compare_with_run import Compared, predicted_vs_measured

INTERVAL = {"low": 18.0, "value": 20.0, "high": 22.0}


def option(key: str, flags: str, **changes: Any) -> dict[str, Any]:
    """One option of a prediction."""
    return {
        "key": key,
        "title": f"title of {key}",
        "incumbent": False,
        "decode_tok_s": INTERVAL,
        "prefill_tok_s": None,
        "flags": [{"engine": "llama.cpp", "flags": flags}],
    } | changes


def prediction(*options: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A document of a prediction."""
    return {"schema": "hetero-test/triage/1", "options": list(options), "incumbent": None} | changes


def run_json(
    variants: list[tuple[str, list[str]]], speeds: dict[str, list[float]]
) -> dict[str, Any]:
    """A document of a run."""
    return {
        "schema": "hetero-test/run/1",
        "model_flags": ["-m", "x.gguf", "-ngl", "99"],
        "variants": [{"id": name, "name": f"v {name}", "flags": flags} for name, flags in variants],
        "runs": [
            {
                "variant": name,
                "state": "OK",
                "repeat": repeat,
                "decode_tok_s": speed,
                "prefill_tok_s": None,
            }
            for name, listed in speeds.items()
            for repeat, speed in enumerate(listed, 1)
        ],
    }


def test_variants_meet_options_by_what_their_flags_place() -> None:
    """The user's flags and the variant's together are the placement; the median is compared."""
    told = prediction(option("layers", "-dev A,B -ngl 99 -sm layer -ts 1,1"))
    run = run_json([("1", ["-dev", "A,B", "-ts", "2,2"])], {"1": [18.0, 30.0, 19.0]})
    (row,) = predicted_vs_measured(told, run)
    assert row.option == "title of layers"
    assert row.measured == 19.0
    assert row.gap == pytest.approx(-0.05)
    assert row.inside is True


def test_a_variant_named_after_an_option_is_that_option() -> None:
    """For engines whose flags say nothing that is read here."""
    told = prediction(option("mine", ""))
    run = run_json([("1", [])], {"1": [25.0]})
    run["variants"][0]["name"] = "mine"
    (row,) = predicted_vs_measured(told, run)
    assert (row.option, row.inside) == ("title of mine", False)


def test_the_users_own_command_stands_beside_what_was_compared_with() -> None:
    """The incumbent among the options, else the speeds that were given for it."""
    told = prediction(option("alone", "-dev A -sm none", incumbent=True))
    run = run_json([("0", [])], {"0": [21.0]})
    run["model_flags"] = ["-m", "x.gguf"]
    (row,) = predicted_vs_measured(told, run)
    assert row.option == "title of alone"
    incumbent = {"label": "as told", "decode_tok_s": 22.0, "prefill_tok_s": None}
    (row,) = predicted_vs_measured(prediction(incumbent=incumbent), run)
    assert (row.option, row.predicted, row.inside) == ("as told", 22.0, None)


def test_what_only_one_side_knows_is_shown_without_a_gap() -> None:
    """No prediction, no usable run, no speed: never a zero."""
    told = prediction(option("layers", "-dev A,B -ngl 99 -ts 1,1", prefill_tok_s=INTERVAL))
    run = run_json([("1", ["-dev", "A,B", "-ts", "1,1"]), ("2", ["-sm", "none"])], {"2": [9.0]})
    run["runs"][0]["state"] = "CRASHED"
    rows = predicted_vs_measured(told, run)
    assert [(row.variant, row.speed, row.measured, row.gap) for row in rows] == [
        ("1", "decode", None, None),
        ("1", "prefill", None, None),
    ]
    run["runs"][0]["state"] = "OK"
    last = predicted_vs_measured(told, run)[-1]
    assert (last.variant, last.option, last.predicted, last.measured) == ("2", None, None, 9.0)


def test_another_schema_is_refused() -> None:
    """For a file that is not a prediction the message says how to make one."""
    with pytest.raises(UsageError, match="triage … --json"):
        predicted_vs_measured({"schema": "hetero-test/run/1"}, run_json([], {}))


def test_a_gap_is_measured_over_predicted() -> None:
    """Plus means that it was faster than predicted."""
    row = Compared(
        variant="1",
        name="",
        speed="decode",
        option="x",
        low=1.0,
        predicted=2.0,
        high=3.0,
        measured=3.0,
    )
    assert row.gap == 0.5
    assert row.inside is True
