"""Ids of extra runs: what the schedule names, the plan keeps free, and the judge looks for."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Question(StrEnum):
    """What a further run of both sides would tell; the value ends the ids of those runs."""

    PINNED = "p"
    CONFIRM = "c"


def recheck_id(variant: str, question: Question) -> str:
    """Id of the further runs of one side."""
    return f"{variant}{question}"


def anchor_id(variant: str) -> str:
    """Id of the extra runs that force the baseline's residency on a variant."""
    return f"{variant}f"


def shared_id(variant: str) -> str:
    """Id of the extra runs that share one smaller size with the baseline."""
    return f"{variant}s"


def shared_baseline_id(baseline: str, variant: str) -> str:
    """Id of the baseline's side of a pair whose size no earlier pair has."""
    return f"{shared_id(baseline)}-{variant}"


def home_id(baseline: str, variant: str) -> str:
    """Id of the baseline's runs on the device to which a variant moved the main model."""
    return f"{baseline}-home-{variant}"


def after_hang_id(baseline: str) -> str:
    """Id of the baseline's runs that show whether the rig still works."""
    return f"{baseline}w"


def extra_ids(baseline: str, variants: Iterable[str]) -> frozenset[str]:
    """Every id that extra runs of these variants can have, but for their re-checks."""
    found = {shared_id(baseline), after_hang_id(baseline)}
    for name in variants:
        found |= {anchor_id(name), shared_id(name), home_id(baseline, name)}
        found.add(shared_baseline_id(baseline, name))
    return frozenset(found)
