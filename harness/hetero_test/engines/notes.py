"""The lines that an engine prints in healthy runs although their words sound like trouble.

Which they are is data, one file beside each engine's reader: a pattern for what may stand
before a message, and by source the patterns of messages, each with an example that it matches.
"""

from __future__ import annotations

import re
import tomllib
from functools import cached_property
from importlib.resources import files


class Notes:
    """The notes of one engine; its file is read when the first line is looked at.

    Args:
        package: the engine's package, in which ``notes.toml`` lies.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def known(self, text: str) -> bool:
        """Whether a line is one of the notes.

        Args:
            text: the whole line, with or without its clock.
        """
        head, messages = self._patterns
        begin = head.match(text)
        return messages.match(text, begin.end() if begin else 0) is not None

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        data = tomllib.loads((files(self._package) / "notes.toml").read_text("utf-8"))
        notes = [note["pattern"] for group in data["group"] for note in group["notes"]]
        return re.compile(data["head"]), re.compile("|".join(f"(?:{note})" for note in notes))
