"""``hetero-test triage``: whether a split should be built at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.cli.options import path
from hetero_test.publish.printable import json_text, visible, visible_path

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from hetero_test.publish.redact import Redactor
    from hetero_test.triage.learn.estimates import Estimates
    from hetero_test.triage.options.question import TriageQuestion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``triage``."""
    _ask_arguments(parser)
    _measured_arguments(parser)
    _draft_arguments(parser)
    out = parser.add_argument_group("output (Markdown on stdout unless told otherwise)")
    out.add_argument("--json", action="store_true", help="print JSON (hetero-test/triage/1)")
    out.add_argument("--html", type=path, metavar="FILE", help="write a page with a picture")
    out.add_argument("--no-redact", action="store_true", help="keep names, paths and addresses")
    out.add_argument(
        "--calibrate",
        type=path,
        metavar="RUNDIR",
        help="fit split cost and bandwidths to a run, and write them into the --rig file",
    )


def _ask_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what is asked")
    what.add_argument("--model", type=path, metavar="FILE", help="a GGUF file, first shard")
    what.add_argument("--model-facts", type=path, metavar="FILE", help="its facts in TOML instead")
    what.add_argument(
        "--example-facts", action="store_true", help="print such facts with comments, and end"
    )
    what.add_argument(
        "--rig", type=path, metavar="FILE", help="a rig file (default: this machine, measured)"
    )
    what.add_argument(
        "--context", type=int, default=8192, metavar="N", help="positions a slot (default: 8192)"
    )
    what.add_argument("--depth", type=int, metavar="N", help="positions read (default: context)")
    what.add_argument("--slots", type=int, default=1, metavar="N", help="requests at a time")
    what.add_argument("--kv-type", default="f16", metavar="T", help="of the cache, or KEYS/VALUES")
    what.add_argument("--batch", type=int, default=512, metavar="N", help="tokens a batch (-ub)")
    what.add_argument(
        "--runtime", choices=("llama.cpp", "ik_llama.cpp"), default="llama.cpp", help="whose rules"
    )
    what.add_argument(
        "--prompt-per-reply",
        type=float,
        default=4.0,
        metavar="R",
        help="prompt tokens read for each token written, to weigh prefill (default: 4)",
    )
    what.add_argument("--build-dir", type=path, metavar="DIR", help="check its backends")


def _measured_arguments(parser: argparse.ArgumentParser) -> None:
    known = parser.add_argument_group("what has been measured")
    known.add_argument(
        "--baseline",
        action="append",
        default=[],
        metavar="DEVICE=TOK_S[,PREFILL]",
        help="this model alone on a device, without drafting; repeatable",
    )
    known.add_argument(
        "--incumbent", metavar="TOK_S[,PREFILL]", help="what runs today, with its own drafting"
    )
    known.add_argument("--splits", metavar="N|LOG", help="graph splits a token, or a loader log")
    known.add_argument("--link", type=float, metavar="GB_S", help="what a copy reaches under load")


def _draft_arguments(parser: argparse.ArgumentParser) -> None:
    draft = parser.add_argument_group("drafting")
    draft.add_argument("--draft", type=path, metavar="FILE|own", help="a drafter, or its own head")
    draft.add_argument("--draft-device", metavar="DEVICE", help="where it runs")
    draft.add_argument("--draft-window", type=int, default=3, metavar="K", help="drafts a round")
    draft.add_argument("--draft-tok-s", type=float, metavar="TOK_S", help="its speed there")
    draft.add_argument("--accepted", type=float, metavar="A", help="accepted/drafted")
    draft.add_argument("--accepted-at", metavar="A1,A2,…", help="share of rounds by position")
    draft.add_argument("--acceptance-p", type=float, metavar="P", help="conditional acceptance")
    draft.add_argument(
        "--verify",
        action="append",
        default=[],
        metavar="ROWS=COST",
        help="measured cost of a batch in steps (llama-batched-bench -npl); repeatable",
    )
    draft.add_argument("--beta", type=float, metavar="B", help="measured cost of one row more")


def run(args: argparse.Namespace) -> int:
    """Answer and print, or calibrate. The exit code says whether that worked, not GO or NO-GO.

    Raises:
        UsageError: an argument or a file is wrong.
        StoreError: a file cannot be written.
    """
    from dataclasses import fields

    from hetero_test.errors import ExitCode
    from hetero_test.triage.answer.answer import answer
    from hetero_test.triage.answer.json import answer_document
    from hetero_test.triage.answer.parse import TriageOptions, parse_question
    from hetero_test.triage.learn.fit import learn
    from hetero_test.triage.learn.points import shipped_points
    from hetero_test.triage.learn.scoring import shipped_misses, widening

    if args.example_facts:
        return _print_example()
    if args.html is not None:
        _need_matplotlib()
    said = {field.name: getattr(args, field.name) for field in fields(TriageOptions)}
    question = parse_question(TriageOptions(**said))
    estimates = learn(shipped_points())
    if args.calibrate is not None:
        return _calibrate(args, question, estimates)
    missed = shipped_misses()
    found = answer(question, estimates, widening(missed))
    sources = {miss.point.origin for miss in missed}
    document = answer_document(found, points=len(missed), sources=len(sources))
    document = _redacted(document, _redactor(args))
    if args.html is not None:
        _write(args.html, _build("triage_html", document))
    text = json_text(document, indent=2) if args.json else _build("triage", document)
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.flush()
    return int(ExitCode.PASS)


def _print_example() -> int:
    from hetero_test.errors import ExitCode
    from hetero_test.formats.examples import Example, example_text

    sys.stdout.buffer.write(example_text(Example.MODEL).encode("utf-8"))
    sys.stdout.flush()
    return int(ExitCode.PASS)


def _need_matplotlib() -> None:
    """Raise before the work, not after it."""
    from importlib.util import find_spec

    from hetero_test.errors import UsageError

    if find_spec("matplotlib") is None:
        raise UsageError(
            "--html draws with matplotlib, which is not installed",
            hint="pip install 'hetero-test[html]', or leave --html out",
        )


def _calibrate(args: argparse.Namespace, question: TriageQuestion, estimates: Estimates) -> int:
    from hetero_test.errors import ExitCode, UsageError
    from hetero_test.rig.facts_file import dump_rig
    from hetero_test.triage.answer.calibrate import calibrate

    if args.rig is None:
        raise UsageError(
            "--calibrate writes into a rig file: give it with --rig FILE",
            hint="hetero-test rig --out FILE makes one",
        )
    result = calibrate(question, estimates, args.calibrate)
    _write(args.rig, dump_rig(result.rig))
    for lesson in result.lessons:
        splits = "splits estimated" if lesson.splits is None else f"{lesson.splits} splits"
        print(visible(f"{lesson.variant}: {lesson.tok_s:.2f} tok/s, {splits}"))
    for variant, why in result.passed_over:
        print(visible(f"{variant}: passed over, {why}"))
    for device in result.rig.devices:
        for fitted in device.bandwidth_effective:
            kind = f"{fitted.workload.value} {fitted.quantization or ''}".strip()
            print(visible(f"{device.id} {kind}: {_range(fitted.gb_s)} GB/s"))
    for noun, fact in (
        ("a graph split", result.rig.sync_us),
        ("a layer beside its reads", result.rig.layer_us),
        ("a layer's experts on the CPU", result.rig.cpu_layer_us),
    ):
        if fact is not None:
            print(f"{noun}: {_range(fact)} µs")
    print(f"wrote {visible_path(args.rig)}")
    return int(ExitCode.PASS)


def _range(fact: Any) -> str:
    if fact.low is None:
        return f"{fact.value:.4g}"
    return f"{fact.value:.4g} ({fact.low:.4g} to {fact.high:.4g})"


def _build(name: str, document: Mapping[str, Any]) -> str:
    """A report by its builder's name, so that the arithmetic never depends on its rendering."""
    from importlib import import_module

    text: str = import_module(f"hetero_test.report.{name}").build(document)
    return text


def _redactor(args: argparse.Namespace) -> Redactor:
    from hetero_test.publish.host import host_secrets
    from hetero_test.publish.redact import Redactor

    if args.no_redact:
        return Redactor.off()
    build_dir = args.build_dir or Path.cwd()
    return Redactor(
        pairs=host_secrets(
            argv=tuple(args.own_argv), model_flags=(), env=(), build_dir=build_dir, out=Path.cwd()
        )
    )


def _redacted(value: Any, redact: Redactor) -> Any:
    """Every text of a document as it may be published."""
    match value:
        case str():
            return redact(value)
        case dict():
            return {key: _redacted(item, redact) for key, item in value.items()}
        case list():
            return [_redacted(item, redact) for item in value]
        case _:
            return value


def _write(path: Path, text: str) -> None:
    from hetero_test.store.run_dir import write, writing

    with writing(path):
        write(path, text)
