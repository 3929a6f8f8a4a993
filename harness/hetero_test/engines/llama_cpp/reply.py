"""What ``POST /completion`` of a llama-server answers, as it was written beside the log."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from hetero_test.formats.files import STORED, read_bytes
from hetero_test.formats.json import JsonError, parse_object
from hetero_test.values.reading import Sign, Symptom, TokenChance

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE: Final = "reply.json"
CANDIDATES: Final = 12
"""Best candidates asked for at each token. A report shows five. How far two placements
differ by rounding is measured where their streams part, on the candidates that neither chose; five
would leave too few."""


def request(ids: Sequence[int], max_new: int) -> dict[str, Any]:
    """The body of ``POST /completion``: greedy, nothing cached, ids in and out.

    The fields are those of llama.cpp's ``tools/server/README.md``; a server that does not know
    ``return_tokens`` answers with text alone, which is a state of its own.

    Args:
        ids: the prompt.
        max_new: tokens wanted, whatever the model takes for an end.
    """
    return {
        "prompt": list(ids),
        "n_predict": max_new,
        "temperature": 0,
        "top_k": 1,
        "seed": 1,
        "ignore_eos": True,
        "cache_prompt": False,
        "return_tokens": True,
        "n_probs": CANDIDATES,
        "stream": False,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer.

    Attributes:
        tokens: the ids; None where the answer holds none that could be a stream.
        trouble: why there are none.
        prompt_tokens: how many prompt ids the engine says it evaluated or had cached.
        prompt_trouble: why it is not proven that this run computed the whole prompt; None if it is.
        end_of_sequence: it stopped at an end-of-sequence token.
        chances: of every token, as far as the engine gives them.
        timings: as they came.
        signs: values that are no numbers, and settings that are not greedy.
    """

    tokens: tuple[int, ...] | None = None
    trouble: str | None = None
    prompt_tokens: int | None = None
    prompt_trouble: str | None = None
    end_of_sequence: bool = False
    chances: tuple[TokenChance, ...] = ()
    timings: dict[str, float]
    signs: tuple[Sign, ...] = ()


def load(folder: Path) -> Reply:
    """The answer in a run's folder; one that is missing or broken has its trouble told."""
    try:
        # NaN and the like are read: they are a symptom, and there may be a stream beside them.
        content = parse_object(read_bytes(folder / FILE, most=STORED), lax_numbers=True)
    except FileNotFoundError:
        return Reply(trouble="the server gave no answer", timings={})
    except (OSError, JsonError) as error:
        return Reply(trouble=f"the server's answer cannot be read: {error}", timings={})
    tokens, trouble = _tokens(content.get("tokens"))
    prompt = content.get("tokens_evaluated")
    timings = _numbers(content.get("timings"))
    chances, broken = _chances(content.get("completion_probabilities"))
    if tokens is not None and (trouble := _contradiction(content, tokens, chances)) is not None:
        tokens = None
    return Reply(
        tokens=tokens,
        trouble=trouble,
        prompt_tokens=prompt if _is_int(prompt) else None,
        prompt_trouble=_prompt_trouble(content, timings),
        end_of_sequence=content.get("stop_type") == "eos" or content.get("stopped_eos") is True,
        chances=chances,
        timings=timings,
        signs=(*broken, *_sampling(content.get("generation_settings"))),
    )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _tokens(value: object) -> tuple[tuple[int, ...] | None, str | None]:
    if not isinstance(value, list) or not all(map(_is_int, value)):
        return None, "the server's answer holds no token ids (it may not know return_tokens)"
    if not value:
        return None, "the server answered with success, but with an empty stream"
    return tuple(value), None


def _contradiction(
    content: dict[str, Any], tokens: Sequence[int], chances: Sequence[TokenChance]
) -> str | None:
    """Why the ids of an answer are no stream although they look like one."""
    if error := content.get("error"):
        said = error.get("message") if isinstance(error, dict) else error
        return f"the server answered with success, but with an error: {_shown(said)}"
    pairs = enumerate(zip(tokens, chances, strict=False))
    other = next(((n, a, b.id) for n, (a, b) in pairs if a != b.id), None)
    if other is None:
        return None
    return (
        "the server's answer holds two streams: at index {} its tokens have id {}, "
        "its log-probabilities id {}"
    ).format(*other)


def _prompt_trouble(content: dict[str, Any], timings: dict[str, float]) -> str | None:
    """Why the prompt is not proven to have been read as it was given, and in this run."""
    read = content.get("tokens_evaluated")
    if content.get("truncated") is True:
        return "the engine says that it cut the prompt or the context (truncated)"
    if not isinstance(read, int) or not _is_int(read):
        return "the engine does not say how many ids its prompt had (tokens_evaluated)"
    # No cache may be used: what lies there was computed by another request, who knows where.
    computed = timings.get("prompt_n", read)
    if timings.get("cache_n", 0) > 0 or computed < read:
        ids = f"{_shown(int(computed))} of its prompt's {_shown(read)} ids"
        return f"the engine computed {ids}, and found others in a cache, although none may be used"
    return None


def _chances(value: object) -> tuple[tuple[TokenChance, ...], tuple[Sign, ...]]:
    """Log-probabilities, and the first that is no number."""
    out: list[TokenChance] = []
    signs: list[Sign] = []
    for entry in value if isinstance(value, list) else ():
        if not isinstance(entry, dict) or not _is_int(entry.get("id")):
            return (), tuple(signs)
        logprob = _finite(entry.get("logprob"))
        if logprob is None and "logprob" in entry and not signs:
            text = f"token {entry['id']} at index {len(out)}: logprob {_shown(entry['logprob'])}"
            signs.append(Sign(symptom=Symptom.NOT_A_NUMBER, line=text))
        top = entry.get("top_logprobs")
        out.append(
            TokenChance(
                id=entry["id"],
                logprob=logprob,
                top=tuple(_candidates(top if isinstance(top, list) else [])),
            )
        )
    return tuple(out), tuple(signs)


def _candidates(entries: Sequence[Any]) -> list[tuple[int, float]]:
    try:
        pairs = [(entry["id"], entry["logprob"]) for entry in entries]
    except (TypeError, KeyError, IndexError):
        return []
    # There are a dozen of them for each token, so that each costs.
    return [
        (token, logprob)
        for token, logprob in pairs
        if type(token) is int and type(logprob) is float and isfinite(logprob)
    ]


def _shown(value: object) -> str:
    """Whatever stood in a number's place, as far as a line has room for it."""
    return str(value)[:40]


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 and isfinite(value) else None


def _numbers(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    found = ((str(name), _finite(number)) for name, number in value.items())
    return {name: number for name, number in found if number is not None}


def _sampling(value: object) -> tuple[Sign, ...]:
    """Settings under which the most likely token is not always taken."""
    if not isinstance(value, dict) or "temperature" not in value or _one_candidate(value):
        return ()
    temperature = _finite(value["temperature"])
    if temperature is not None and temperature <= 0 and not value.get("dynatemp_range"):
        return ()
    names = ("temperature", "dynatemp_range", "top_k", "mirostat", "samplers")
    told = ", ".join(f"{name} {_shown(value[name])}" for name in names if name in value)
    return (Sign(symptom=Symptom.NOT_GREEDY, line=f"generation_settings: {told}"),)


def _one_candidate(settings: dict[str, Any]) -> bool:
    """Whether one candidate is left, whatever the temperature: Mirostat skips top-k."""
    samplers = settings.get("samplers")
    applied = not isinstance(samplers, list) or "top_k" in samplers
    return settings.get("top_k") == 1 and applied and not settings.get("mirostat")
