"""Greedy token streams: where two part, and which runs have the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hetero_test.values.verdict import Cluster, Difference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hetero_test.values.run import Run

SHOWN = 8
"""How many ids of each continuation are kept for the report."""


def first_difference(this: tuple[int, ...], reference: tuple[int, ...]) -> Difference | None:
    """Where two streams part, or None when they are equal.

    A stream that is a strict prefix of the other parts from it at its own length.
    """
    if this == reference:
        return None
    shorter = min(len(this), len(reference))
    index = next((i for i in range(shorter) if this[i] != reference[i]), shorter)
    prefix = None
    if index == shorter:
        prefix = "this" if index == len(this) else "reference"
    return Difference(
        index=index,
        this=this[index : index + SHOWN],
        reference=reference[index : index + SHOWN],
        prefix=prefix,
    )


def alike(stream: tuple[int, ...]) -> str:
    """That a stream is another's equal, in words, and over which length that was seen."""
    return "equal over " + ("1 token" if len(stream) == 1 else f"{len(stream)} tokens")


def parting(difference: Difference) -> str:
    """Where two streams part, in words."""
    if difference.prefix is None:
        return f"differs from token {difference.index} on"
    shorter = "it is" if difference.prefix == "this" else "the reference is"
    return f"{shorter} a strict prefix: parts at token {difference.index}"


def letter(number: int) -> str:
    """The name of the n-th cluster: A to Z, then AA, AB and so on."""
    out = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        out = chr(ord("A") + digit) + out
    return out


def clusters(runs: Iterable[Run]) -> tuple[Cluster, ...]:
    """One cluster a distinct stream, lettered in the order in which they appear.

    Streams of different probes are different clusters even where their ids are equal.
    """
    found: dict[tuple[str, tuple[int, ...]], list[Run]] = {}
    for run in runs:
        if run.stream is not None:
            found.setdefault((run.probe, run.stream), []).append(run)
    return tuple(
        Cluster(
            letter=letter(number),
            md5=members[0].md5 or "",
            residencies=tuple(dict.fromkeys(run.residency.label for run in members)),
            runs=tuple(run.key for run in members),
        )
        for number, members in enumerate(found.values())
    )


def lettering(runs: Iterable[Run]) -> str:
    """The order of clusters over some runs: ``A B B``."""
    names: dict[tuple[int, ...], str] = {}
    return " ".join(
        names.setdefault(run.stream, letter(len(names))) for run in runs if run.stream is not None
    )
