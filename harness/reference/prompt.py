"""The prompt: token ids from the command line or a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from harness.reference.failures import EngineStopError, refused

if TYPE_CHECKING:
    from harness.reference.flags import Flags

_LARGEST = 2**31 - 1


def read_prompt(flags: Flags) -> tuple[int, ...]:
    """The ids of the run; they may lie beyond the vocabulary, as in the real engine.

    Raises:
        EngineStopError: none given, two inputs, an unreadable or malformed list.
    """
    if flags.tokens is None and flags.tokens_file is None:
        raise EngineStopError(
            "--tokens is required (this build has no tokenizer; pass token ids with --tokens "
            "or --tokens-file)",
            code=2,
            usage=True,
        )
    if flags.tokens is not None and flags.tokens_file is not None:
        raise refused("supply one token input only")
    if flags.tokens is not None:
        return _ids(flags.tokens, "token list")
    path = Path(flags.tokens_file or "")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise refused(f"cannot open token file {path}") from error
    return _ids(text, "token file")


def _ids(text: str, source: str) -> tuple[int, ...]:
    words = [word for word in re.split(r"[,\s]+", text) if word]
    if not words:
        raise refused(f"malformed {source}: token list was empty")
    ids = []
    for word in words:
        if not re.fullmatch(r"[0-9]{1,10}", word) or int(word) > _LARGEST:
            raise refused(
                f"malformed {source}: invalid token id: expected an integer in [0, {_LARGEST}]"
            )
        ids.append(int(word))
    return tuple(ids)
