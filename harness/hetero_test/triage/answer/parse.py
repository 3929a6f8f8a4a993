"""From the options of the command line to a question; every complaint says what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp.loader_log import read_loader_log
from hetero_test.errors import UsageError
from hetero_test.rig.bandwidth import with_named_bandwidths
from hetero_test.rig.facts_file import load_rig
from hetero_test.triage.cost.drafting import Acceptance, conditional
from hetero_test.triage.cost.prompt import Runtime
from hetero_test.triage.model.facts import TokenLists, kv_element_bytes
from hetero_test.triage.model.facts_file import load_model_facts
from hetero_test.triage.options.question import DraftQuestion, Speeds, SplitCount, TriageQuestion

if TYPE_CHECKING:
    from hetero_test.rig.facts import RigFacts
    from hetero_test.triage.model.facts import ModelFacts

READ_TEST_PASSES = 3
"""Passes of the read test of the memory, fewer here since somebody waits for the answer."""
OWN = "own"
"""Value of ``--draft`` for the model's own head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageOptions:
    """What the command line says, each option by its name there."""

    model: Path | None
    model_facts: Path | None
    rig: Path | None
    context: int
    depth: int | None
    slots: int
    kv_type: str
    batch: int
    runtime: str
    prompt_per_reply: float
    build_dir: Path | None
    baseline: Sequence[str]
    incumbent: str | None
    splits: str | None
    link: float | None
    draft: Path | None
    draft_device: str | None
    draft_window: int
    draft_tok_s: float | None
    accepted: float | None
    accepted_at: str | None
    acceptance_p: float | None
    verify: Sequence[str]
    beta: float | None


def parse_question(options: TriageOptions) -> TriageQuestion:
    """The question that the options of ``triage`` ask.

    Raises:
        UsageError: an option is out of range, names what is not there, or a file cannot be read.
    """
    kv_element_bytes(options.kv_type)
    model = _model(options)
    rig = read_rig(options.rig)
    for value, name in (
        (options.context, "--context"),
        (options.slots, "--slots"),
        (options.batch, "--batch"),
    ):
        _at_least(value, 1, name)
    if options.depth is not None:
        _at_least(options.depth, 0, "--depth")
    if options.link is not None:
        _above_zero(options.link, "--link")
    return TriageQuestion(
        model=model,
        rig=rig,
        context=options.context,
        depth=options.depth,
        slots=options.slots,
        kv_type=options.kv_type,
        ubatch=options.batch,
        runtime=Runtime(options.runtime),
        prompt_per_reply=_at_least(options.prompt_per_reply, 0, "--prompt-per-reply"),
        baselines=_baselines(options.baseline, rig),
        incumbent=None if options.incumbent is None else speeds(options.incumbent, "--incumbent"),
        splits=None if options.splits is None else splits(options.splits),
        link_gb_s=options.link,
        draft=_draft(options, model, rig),
        build_dir=_folder(options.build_dir),
    )


def read_model(path: Path) -> ModelFacts:
    """A model by its file: GGUF, or facts in TOML.

    Raises:
        UsageError: the file cannot be read.
    """
    if path.suffix.lower() == ".toml":
        return load_model_facts(path)
    from hetero_test.triage.model.from_gguf import read_model_file

    return read_model_file(path)


def read_rig(path: Path | None) -> RigFacts:
    """The rig of a file, or this machine; bandwidths that it lacks are looked up by name.

    Raises:
        UsageError: the file cannot be read.
    """
    if path is not None:
        return with_named_bandwidths(load_rig(path))
    from hetero_test.rig.machine import Sampling
    from hetero_test.rig.probe import probe_rig, this_machine

    return probe_rig(this_machine(passes=READ_TEST_PASSES), Sampling())


def speeds(text: str, flag: str) -> Speeds:
    """``TOK_S`` or ``TOK_S,PREFILL_TOK_S``.

    Raises:
        UsageError: the text has another form.
    """
    decode, comma, prefill = text.partition(",")
    return Speeds(
        decode_tok_s=_number(decode, flag),
        prefill_tok_s=_number(prefill, flag) if comma else None,
    )


def splits(text: str) -> SplitCount:
    """``--splits``: a number, or a loader log that holds one.

    Raises:
        UsageError: it is neither.
    """
    if text.isdecimal():
        return SplitCount(count=int(text), source="--splits")
    path = Path(text)
    found = read_loader_log(path).decode_splits
    if found is None:
        raise UsageError(
            f"{path} has no line `graph splits = …`",
            hint="start the engine with -lv 4 (llama.cpp), or give the number",
        )
    return SplitCount(count=found, source=path.name)


def _model(options: TriageOptions) -> ModelFacts:
    match options.model, options.model_facts:
        case Path() as model, None:
            return read_model(model)
        case None, Path() as facts:
            return load_model_facts(facts)
        case _:
            raise UsageError(
                "give one of --model FILE.gguf and --model-facts FILE.toml",
                hint="the first shard of a split model is enough; hetero-test triage "
                "--example-facts prints a facts file",
            )


def _baselines(listed: Sequence[str], rig: RigFacts) -> dict[str, Speeds]:
    found = {}
    for text in listed:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--baseline {text}: not DEVICE=TOK_S", hint="as in CUDA0=41.3")
        if rig.device(name) is None:
            known = ", ".join(device.id for device in rig.devices) or "none"
            raise UsageError(f"--baseline {text}: no device {name!r}", hint=f"devices: {known}")
        found[name] = speeds(value, "--baseline")
    return found


def _draft(options: TriageOptions, target: ModelFacts, rig: RigFacts) -> DraftQuestion | None:
    if options.draft is None:
        return None
    if options.draft_device is not None and rig.device(options.draft_device) is None:
        known = ", ".join(device.id for device in rig.devices) or "none"
        raise UsageError(
            f"--draft-device {options.draft_device}: no such device", hint=f"has: {known}"
        )
    window = int(_at_least(options.draft_window, 1, "--draft-window"))
    tokens, told = _acceptance(options, window)
    drafter, match = None, TokenLists.NOT_CHECKED
    if str(options.draft) != OWN:
        drafter = read_model(options.draft)
        match = _compare(options, options.draft, target, drafter)
    return DraftQuestion(
        model=drafter,
        device=options.draft_device,
        window=window,
        tokens_per_round=tokens,
        acceptance_source=told,
        beta=None if options.beta is None else _above_zero(options.beta, "--beta"),
        verify=_verify(options.verify),
        tok_s=None
        if options.draft_tok_s is None
        else _above_zero(options.draft_tok_s, "--draft-tok-s"),
        tokens=match,
    )


def _acceptance(options: TriageOptions, window: int) -> tuple[float | None, str]:
    """Tokens a round from whichever form was given, and its flag."""
    given = {
        flag: value
        for flag, value in (
            ("--accepted", options.accepted),
            ("--accepted-at", options.accepted_at),
            ("--acceptance-p", options.acceptance_p),
        )
        if value is not None
    }
    if len(given) > 1:
        raise UsageError(f"give one of {' and '.join(given)}")
    try:
        if options.accepted_at is not None:
            shares = tuple(float(part) for part in options.accepted_at.split(","))
            in_turn = ", ".join(f"{share:.2f}" for share in conditional(shares))
            tokens = Acceptance(window=window, accepted_at=shares).tokens
            return tokens, f"--accepted-at, conditional {in_turn}"
        if options.acceptance_p is not None:
            return Acceptance(window=window, p=options.acceptance_p).tokens, "--acceptance-p"
        if options.accepted is not None:
            return Acceptance(window=window, accepted_share=options.accepted).tokens, "--accepted"
    except ValueError as error:
        ((flag, value),) = given.items()
        raise UsageError(f"{flag} {value}: {error}", hint="shares between 0 and 1") from error
    return None, "not given"


def _verify(listed: Sequence[str]) -> dict[int, float]:
    found = {}
    for text in listed:
        rows, equals, cost = text.partition("=")
        if not equals or not rows.isdecimal() or int(rows) < 2:
            raise UsageError(
                f"--verify {text}: not ROWS=COST", hint="as in 4=1.6: four rows take 1.6 steps"
            )
        found[int(rows)] = _number(cost, "--verify")
    return found


def _compare(
    options: TriageOptions, draft: Path, target: ModelFacts, drafter: ModelFacts
) -> TokenLists:
    """The token lists: id by id where both files are here, else by their hashes."""
    if options.model is not None and draft.suffix.lower() != ".toml":
        from hetero_test.triage.model.from_gguf import compare_tokens

        return compare_tokens(options.model, draft)
    if target.tokens_sha256 is None or drafter.tokens_sha256 is None:
        return TokenLists.NOT_CHECKED
    equal = target.tokens_sha256 == drafter.tokens_sha256
    return TokenLists.EQUAL if equal else TokenLists.DIFFERENT


def _folder(path: Path | None) -> Path | None:
    if path is not None and not path.is_dir():
        raise UsageError(f"--build-dir {path}: no such folder")
    return path


def _number(text: str, flag: str) -> float:
    try:
        return _above_zero(float(text), flag)
    except ValueError as error:
        raise UsageError(f"{flag}: {text!r} is no number") from error


def _above_zero(value: float, flag: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{flag} {value:g}: it has to be above zero")
    return value


def _at_least(value: float, least: float, flag: str) -> float:
    if not (math.isfinite(value) and value >= least):
        raise UsageError(f"{flag} {value:g}: at least {least:g}")
    return value
