"""Deterministic prompts, given as token ids since an engine under test may have no tokenizer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from hetero_test.errors import UsageError
from hetero_test.formats import files
from hetero_test.plan.defaults import MOST_TOKENS
from hetero_test.values.run import Probe

if TYPE_CHECKING:
    from pathlib import Path

FIRST_ID = 1000
"""Lowest id drawn: below it vocabularies keep bytes, digits and control tokens."""
TAIL = 2000
"""Ids left out at the upper end, where vocabularies keep added and unused tokens."""
FLOOR = 2500
"""Lowest upper bound; earlier reports in the field were made with it."""
INT32_MAX = 2**31 - 1


def generated(*, count: int, seed: int, vocab: int, max_new: int, name: str = "default") -> Probe:
    """A prompt drawn as the harness's bash predecessor drew it.

    ``random.seed(seed)``, then ``count`` times ``randrange(1000, max(2500, vocab - 2000))``,
    so that a md5 pasted years ago still compares.

    Args:
        count: number of ids.
        seed: of Python's Mersenne Twister.
        vocab: vocabulary size.
        max_new: new tokens to ask for.
        name: of the probe.

    Raises:
        UsageError: the vocabulary is too small, the ids would lie outside it; or a number is
            larger than any engine can take.
    """
    if not 1 <= count <= MOST_TOKENS:
        raise UsageError(f"a prompt of {count} ids: from 1 to {MOST_TOKENS} can be drawn")
    if vocab > INT32_MAX + 1:
        raise UsageError(f"a vocabulary of {vocab}: ids are 32-bit numbers")
    upper = max(FLOOR, vocab - TAIL)
    if vocab < upper:
        raise UsageError(
            f"a vocabulary of {vocab} is too small for the probe generator, which draws ids from "
            f"{FIRST_ID} to {upper - 1}",
            hint="give a prompt of your own with --tokens-file FILE (ids, blank-separated)",
        )
    draw = random.Random(seed)
    ids = tuple(draw.randrange(FIRST_ID, upper) for _ in range(count))
    return Probe(name=name, ids=ids, max_new=max_new, source=f"seed {seed}, vocabulary {vocab}")


def from_file(path: Path, *, max_new: int, name: str = "default") -> Probe:
    """A prompt from a file of ids separated by blanks, commas or newlines.

    Raises:
        UsageError: the file cannot be read, is empty, or holds something that is not an id.
    """
    try:
        text = files.read_bytes(path, most=files.GIVEN).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"--tokens-file {path}: cannot be read: {reason}") from error
    ids = []
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.replace(",", " ").split():
            if not (
                word.isascii() and word.isdigit() and len(word) <= 10 and int(word) <= INT32_MAX
            ):
                raise UsageError(
                    f"{path}:{number}: {word[:40]!r} is no token id",
                    hint=f"ids are whole numbers from 0 to {INT32_MAX}, separated by blanks",
                )
            ids.append(int(word))
    if not ids:
        raise UsageError(f"--tokens-file {path}: it holds no token id")
    return Probe(name=name, ids=tuple(ids), max_new=max_new, source=f"file {path.name}")
