"""Words of the command line to a question, with every complaint in words."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from hetero_test.engines.llama_cpp.loader_log import read_loader_log
from hetero_test.errors import UsageError
from hetero_test.rig.bandwidth import with_named_bandwidths
from hetero_test.rig.facts_file import load_rig
from hetero_test.triage.cost.drafting import Acceptance, conditional
from hetero_test.triage.cost.prompt import Runtime
from hetero_test.triage.model.facts import kv_element_bytes
from hetero_test.triage.model.facts_file import load_model_facts
from hetero_test.triage.options.question import DraftQuestion, Question, Speeds, SplitCount, Tokens

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from hetero_test.rig.facts import RigFacts
    from hetero_test.rig.sourced import Sourced
    from hetero_test.triage.model.facts import ModelFacts

FEW_PASSES = 3
"""Of the read test where an answer is waited for."""
USUAL_PASSES = 7
"""Of the read test where the rig is what is asked for."""
OWN = "own"
"""What ``--draft`` says for the model's own head."""


def ask(args: argparse.Namespace) -> Question:
    """The question that the arguments of ``triage`` ask.

    Raises:
        UsageError: an argument is out of range, names what is not there, or a file cannot be read.
    """
    kv_element_bytes(args.kv_type)
    model = _model(args)
    rig = read_rig(args.rig)
    for value, name in (
        (args.context, "--context"),
        (args.slots, "--slots"),
        (args.batch, "--batch"),
    ):
        _at_least(value, 1, name)
    if args.depth is not None:
        _at_least(args.depth, 0, "--depth")
    if args.link is not None:
        _above_zero(args.link, "--link")
    return Question(
        model=model,
        rig=rig,
        context=args.context,
        depth=args.depth,
        slots=args.slots,
        kv_type=args.kv_type,
        ubatch=args.batch,
        runtime=Runtime(args.runtime),
        prompt_per_reply=_at_least(args.prompt_per_reply, 0, "--prompt-per-reply"),
        baselines=_baselines(args.baseline, rig),
        incumbent=None if args.incumbent is None else speeds(args.incumbent, "--incumbent"),
        splits=None if args.splits is None else splits(args.splits),
        link_gb_s=args.link,
        draft=_draft(args, model, rig),
        build_dir=_folder(args.build_dir),
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
    from hetero_test.rig.machine import Machine, Sampling
    from hetero_test.rig.nvidia import import_nvml
    from hetero_test.rig.probe import probe_rig

    read_test = partial(run_read_test, repeats=FEW_PASSES)
    return probe_rig(Machine(nvml=import_nvml(), read_test=read_test), Sampling())


def run_read_test(size_bytes: int, threads: int, *, repeats: int = USUAL_PASSES) -> Sourced[float]:
    """How fast the host reads its memory; see `host_read.read_bandwidth`."""
    from hetero_test.rig.probe_cpu import read_bandwidth  # numpy costs 100 ms

    return read_bandwidth(size_bytes, threads, repeats=repeats)


def speeds(text: str, flag: str) -> Speeds:
    """``TOK_S`` or ``TOK_S,PREFILL_TOK_S``.

    Raises:
        UsageError: it is no such text.
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
    from pathlib import Path

    path = Path(text)
    found = read_loader_log(path).decode_splits
    if found is None:
        raise UsageError(
            f"{path} has no line `graph splits = …`",
            hint="start the engine with -lv 4 (llama.cpp), or give the number",
        )
    return SplitCount(count=found, source=path.name)


def _model(args: argparse.Namespace) -> ModelFacts:
    if (args.model is None) == (args.model_facts is None):
        raise UsageError(
            "give one of --model FILE.gguf and --model-facts FILE.toml",
            hint="the first shard of a split model is enough; hetero-test triage --example-facts "
            "prints a facts file",
        )
    if args.model_facts is not None:
        return load_model_facts(args.model_facts)
    return read_model(args.model)


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


def _draft(args: argparse.Namespace, target: ModelFacts, rig: RigFacts) -> DraftQuestion | None:
    if args.draft is None:
        return None
    if args.draft_device is not None and rig.device(args.draft_device) is None:
        known = ", ".join(device.id for device in rig.devices) or "none"
        raise UsageError(
            f"--draft-device {args.draft_device}: no such device", hint=f"has: {known}"
        )
    window = int(_at_least(args.draft_window, 1, "--draft-window"))
    tokens, told = _acceptance(args, window)
    drafter, match = None, Tokens.NOT_CHECKED
    if str(args.draft) != OWN:
        drafter = read_model(args.draft)
        match = _compare(args, target, drafter)
    return DraftQuestion(
        model=drafter,
        device=args.draft_device,
        window=window,
        tokens_per_round=tokens,
        acceptance_source=told,
        beta=None if args.beta is None else _above_zero(args.beta, "--beta"),
        verify=_verify(args.verify),
        tok_s=None if args.draft_tok_s is None else _above_zero(args.draft_tok_s, "--draft-tok-s"),
        tokens=match,
    )


def _acceptance(args: argparse.Namespace, window: int) -> tuple[float | None, str]:
    """Tokens a round from whichever form was given, and its flag."""
    given = [
        (flag, value)
        for flag, value in (
            ("--accepted", args.accepted),
            ("--accepted-at", args.accepted_at),
            ("--acceptance-p", args.acceptance_p),
        )
        if value is not None
    ]
    if not given:
        return None, "not given"
    if len(given) > 1:
        raise UsageError(f"give one of {' and '.join(flag for flag, _ in given)}")
    flag, value = given[0]
    try:
        if flag == "--accepted-at":
            shares = tuple(float(part) for part in str(value).split(","))
            given_before = ", ".join(f"{share:.2f}" for share in conditional(shares))
            told = f"{flag}, conditional {given_before}"
            return Acceptance(window=window, accepted_at=shares).tokens, told
        if flag == "--acceptance-p":
            return Acceptance(window=window, p=value).tokens, flag
        return Acceptance(window=window, accepted_share=value).tokens, flag
    except ValueError as error:
        raise UsageError(f"{flag} {value}: {error}", hint="shares between 0 and 1") from error


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


def _compare(args: argparse.Namespace, target: ModelFacts, drafter: ModelFacts) -> Tokens:
    """The token lists: id by id where both files are here, else by their hashes."""
    if args.model is not None and args.draft.suffix.lower() != ".toml":
        from hetero_test.triage.model.from_gguf import compare_tokens

        return Tokens[compare_tokens(args.model, args.draft).match.name]
    if target.tokens_sha256 is None or drafter.tokens_sha256 is None:
        return Tokens.NOT_CHECKED
    equal = target.tokens_sha256 == drafter.tokens_sha256
    return Tokens.EQUAL if equal else Tokens.DIFFERENT


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
