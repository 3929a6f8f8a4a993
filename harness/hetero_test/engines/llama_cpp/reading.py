"""Log and answer of one run to a :class:`Reading`."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, Final

from hetero_test.engines.llama_cpp import amounts, reader, residency
from hetero_test.engines.llama_cpp import reply as llama_reply
from hetero_test.engines.llama_cpp.devices import CPU, behind_mask, is_remote
from hetero_test.engines.llama_cpp.log import Rate
from hetero_test.engines.remarks import signs_of, template
from hetero_test.values.reading import (
    Factor,
    Place,
    Reading,
    Residency,
    Row,
    Speculation,
    Timings,
)
from hetero_test.values.remark import Remark, Weight

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hetero_test.engines.base import LaunchedCell, Survey
    from hetero_test.engines.llama_cpp.log import LlamaLog
    from hetero_test.engines.llama_cpp.reply import Reply
    from hetero_test.values.reading import Scalar, TokenChance
    from hetero_test.values.run import Device

_MOST_ECHO: Final = 1 << 20
"""Ids of a prompt's length beyond which nothing is gained by counting them."""
_REPACK: Final = "CPU_REPACK"
_UNREAL: Final = "under speculation log-probabilities are not real"


def read(stdout: Path, stderr: Path, asked: LaunchedCell) -> Reading:
    """Everything that one run's log and answer say; never raises on what it finds there.

    The server logs to standard error; some builds put parts of it on standard output.
    """
    log, other = _log(stderr), _log(stdout)
    if other.models and not log.models:
        log, other = other, log
    log = replace(log, remarks=(*log.remarks, *other.remarks))
    reply = llama_reply.load(asked.folder)
    log = replace(log, remarks=(*log.remarks, *_contradictions(log, reply, asked)))
    devices = asked.survey.devices
    main = log.main
    drafts = bool(log.drafts.offered or reply.timings.get("draft_n"))
    return Reading(
        stream=reply.tokens,
        stream_trouble=reply.trouble,
        echo=_echo(reply, asked),
        echo_trouble=reply.prompt_trouble,
        end_of_sequence=reply.end_of_sequence,
        vocabulary=None if main is None else main.vocabulary,
        signs=(
            *signs_of(log.remarks),
            *reply.signs,
        ),
        remarks=log.remarks,
        residency=_residency(log, asked),
        draft=Place(kind=_draft_kind(log, _seen(log, asked))),
        causes=_causes(log),
        rows=_rows(log, asked.survey),
        context=_context(log, asked.survey, drafts=drafts),
        sightings=residency.sightings(log, devices),
        places=residency.places(log, devices),
        speculation=_speculation(log, reply) if log.drafting or log.draft else None,
        timings=_timings(log, reply),
        chances=_chances(reply, drafts=drafts),
        chances_trouble=_UNREAL if drafts else None,
        version=log.build,
        devices=tuple(f"{number}: {name}" for number, name in _devices(log).items()),
        lines=log.lines,
        tail=log.tail,
        warnings=_warnings(log, reply),
    )


def _residency(log: LlamaLog, asked: LaunchedCell) -> Residency:
    """Unknown where another card has a device's number: its kind is not the one that was listed."""
    listed = {device.id: device.name for device in asked.survey.devices}
    for number, name in _devices(log).items():
        # A mask gives a card of this machine another number on purpose.
        masked = asked.mask is not None and not is_remote(number)
        if not masked and (was := listed.get(number, name)) != name:
            return Residency(unknown=f"the device list changed: {number} was {was}, now {name}")
    return residency.residency(log, _seen(log, asked))


def _seen(log: LlamaLog, asked: LaunchedCell) -> tuple[Device, ...]:
    """The devices under the numbers that this run gives them."""
    listed = asked.survey.devices
    return listed if asked.mask is None else behind_mask(listed, _devices(log), asked.mask)


def _devices(log: LlamaLog) -> dict[str, str]:
    """Names by number, from this run's own list, else from what its model uses."""
    if log.devices:
        return {device.id: device.name for device in log.devices}
    used = {} if log.main is None else log.main.using
    return {number: name for number, name in used.items() if name}


def _log(path: Path) -> LlamaLog:
    try:
        with path.open("rb") as stream:
            return reader.read(stream)
    except OSError:
        return reader.nothing()


def _echo(reply: Reply, asked: LaunchedCell) -> tuple[int, ...] | None:
    """The prompt as far as the engine repeats it, which is its length alone."""
    count, ids = reply.prompt_tokens, asked.probe.ids
    if count is None:
        return None
    if count == len(ids):
        return ids
    length = max(0, min(count, _MOST_ECHO))
    return (*ids, *repeat(-1, length))[:length]


def _chances(reply: Reply, *, drafts: bool) -> tuple[TokenChance, ...] | None:
    """Accepted draft tokens come back with log-probability 0: with a drafter none is real."""
    if drafts or not reply.chances or reply.tokens is None:
        return None
    told = tuple(chance.id for chance in reply.chances)
    return reply.chances if told == reply.tokens[: len(told)] else None


def _context(log: LlamaLog, survey: Survey, *, drafts: bool) -> Mapping[str, Scalar]:
    out: dict[str, Scalar] = {
        f"{use} {device} MiB": mib
        for (device, use), mib in amounts.memory(log, survey.devices).items()
    }
    if log.main is not None:
        out["graph_splits"] = _splits(log)
    if log.system:
        out["cpu_features"] = " ".join(log.system)
    out["drafts_tokens"] = drafts
    return out


def _splits(log: LlamaLog) -> int | None:
    main = log.main
    return main.contexts[0].splits if main is not None and main.contexts else None


def _rows(log: LlamaLog, survey: Survey) -> tuple[Row, ...]:
    """None where no model was loaded, of which there is nothing to tell."""
    sizes = amounts.memory(log, survey.devices)
    if log.main is None and not sizes:
        return ()
    return (
        Row(
            label="layers by device, the output counted",
            value=amounts.layers_text(log, survey.devices),
        ),
        Row(label="weights / KV / compute by device", value=amounts.memory_text(sizes)),
        Row(label="graph splits", value=_splits(log)),
    )


def _causes(log: LlamaLog) -> tuple[Factor, ...]:
    mib = None if log.main is None else log.main.weights_mib.get(_REPACK)
    if not mib:
        return ()
    words = "the CPU repacks these weights"
    return (Factor(name="repacked", value=f"{mib:.2f} MiB in {_REPACK}", words=words),)


def _draft_kind(log: LlamaLog, devices: tuple[Device, ...]) -> str | None:
    if log.draft is None:
        return None
    tensors = residency.TensorPlaces(log.draft, devices)
    layers = [tensors.kind(log.draft.layers[layer]) for layer in tensors.blocks()]
    if not layers:
        layers = [tensors.kind(buffer) for buffer in log.draft.weights_mib]
        layers = [kind for kind in layers if kind != CPU] or layers
    return " and ".join(dict.fromkeys(layers)) or None


def _speculation(log: LlamaLog, reply: Reply) -> Speculation:
    accepted, offered = reply.timings.get("draft_n_accepted"), reply.timings.get("draft_n")
    return Speculation(
        rounds=log.drafts.rounds,
        accepted=log.drafts.accepted if accepted is None else int(accepted),
        offered=log.drafts.offered if offered is None else int(offered),
        tokens_per_round=log.drafts.mean_length,
    )


def _timings(log: LlamaLog, reply: Reply) -> Timings:
    """From the answer, which is exact, else from the log."""
    told = reply.timings
    drafts = log.drafts
    prompt = _rate(told.get("prompt_n"), told.get("prompt_ms"), log.prompt)
    decode = _rate(told.get("predicted_n"), told.get("predicted_ms"), log.decode)
    per_round = drafts.draft_ms / drafts.rounds if drafts.draft_ms and drafts.rounds else None
    return Timings(
        decode_tok_s=decode.tok_s,
        prefill_tok_s=prompt.tok_s,
        ttft_ms=prompt.ms,
        draft_ms_per_round=per_round,
    )


def _rate(count: float | None, ms: float | None, logged: Rate) -> Rate:
    if not count or not ms or count <= 0 or ms <= 0:
        return logged
    return Rate.of(int(count), ms)


def _warnings(log: LlamaLog, reply: Reply) -> tuple[str, ...]:
    found = []
    if log.draft is not None and not log.drafting and log.listening:
        found.append("a draft model is loaded, but nothing drafts with it: --spec-type is missing")
    elif log.drafting and reply.tokens and not reply.timings.get("draft_n"):
        found.append("a drafter was set up, but it drafted nothing")
    if log.unread_timings and reply.tokens and not reply.timings:
        found.append(f"a timing line of an unknown dialect is not read: {log.unread_timings[0]}")
    return tuple(found)


def _contradictions(log: LlamaLog, reply: Reply, asked: LaunchedCell) -> tuple[Remark, ...]:
    """Counts beside a stream that do not agree with it, as lines that cast doubt on the run.

    A count that is not one of this run tells that the log, or a part of the work, is another's.
    """
    return tuple(
        Remark(template=template(text), line=text, weight=Weight.DOUBTFUL)
        for text in _contradicting(log, reply, asked)
    )


def _contradicting(log: LlamaLog, reply: Reply, asked: LaunchedCell) -> Iterator[str]:
    if reply.tokens is None:
        return
    count, prompt = len(reply.tokens), len(asked.probe.ids)
    made = reply.timings.get("predicted_n")
    # Whether the token at which a sequence ends is counted differs by build.
    if made is not None and abs(made - count) > reply.end_of_sequence:
        yield f"the server counts {made:.0f} tokens, and its answer holds {count}"
    # One that is shorter was found in a cache in part, which the answer tells.
    if log.prompt.tokens is not None and log.prompt.tokens > prompt:
        yield f"the log counts {log.prompt.tokens} tokens of a prompt that has {prompt}"
    drafts = _speculation(log, reply)
    offered, accepted, rounds = drafts.offered, drafts.accepted, drafts.rounds
    if offered is not None and accepted is not None and accepted > offered:
        yield f"the draft statistics count {accepted} drafts accepted of {offered} offered"
    if rounds is not None and accepted is not None:
        # Each round gives one token beside the accepted ones, the prompt gives the first, and
        # where but one more is wanted no round is begun for it.
        accounted = accepted + rounds + 2
        if accounted < count:
            yield f"the draft statistics account for {accounted} of {count} tokens"
