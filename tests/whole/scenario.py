"""A rig that the scripted engine plays, and what the right answer to it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.rigs import play
from tests.scripted import MODEL_FLAGS, Rule

PASS, FAIL, OPEN = 0, 1, 4


@dataclass(frozen=True)
class Scenario:
    """One rig and its right answer.

    ``states`` and ``effects`` are by variant; ``results`` by (kind, variant); ``said`` are
    texts that the report must hold.
    """

    name: str
    rules: tuple[Rule, ...]
    code: int
    args: tuple[str, ...] = ()
    flags: tuple[str, ...] = MODEL_FLAGS
    states: Mapping[str, list[str]] = field(default_factory=dict)
    results: Mapping[tuple[str, str], list[str]] = field(default_factory=dict)
    effects: Mapping[str, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    build: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def hold(scenario: Scenario, tmp_path: Path, capsys: Any) -> None:
    """Play the rig, and compare everything that the scenario names."""
    told = play(
        tmp_path,
        capsys,
        *scenario.rules,
        args=scenario.args,
        flags=scenario.flags,
        **scenario.build,
    )
    assert told.code == scenario.code, told.stdout + told.stderr
    conclusion = {PASS: "PASS", FAIL: "FAIL", OPEN: "INCONCLUSIVE"}[scenario.code]
    assert told.json["conclusion"] == conclusion
    assert {v: told.states(v) for v in scenario.states} == dict(scenario.states)
    assert {key: told.results(*key) for key in scenario.results} == dict(scenario.results)
    effects = {v["id"]: v["effect"] for v in told.json["variants"]}
    assert {v: effects[v] for v in scenario.effects} == dict(scenario.effects)
    flat = " ".join(told.report.replace("`", "").split())
    for text in scenario.said:
        assert text in flat, told.report
