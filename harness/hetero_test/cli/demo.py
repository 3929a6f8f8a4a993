"""``hetero-test demo``: the ordinary road on a bundled engine, or on tiny models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hetero_test.errors import UsageError

if TYPE_CHECKING:
    import argparse

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
    """Write a build and models, then run the matrix on them."""
    from hetero_test.cli import run as run_command
    from hetero_test.cli.options import DEMO_FOLDER, default_out
    from hetero_test.store.run_dir import Store, writing

    args.out = args.out or default_out()
    if not args.resume:
        Store(args.out).refuse_used()
    place = Path(args.out) / DEMO_FOLDER
    if args.engine == "llama_cpp":
        return _llama_cpp(args, place)
    with writing(args.out):
        _reference(args, place)
    return run_command.run(args)


def _reference(args: argparse.Namespace, place: Path) -> None:
    from hetero_test.bundled.build import write_build

    if args.build_dir is not None:
        raise UsageError(
            "demo: --build-dir is for an engine of yours",
            hint="the bundled engine brings its own; for llama.cpp add --engine llama_cpp",
        )
    made = write_build(place, rig=args.rig)
    args.build_dir = made.build_dir
    args.vocab = args.vocab or made.vocab
    args.engine_flags = (*made.model_flags, *(args.engine_flags or ()))


def _llama_cpp(args: argparse.Namespace, place: Path) -> int:
    if args.build_dir is None:
        raise UsageError(
            "demo --engine llama_cpp: give the build with --build-dir DIR",
            hint="the folder that holds llama-server",
        )
    from hetero_test.cli import run as run_command
    from hetero_test.engines.llama_cpp.demo import prepared
    from hetero_test.store.run_dir import writing

    with writing(args.out):
        place.mkdir(parents=True, exist_ok=True)
    with prepared(args, place):  # it may bring devices, which live as long as the matrix runs
        return run_command.run(args)
