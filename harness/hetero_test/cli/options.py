"""The options of ``run``, as the command line has them; loads little, since the help needs it.

A path is refused here if the system cannot even be asked about it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetero_test.errors import UsageError
from hetero_test.plan import defaults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def add_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """The options of ``run``, in the groups in which the help shows them."""
    _what(parser.add_argument_group("what is run"), required=required)
    _how(parser.add_argument_group("how it is run"))
    _prompt(parser.add_argument_group("the prompt"))
    _outcome(parser.add_argument_group("what comes of it"))


def _what(what: argparse._ArgumentGroup, *, required: bool) -> None:
    what.add_argument(
        "--build-dir",
        type=path,
        metavar="DIR",
        required=required,
        help="folder that holds the engine's binaries",
    )
    what.add_argument(
        "--matrix",
        default=defaults.MATRIX,
        metavar="NAME|FILE",
        help=f"a shipped matrix, or a TOML file of your own (default: {defaults.MATRIX})",
    )
    what.add_argument(
        "--only", type=_ids, action=_Join, default=(), metavar="IDS", help="only these variants"
    )
    what.add_argument(
        "--skip", type=_ids, action=_Join, default=(), metavar="IDS", help="not these variants"
    )
    what.add_argument(
        "--devices", type=_count, metavar="N", help="number of devices, if it cannot be found out"
    )
    what.add_argument(
        "--expect-devices",
        type=_count,
        metavar="N",
        help="end with exit code 3 before any launch where fewer devices are found",
    )
    what.add_argument(
        "--device-kind",
        type=_pair,
        action="append",
        default=[],
        metavar="DEVICE=KIND",
        help="declare what a device is, where the engine cannot tell (an RPC device)",
    )
    what.add_argument("--fast-device", metavar="DEVICE", help="which device is the fast one")
    what.add_argument(
        "--list", action="store_true", help="print the plan and every command line, run nothing"
    )


def _how(how: argparse._ArgumentGroup) -> None:
    how.add_argument(
        "--max-new",
        type=_at_most(defaults.MOST_TOKENS),
        default=defaults.MAX_NEW,
        metavar="N",
        help=f"new tokens a run (default: {defaults.MAX_NEW})",
    )
    how.add_argument(
        "--repeats",
        type=_at_most(defaults.MOST_REPEATS),
        default=defaults.REPEATS,
        metavar="N",
        help=f"runs a variant (default: {defaults.REPEATS})",
    )
    how.add_argument(
        "--warmup",
        type=_at_most(defaults.MOST_REPEATS, least=0),
        metavar="N",
        help=f"warm-up runs (default: 0; 1 from {defaults.MANY_REPEATS} repeats on)",
    )
    how.add_argument(
        "--pinned",
        action="store_true",
        help="with the matrix's recipe against known sources of difference",
    )
    how.add_argument(
        "--timeout",
        type=_seconds,
        default=defaults.RUN_S,
        metavar="S",
        help=f"limit a run (default: {defaults.RUN_S:g})",
    )
    how.add_argument(
        "--idle-timeout",
        type=_seconds,
        default=defaults.IDLE_S,
        metavar="S",
        help=f"limit without any output (default: {defaults.IDLE_S:g})",
    )
    how.add_argument(
        "--total-timeout", type=_seconds, metavar="S", help="limit of the whole matrix"
    )


def _prompt(probe: argparse._ArgumentGroup) -> None:
    for name, default, text in (
        ("tokens", defaults.TOKENS, "number of token ids"),
        ("seed", defaults.SEED, "seed of the generator"),
    ):
        probe.add_argument(
            f"--{name}",
            type=_count if name == "tokens" else _whole,
            metavar="N",
            help=f"{text} (default: $HETERO_TEST_{name.upper()} or {default})",
        )
    probe.add_argument(
        "--vocab",
        type=_count,
        metavar="N",
        help="vocabulary that ids are drawn from (default: $HETERO_TEST_VOCAB or the engine's)",
    )
    probe.add_argument(
        "--tokens-file",
        type=path,
        action="append",
        default=[],
        metavar="F",
        help="a prompt of your own, as ids; may be given several times",
    )


def _outcome(out: argparse._ArgumentGroup) -> None:
    out.add_argument(
        "--out",
        type=path,
        metavar="DIR",
        help="run directory (default: hetero-test-YYYYMMDD-HHMMSS)",
    )
    out.add_argument(
        "--resume", action="store_true", help="go on with the run directory given by --out"
    )
    out.add_argument(
        "--strict",
        action="store_true",
        help="INCONCLUSIVE also for an effect that was not seen, or a refused variant",
    )
    out.add_argument("--junit", type=path, metavar="FILE", help="write a JUnit file as well")
    out.add_argument(
        "--predict",
        type=path,
        metavar="FILE",
        help="what hetero-test triage --json predicted, to stand beside what is measured",
    )
    out.add_argument(
        "--no-redact", action="store_true", help="keep names, paths and addresses in the report"
    )
    out.add_argument("--quiet", action="store_true", help="no progress on stderr")


def out_dir(args: argparse.Namespace) -> Path:
    """The run directory: as given, else one named after the moment, numbered if that is taken.

    Raises:
        UsageError: none is given to be gone on with, or the current folder is gone.
    """
    if args.out is not None:
        given: Path = args.out
        return given
    if args.resume:
        raise UsageError("--resume: say which run directory is to be gone on with: --out DIR")
    stem = time.strftime("hetero-test-%Y%m%d-%H%M%S")
    numbered = (path(stem if n == 1 else f"{stem}-{n}") for n in range(1, 1000))
    try:
        return next(place for place in numbered if not place.exists())
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--out: {error}") from error


class _Join(argparse.Action):
    """Ids given in several options are all meant."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's own signature
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        assert values is not None
        setattr(namespace, self.dest, (*getattr(namespace, self.dest), *values))


def _count(text: str) -> int:
    """A whole number from 1 on."""
    number = _whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def _whole(text: str) -> int:
    if not defaults.is_whole(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _at_most(most: int, least: int = 1) -> Callable[[str], int]:
    """A type of option: a whole number within bounds."""

    def bounded(text: str) -> int:
        number = _whole(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number from {least} to {most}"
            )
        return number

    return bounded


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _ids(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not DEVICE=KIND")
    return name, value


def path(text: str) -> Path:
    """The type of every option that names a file or folder, there or yet to be made.

    Raises:
        argparse.ArgumentTypeError: it is empty, too long, a loop of links or behind a folder
            that cannot be entered, or it is relative and the current folder is gone.
    """
    if not text:
        raise argparse.ArgumentTypeError("a path cannot be empty")
    found = Path(text)
    try:
        found.absolute()
    except OSError as error:
        why = "it is relative, and the current folder is gone"
        raise argparse.ArgumentTypeError(f"{text!r}: {why}") from error
    try:
        found.stat()
    except (FileNotFoundError, NotADirectoryError):
        return found
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise argparse.ArgumentTypeError(f"{_short(text)!r}: {why}") from error
    return found


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:60]}…{text[-19:]}"
