"""argv to a command. Everything after the first ``--`` belongs to the engine, as it is."""

from __future__ import annotations

import argparse
import re
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING

from hetero_test.errors import ExitCode, HeteroTestError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "run": ("hetero_test.cli.run", "run the matrix (also without the word run)"),
    "demo": ("hetero_test.cli.demo", "run it on the bundled engine: no GPU, no model"),
    "report": ("hetero_test.cli.report", "judge and render a run directory again"),
    "triage": ("hetero_test.cli.triage", "should this split be built at all?"),
    "rig": ("hetero_test.cli.rig", "this machine's devices and links, as a rig file"),
    "selftest": ("hetero_test.cli.selftest", "the negative control: named faults, each caught"),
}
EXIT_CODES = """\
exit codes:
  0    PASS: every comparison is equal, and something was compared
  1    FAIL: at least one placement changed the output
  2    the command line or a matrix file is wrong
  3    engine not found, fewer devices than expected, or nothing to compare;
       nothing was launched
  4    INCONCLUSIVE: neither is proven
  5    the harness could not finish (disk full, a bug of its own)
  124  --total-timeout was reached
  130  interrupted
"""


def entry() -> None:
    """The ``hetero-test`` command."""
    from hetero_test.cli import stdio

    stdio.prepare()
    try:
        code = main(sys.argv[1:])
    except SystemExit as asked:  # --help and --version
        code = asked.code if isinstance(asked.code, int) else 0
    except KeyboardInterrupt:  # a second one, or a terminal that was closed while it was told
        code = ExitCode.INTERRUPTED
    sys.exit(stdio.finish(code))


def main(argv: Sequence[str]) -> int:
    """Run a command and return its exit code; only a bug of ours shows a traceback."""
    try:
        return _main(list(argv))
    except HeteroTestError as error:
        _tell(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        _tell("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        from hetero_test.cli.stdio import discard

        discard()
        return ExitCode.COULD_NOT_FINISH
    except Exception as error:  # noqa: BLE001 - a bug of ours must still end with its own exit code
        if (package := _missing(error)) is not None:
            _tell(
                f"error: the Python package {package} is not installed for {sys.executable}\n"
                "  install hetero-test with what it needs: pip install . in its checkout"
            )
            return ExitCode.COULD_NOT_FINISH
        traceback.print_exc()
        _tell("error: this is a bug of hetero-test, please report it with the lines above")
        return ExitCode.COULD_NOT_FINISH


def _missing(error: Exception) -> str | None:
    """The package that a bare checkout lacks; None for any other error."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name.partition(".")[0]
    return None if package == "hetero_test" else package


def _tell(text: str) -> None:
    """Standard error is for talk; a path that is not UTF-8 must not hide the message."""
    from hetero_test.publish.printable import visible_lines

    line = f"hetero-test: {visible_lines(text)}\n"
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding))
    sys.stderr.flush()


def _main(argv: list[str]) -> int:
    own, engine_flags = split(argv)
    name, rest = choose(own)
    if name is None:
        parser = top_parser()
        parser.parse_args(rest)  # --help and --version end here
        raise UsageError(
            "nothing to do: give --build-dir DIR and, after --, the model flags",
            hint="hetero-test --help shows how; hetero-test demo needs neither",
        )
    if engine_flags is not None and name not in {"run", "demo"}:
        raise UsageError(f"{name}: it takes nothing after --")
    command = import_module(COMMANDS[name][0])
    parser = command_parser(name)
    command.add_arguments(parser)
    args = parser.parse_args(rest)
    args.engine_flags = engine_flags
    args.own_argv = argv
    result: int = command.run(args)
    return result


def split(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Our words and the engine's: cut at the first ``--``, None where there is none."""
    words = list(argv)
    if "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], tuple(words[at + 1 :])


def choose(own: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command and its words; options without a command are those of ``run``."""
    words = list(own)
    if not words or words[0] in {"-h", "--help", "--version"}:
        return None, words
    if words[0] in COMMANDS:
        return words[0], words[1:]
    if words[0].startswith("-"):
        return "run", words
    from hetero_test.formats.toml_lines import suggestion

    raise UsageError(
        f"no command {words[0]!r}{suggestion(words[0], COMMANDS)}",
        hint=f"commands: {', '.join(COMMANDS)}; the engine's own flags go after --",
    )


class Parser(argparse.ArgumentParser):
    """argparse whose complaints are ours: one shape of message, one exit code."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Complain about the command line.

        Raises:
            UsageError: always.
        """
        hint = f"see {self.prog} --help"
        found = re.match(r"unrecognized arguments: (\S+)", message)
        if found is not None:
            message += self._meant(found.group(1))
            hint = f"the engine's own flags go after --; {hint}"
        raise UsageError(message, hint=hint)

    def _meant(self, word: str) -> str:
        from hetero_test.formats.toml_lines import suggestion

        return suggestion(word.partition("=")[0], self._option_string_actions)


def command_parser(name: str) -> argparse.ArgumentParser:
    """The parser of one command, without its arguments."""
    usage = None
    if name == "run":
        usage = "hetero-test [run] --build-dir DIR [options] -- <model flags>"
    return Parser(
        prog=f"hetero-test {name}",
        usage=usage,
        description=COMMANDS[name][1],
        epilog=EXIT_CODES if name == "run" else None,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def top_parser() -> argparse.ArgumentParser:
    """What ``hetero-test --help`` shows: the options of ``run`` and the other commands."""
    commands = "\n".join(f"  {name:<10}{text}" for name, (_, text) in COMMANDS.items())
    parser = Parser(
        prog="hetero-test",
        usage="hetero-test --build-dir DIR [options] -- <model flags>\n"
        "       hetero-test COMMAND --help",
        description="Launches an LLM inference engine over a matrix of device placements and says "
        "whether\nplacement changed the greedy output, and what it did to the time.\n\n"
        f"commands:\n{commands}",
        epilog=EXIT_CODES,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    from hetero_test.cli.options import add_arguments

    add_arguments(parser, required=False)
    return parser


class _Version(argparse.Action):
    """Reads the version only when asked: the metadata takes a while to load."""

    def __call__(self, *_: object) -> None:
        from hetero_test.version import version

        print(f"hetero-test {version()}")
        raise SystemExit(0)
