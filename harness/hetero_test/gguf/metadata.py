"""Metadata of a GGUF file by its key, whatever prefix the writer chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hetero_test.gguf.header import GgufError, LongArray, TextArray, Value

MAX_LAYERS = 4096
MAX_SIZE = 2**40
"""No width, count or length of a model comes near; a larger number is damage."""

ALIASES: Mapping[str, str] = {"gptoss": "gpt-oss", "gpt-oss": "gptoss"}
"""Ollama writes ``gptoss``, llama.cpp ``gpt-oss``; converters have mixed the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The keys of one model, asked for without their architecture prefix."""

    path: Path
    arch: str
    fields: Mapping[str, Value]

    def find(self, key: str) -> Value | None:
        """The value of ``<arch>.<key>``, of its alias, or of the bare key."""
        for prefix in (self.arch, ALIASES.get(self.arch, self.arch)):
            if (value := self.fields.get(f"{prefix}.{key}")) is not None:
                return value
        return self.fields.get(key)

    def count(self, key: str) -> int | None:
        """A whole number that is not negative; None where the key is missing.

        Raises:
            GgufError: it is something else.
        """
        value = self.find(key)
        return None if value is None else self._whole(key, value)

    def need(self, key: str) -> int:
        """A whole number of at least 1 that the model cannot be understood without.

        Raises:
            GgufError: it is missing, 0 or not a number.
        """
        if not (value := self.count(key)):
            said = "is missing" if value is None else "is 0"
            raise GgufError(f"{self.path}: the key {self.arch}.{key} {said}")
        return value

    def per_layer(self, key: str, layers: int) -> tuple[int, ...] | None:
        """A number for each layer, written as an array or once for all; None where missing.

        An array that is shorter than the layers (the draft head left out) is continued with
        its last value.

        Raises:
            GgufError: it is neither, or an array longer than the layers.
        """
        value = self.find(key)
        if value is None:
            return None
        if isinstance(value, LongArray | TextArray):
            raise GgufError(f"{self.path}: {self.arch}.{key} is no array over the layers")
        if not isinstance(value, tuple):
            return (self._whole(key, value),) * layers
        if not 0 < len(value) <= layers:
            raise GgufError(
                f"{self.path}: {self.arch}.{key} has {len(value)} values for {layers} layers"
            )
        numbers = tuple(self._whole(key, item) for item in value)
        return numbers + (numbers[-1],) * (layers - len(numbers))

    def text(self, key: str) -> str | None:
        """A text; None where the key is missing or not a text."""
        value = self.find(key)
        return value if isinstance(value, str) else None

    def _whole(self, key: str, value: object) -> int:
        if isinstance(value, bool):
            return int(value)
        if not isinstance(value, int) or not 0 <= value < MAX_SIZE:
            raise GgufError(f"{self.path}: {self.arch}.{key} is {value!r:.40}, not a count")
        return value
