"""Prints the scores of both halves; with ``open`` also the lines that miss."""

from __future__ import annotations

import sys

from tests.corpus.score import Count, Score, score


def rows(made: Score) -> list[tuple[str, Count]]:
    """What is counted, in the order of the table."""
    noticed = sorted(made.noticed.items())
    every = Count(
        good=sum(count.good for _, count in noticed), all=sum(count.all for _, count in noticed)
    )
    return [
        *((f"{kind.replace('_', ' ')}: noticed", count) for kind, count in noticed),
        ("all failures: noticed", every),
        ("harmless: no run and no matrix worse", made.undisturbed),
        ("harmless: no warning either", made.quiet),
        ("borderline: as their class says", made.borderline),
    ]


def main() -> None:
    """Print the table."""
    halves = {half: score(half) for half in ("open", "kept")}
    print("| | open | kept |\n|---|---|---|")
    table: dict[str, dict[str, Count]] = {}
    for half, made in halves.items():
        for name, count in rows(made):
            table.setdefault(name, {})[half] = count
    for name, counts in table.items():
        print(f"| {name} | " + " | ".join(str(counts.get(half, "-")) for half in halves) + " |")
    if sys.argv[1:2] == ["open"]:
        for name, count in rows(halves["open"]):
            for each in count.others:
                told = f"{each.drawn.line.id} {each.drawn.engine} {each.state}"
                print(f"{name}: {told}: {each.drawn.line.text}")


if __name__ == "__main__":
    main()
