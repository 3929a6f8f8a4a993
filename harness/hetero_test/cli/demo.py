"""``hetero-test demo``: the ordinary road on a bundled engine, or on tiny models."""

from __future__ import annotations

import shutil
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from hetero_test.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

RIGS = ("two_equal", "two_unequal", "one")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``demo``: those of ``run``, and which rig is emulated."""
    from hetero_test.cli.options import add_arguments as add_run_arguments

    which = parser.add_argument_group("which demo")
    which.add_argument(
        "--engine",
        choices=("reference", "llama_cpp"),
        default="reference",
        help="the bundled engine, or llama.cpp from your --build-dir with tiny models "
        "(default: reference)",
    )
    which.add_argument(
        "--rig",
        choices=RIGS,
        default=RIGS[0],
        help=f"which rig the bundled engine emulates (default: {RIGS[0]})",
    )
    add_run_arguments(parser, required=False)


def run(args: argparse.Namespace) -> int:
    """Write a build or models, then run the matrix on them."""
    from hetero_test.cli.options import out_dir
    from hetero_test.store.run_dir import Store

    out = out_dir(args)
    if not args.resume:
        Store(out).refuse_used()
    with _kept_if_begun(out):
        return _llama_cpp(args, out) if args.engine == "llama_cpp" else _bundled(args, out)


@contextmanager
def _kept_if_begun(out: Path) -> Iterator[None]:
    """Remove what the demo wrote where no matrix was begun: after a listing, or an error."""
    from hetero_test.plan.defaults import DEMO_FOLDER

    missing = [folder for folder in (out, *out.absolute().parents) if not folder.exists()]
    try:
        yield
    finally:
        if not (out / "manifest.json").exists():
            shutil.rmtree(out / DEMO_FOLDER, ignore_errors=True)
            with suppress(OSError):  # one that holds something else stays
                for folder in missing:
                    folder.rmdir()


def _bundled(args: argparse.Namespace, out: Path) -> int:
    from hetero_test.bundled.build import write_build
    from hetero_test.cli.run import execute, run_command
    from hetero_test.plan.defaults import DEMO_FOLDER
    from hetero_test.store.run_dir import writing

    if args.build_dir is not None:
        raise UsageError(
            "demo: --build-dir is for an engine of yours",
            hint="the bundled engine brings its own; for llama.cpp add --engine llama_cpp",
        )
    with writing(out):
        made = write_build(out / DEMO_FOLDER, rig=args.rig)
    flags = (*made.model_flags, *(args.engine_flags or ()))
    command = run_command(args, out=out, build_dir=made.build_dir, model_flags=flags)
    asked = command.options
    options = replace(asked, vocab=asked.vocab or made.vocab)
    if args.rig == "one":
        options = replace(options, expect_devices=asked.expect_devices or 1)
    return execute(replace(command, options=options))


def _llama_cpp(args: argparse.Namespace, out: Path) -> int:
    from hetero_test.cli.run import execute, run_command
    from hetero_test.engines.llama_cpp.demo import prepared, write_prompt
    from hetero_test.plan.defaults import DEMO_FOLDER
    from hetero_test.store.run_dir import writing

    if args.build_dir is None:
        raise UsageError(
            "demo --engine llama_cpp: give the build with --build-dir DIR",
            hint="the folder that holds llama-server",
        )
    place = out / DEMO_FOLDER
    with writing(out):
        place.mkdir(parents=True, exist_ok=True)
    # It may bring devices, which live as long as the matrix runs.
    with prepared(args.build_dir, args.engine_flags or (), place) as demo:
        command = run_command(args, out=out, build_dir=args.build_dir, model_flags=demo.model_flags)
        options = command.options
        options = replace(
            options,
            matrix="llama_cpp",
            kinds=demo.kinds or options.kinds,
            tokens_files=options.tokens_files
            or (write_prompt(place, tokens=options.tokens, seed=options.seed),),
        )
        return execute(replace(command, options=options))
