"""Why the engine stops before it prints a stream: its message and its exit code."""

from __future__ import annotations


class EngineStopError(Exception):
    """The run ends here.

    Args:
        message: the text for stderr, without the program's prefix.
        code: the exit code: 2 where the flags are refused, early or late, else 1.
        usage: whether the usage text follows the message.
        prefixed: whether ``strata generate:`` precedes the message.
    """

    def __init__(
        self, message: str, *, code: int = 1, usage: bool = False, prefixed: bool = True
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.usage = usage
        self.prefixed = prefixed


def refused(message: str) -> EngineStopError:
    """A refusal of the flags: exit code 2."""
    return EngineStopError(message, code=2)


def failed(message: str) -> EngineStopError:
    """A failure at run time: exit code 1."""
    return EngineStopError(message, code=1)
