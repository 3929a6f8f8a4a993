"""Matrices in which nothing is wrong, drawn by number, and what may be said of them."""

from __future__ import annotations

import random
import re
from typing import Any

HARMLESS = re.compile(
    r"decode speed drifted by|: a cached repeat or a busy machine|^the device list changed"
)
"""Warnings of a busy machine, and of devices that are listed in another order."""
RIGS = ("two_equal", "two_equal", "two_unequal", "two_unequal", "one")


def options(number: int) -> tuple[str, ...]:
    """What is asked of the bundled engine in one of many healthy matrices.

    Prompts by seed and length, streams of other lengths, subsets, warm-ups, repeats, the recipe.
    """
    draw = random.Random(number)
    rig = draw.choice(RIGS)
    words = ["--rig", rig, "--seed", str(number), "--tokens", str(draw.choice((17, 94, 130)))]
    words += ["--max-new", str(draw.choice((24, 40, 60))), "--repeats", str(draw.choice((1, 2, 3)))]
    if draw.random() < 0.3:
        words += ["--warmup", str(draw.choice((1, 2)))]
    if draw.random() < 0.2:
        words.append("--pinned")
    if rig == "one":
        return (*words, "--devices", "1")
    if draw.random() < 0.6:
        # 1, 2 and 6 move a part of which the log tells; the others are what goes with them.
        moved = draw.sample("126", draw.choice((1, 2)))
        words += ["--only", ",".join(sorted((*moved, *draw.sample("345", draw.choice((0, 1, 2))))))]
    return tuple(words)


def complaints(told: dict[str, Any]) -> list[str]:
    """What is wrong with the record of a matrix in which nothing is."""
    found = [
        f"{run['variant']} {run['repeat']}: {run['state']} ({run['reason']}): {run['quote']}"
        for run in told["runs"]
        if run["state"] != "OK"
    ]
    found += [text for text in told["warnings"] if not HARMLESS.search(text)]
    found += [f"{v['id']} is DOUBTED" for v in told["variants"] if v["effect"] == "DOUBTED"]
    if told["conclusion"] != "PASS":
        found.append(f"{told['conclusion']}: {told.get('headline')}")
    return found
