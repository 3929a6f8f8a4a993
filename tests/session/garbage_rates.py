"""How often the rules on garbage err: ``python -m tests.session.garbage_rates`` prints a table.

Sound streams are text-like (Zipf with local repetition), code-like (a few shapes of lines whose
names differ) and random; garbage is what broken engines print: one id, few ids, loops, counters,
the prompt again, each with a share of its ids replaced at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from hetero_test.session.garbage import garbage

VOCABULARY = 32_000
STREAMS = 1_000
_WEIGHTS = [1 / (rank + 3) ** 1.1 for rank in range(VOCABULARY)]
_IDS = range(VOCABULARY)

Maker = Callable[[random.Random, int], list[int]]


def text_like(drawn: random.Random, length: int) -> list[int]:
    """Words by Zipf's law; three in ten were said among the last forty."""
    ids: list[int] = []
    for fresh in drawn.choices(_IDS, _WEIGHTS, k=length):
        again = ids and drawn.random() < 0.3
        ids.append(drawn.choice(ids[-40:]) if again else fresh)
    return ids


def code_like(drawn: random.Random, length: int) -> list[int]:
    """Lines of three shapes: indent and brackets come back, names and numbers differ."""
    shapes = [[drawn.randrange(200) for _ in range(drawn.randint(3, 8))] for _ in range(3)]
    ids: list[int] = []
    while len(ids) < length:
        for token in drawn.choice(shapes):
            ids.append(token)
            if drawn.random() < 0.5:
                ids.append(drawn.randrange(VOCABULARY))
    return ids[:length]


def random_ids(drawn: random.Random, length: int) -> list[int]:
    """Any ids."""
    return [drawn.randrange(VOCABULARY) for _ in range(length)]


def _noisy(ids: list[int], drawn: random.Random) -> list[int]:
    return [drawn.randrange(VOCABULARY) if drawn.random() < 0.03 else token for token in ids]


def one_id(drawn: random.Random, length: int) -> list[int]:
    """One id over and over."""
    return _noisy([drawn.randrange(VOCABULARY)] * length, drawn)


def blocks(drawn: random.Random, length: int) -> list[int]:
    """One id eight times, then another, of a few."""
    few = [drawn.randrange(VOCABULARY) for _ in range(3)]
    return _noisy([few[place // 8 % 3] for place in range(length)], drawn)


def loop(drawn: random.Random, length: int) -> list[int]:
    """A loop of one to eight ids."""
    ring = [drawn.randrange(VOCABULARY) for _ in range(drawn.randint(1, 8))]
    return _noisy([ring[place % len(ring)] for place in range(length)], drawn)


def counter(drawn: random.Random, length: int) -> list[int]:
    """Each id one more than the one before."""
    first = drawn.randrange(VOCABULARY - length)
    return _noisy(list(range(first, first + length)), drawn)


SOUND: dict[str, Maker] = {"text-like": text_like, "code-like": code_like, "random": random_ids}
BROKEN: dict[str, Maker] = {
    "one id": one_id,
    "few ids in blocks": blocks,
    "loop of 1 to 8 ids": loop,
    "counter": counter,
}


def share(make: Maker, length: int, streams: int = STREAMS) -> float:
    """The share of streams that are called garbage."""
    drawn = random.Random(length)
    return sum(garbage(make(drawn, length)) is not None for _ in range(streams)) / streams


def main() -> None:
    """Print the table."""
    print("| streams | called garbage at 60 ids | at 512 ids |\n|---|--:|--:|")
    for name, make in {**SOUND, **BROKEN}.items():
        print(f"| {name} | {share(make, 60):.1%} | {share(make, 512, 200):.1%} |")


if __name__ == "__main__":
    main()
