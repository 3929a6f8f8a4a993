"""The options of ``run``, and what stands for those that are not given.

A path on the command line, refused there if the system cannot even be asked about it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetero_test.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEMO_FOLDER = "demo"
"""What ``demo`` puts into a run directory before the run itself begins."""
DEFAULT_TOKENS = 95
DEFAULT_SEED = 7
MOST_TOKENS = 2**24
"""No engine has a context of more."""
MOST_REPEATS = 1000
"""Each is a launch of every variant; more are a mistyped number."""
MANY_REPEATS = 5
"""From this many repeats on one warm-up run is made unless another number is asked for."""


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
        default="strata",
        metavar="NAME|FILE",
        help="a shipped matrix, or a TOML file of your own (default: strata)",
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
        type=_at_most(MOST_TOKENS),
        default=60,
        metavar="N",
        help="new tokens a run (default: 60)",
    )
    how.add_argument(
        "--repeats",
        type=_at_most(MOST_REPEATS),
        default=2,
        metavar="N",
        help="runs a variant (default: 2)",
    )
    how.add_argument(
        "--warmup",
        type=_at_most(MOST_REPEATS, least=0),
        metavar="N",
        help=f"warm-up runs (default: 0; 1 from {MANY_REPEATS} repeats on)",
    )
    how.add_argument(
        "--pinned",
        action="store_true",
        help="with the matrix's recipe against known sources of difference",
    )
    how.add_argument(
        "--timeout", type=_seconds, default=3600.0, metavar="S", help="limit a run (default: 3600)"
    )
    how.add_argument(
        "--idle-timeout",
        type=_seconds,
        default=900.0,
        metavar="S",
        help="limit without any output (default: 900)",
    )
    how.add_argument(
        "--total-timeout", type=_seconds, metavar="S", help="limit of the whole matrix"
    )


def _prompt(probe: argparse._ArgumentGroup) -> None:
    for name, default, text in (
        ("tokens", DEFAULT_TOKENS, "number of token ids"),
        ("seed", DEFAULT_SEED, "seed of the generator"),
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


def default_out() -> Path:
    """A folder named after the moment, with a number behind it where that is taken."""
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
    if not is_whole(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def is_whole(text: str) -> bool:
    """Whether a text is a number from 0 on, of a size that anything is counted in."""
    return text.isascii() and text.isdigit() and len(text) < 19


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
